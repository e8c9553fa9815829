/**
 * Errors of the AI SDK that a model's output caused: a failure of the policy, to be learnt from.
 * They are told by the SDK's own markers, because it is the user's dependency and not ours.
 */

/** What the SDK throws about an answer that cannot be used. */
const ABOUT_OUTPUT: readonly string[] = [
  "AI_NoObjectGeneratedError",
  "AI_NoOutputGeneratedError",
  "AI_NoSuchToolError",
  "AI_InvalidToolInputError",
  "AI_JSONParseError",
  "AI_TypeValidationError",
];

/** Causes of causes that are looked at: an error may be its own cause. */
const DEEPEST = 10;

/** Whether the output of the model of this name caused an error, itself or as its cause. */
export function isModelFault(error: unknown, modelId: string): boolean {
  let at = error;
  for (let depth = 0; depth < DEEPEST && at instanceof Error; depth++, at = at.cause) {
    if (!isMarked(at, "vercel.ai.error")) continue;
    // Another model may have been asked too, such as a judge.
    const { response } = at as { readonly response?: { readonly modelId?: unknown } };
    const isOurs = response?.modelId === undefined || response.modelId === modelId;
    // What else the SDK refuses, the program gave it: a bad prompt is caused by a validation, too.
    return isOurs && ABOUT_OUTPUT.some((name) => isMarked(at, `vercel.ai.error.${name}`));
  }
  return false;
}

function isMarked(error: unknown, marker: string): boolean {
  return (error as Readonly<Record<symbol, unknown>>)[Symbol.for(marker)] === true;
}
