/**
 * Rotary position embeddings that are stretched for longer contexts (`rope_scaling`, which newer
 * versions of transformers write as `rope_parameters`): their form in config.json.
 */
import { z } from "zod";

/** How the frequencies of a rotary embedding are stretched. */
export type RopeScaling =
  /** All frequencies divided by a factor. */
  | { readonly type: "linear"; readonly factor: number }
  /**
   * Stretched only beyond the model's context, depending on the longest text read so far; engines
   * do not go beyond it, so here it changes nothing.
   */
  | { readonly type: "dynamic"; readonly factor: number }
  | {
      /** Low frequencies divided by a factor, high ones left alone, those between interpolated. */
      readonly type: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalContext: number;
    }
  | {
      /** The same with a linear ramp (Peng et al. 2023, arXiv 2309.00071), and scaled tables. */
      readonly type: "yarn";
      readonly factor: number;
      readonly originalContext: number;
      /** Factor of cosines and sines. */
      readonly attentionFactor: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      /** The ramp begins and ends at whole dimensions. */
      readonly truncate: boolean;
    };

const factor = z.number().min(1).max(1e6);
const positive = z.number().positive();
const context = z.int().positive().optional();

/** What `rope_scaling` and `rope_parameters` may say. */
export const ropeFields = z.looseObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: positive.nullish(),
  partial_rotary_factor: z.number().nullish(),
});

const scalings = {
  linear: z.looseObject({ factor }),
  dynamic: z.looseObject({ factor }),
  llama3: z
    .looseObject({
      factor,
      low_freq_factor: positive,
      high_freq_factor: positive,
      original_max_position_embeddings: context,
    })
    .refine((rope) => rope.low_freq_factor < rope.high_freq_factor, {
      message: "must be less than high_freq_factor",
      path: ["low_freq_factor"],
    }),
  yarn: z.looseObject({
    factor,
    original_max_position_embeddings: context,
    attention_factor: positive.nullish(),
    mscale: z.number().nullish(),
    mscale_all_dim: z.number().nullish(),
    beta_fast: positive.nullish(),
    beta_slow: positive.nullish(),
    truncate: z.boolean().default(true),
  }),
};

/** The scaling that a `rope_scaling` describes, or what is wrong with it. */
export function parseRopeScaling(
  rope: z.infer<typeof ropeFields>,
  model: { readonly maxContext: number; readonly originalContext: number | undefined },
): { readonly scaling: RopeScaling | undefined } | { readonly problem: string } {
  const type = rope.rope_type ?? rope.type ?? "default";
  if (rope.partial_rotary_factor != null && rope.partial_rotary_factor !== 1)
    return { problem: `partial_rotary_factor ${rope.partial_rotary_factor}; only whole heads are` };
  if (type === "default") return { scaling: undefined };
  if (!(type in scalings))
    return {
      problem: `rope_scaling of type "${type}"; only ${Object.keys(scalings).join(", ")} and default are`,
    };
  const parsed = scalings[type as keyof typeof scalings].safeParse(rope);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `rope_scaling.${issue!.path.join(".")}: ${issue!.message}` };
  }
  const fields = parsed.data;
  const originalContext =
    model.originalContext ??
    (fields.original_max_position_embeddings as number | undefined) ??
    model.maxContext;
  return { scaling: scalingOf(type as RopeScaling["type"], fields, originalContext) };
}

function scalingOf(
  type: RopeScaling["type"],
  fields: Readonly<Record<string, unknown>> & { readonly factor: number },
  originalContext: number,
): RopeScaling {
  if (type === "linear" || type === "dynamic") return { type, factor: fields.factor };
  if (type === "llama3") {
    const llama3 = fields as z.infer<typeof scalings.llama3>;
    return {
      type,
      factor: llama3.factor,
      lowFrequencyFactor: llama3.low_freq_factor,
      highFrequencyFactor: llama3.high_freq_factor,
      originalContext,
    };
  }
  const yarn = fields as z.infer<typeof scalings.yarn>;
  const strength = (times: number) =>
    yarn.factor <= 1 ? 1 : 0.1 * times * Math.log(yarn.factor) + 1;
  return {
    type,
    factor: yarn.factor,
    originalContext,
    attentionFactor:
      yarn.attention_factor ??
      (yarn.mscale && yarn.mscale_all_dim
        ? strength(yarn.mscale) / strength(yarn.mscale_all_dim)
        : strength(1)),
    betaFast: yarn.beta_fast ?? 32,
    betaSlow: yarn.beta_slow ?? 1,
    truncate: yarn.truncate,
  };
}

/** A scaling as config.json has it under `rope_scaling`. */
export function formatRopeScaling(scaling: RopeScaling): Readonly<Record<string, unknown>> {
  const { type, factor } = scaling;
  const common = { rope_type: type, factor };
  if (scaling.type === "llama3")
    return {
      ...common,
      low_freq_factor: scaling.lowFrequencyFactor,
      high_freq_factor: scaling.highFrequencyFactor,
      original_max_position_embeddings: scaling.originalContext,
    };
  if (scaling.type === "yarn")
    return {
      ...common,
      original_max_position_embeddings: scaling.originalContext,
      attention_factor: scaling.attentionFactor,
      beta_fast: scaling.betaFast,
      beta_slow: scaling.betaSlow,
      truncate: scaling.truncate,
    };
  return common;
}

/**
 * Radians per position of each pair of a head, in single precision as in transformers and PyTorch,
 * so that long contexts agree.
 */
export function ropeFrequencies(
  theta: number,
  half: number,
  scaling: RopeScaling | undefined,
): Float32Array {
  const stretch = scaling && stretched(scaling, theta, half);
  return Float32Array.from({ length: half }, (_, i) => {
    const plain = 1 / theta ** (i / half);
    return stretch === undefined ? plain : stretch(plain, i);
  });
}

/** The new frequency of pair i, given its plain one. */
function stretched(
  scaling: RopeScaling,
  theta: number,
  half: number,
): (plain: number, i: number) => number {
  if (scaling.type === "dynamic") return (plain) => plain;
  if (scaling.type === "linear") return (plain) => plain / scaling.factor;
  const between = (plain: number, kept: number) =>
    (1 - kept) * (plain / scaling.factor) + kept * plain;
  const clamp = (x: number) => Math.min(1, Math.max(0, x));
  if (scaling.type === "llama3") {
    const { lowFrequencyFactor: low, highFrequencyFactor: high, originalContext } = scaling;
    const turns = (plain: number) => (originalContext * plain) / (2 * Math.PI);
    return (plain) => between(plain, clamp((turns(plain) - low) / (high - low)));
  }
  // The (fractional) pair that turns so many times in the original context.
  const pairOf = (turns: number) =>
    (half * Math.log(scaling.originalContext / (turns * 2 * Math.PI))) / Math.log(theta);
  const [first, last] = [pairOf(scaling.betaFast), pairOf(scaling.betaSlow)];
  const begin = Math.max(scaling.truncate ? Math.floor(first) : first, 0);
  const end = Math.min(scaling.truncate ? Math.ceil(last) : last, 2 * half - 1);
  const width = end === begin ? 0.001 : end - begin;
  return (plain, i) => between(plain, 1 - clamp((i - begin) / width));
}
