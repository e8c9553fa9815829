/**
 * The interaction protocol of Word-to-World in text: what a world model is told before the first
 * action, and how a response says that the goal is reached.
 */
import { z } from "zod";
import type { Outcome } from "./trajectory.js";

/** Settings of the protocol: types, defaults and help come from here. */
export const protocolOptions = z
  .strictObject({
    context: z
      .boolean()
      .default(true)
      .describe("include the initial state in the prompt if the data has it"),
    marker: z
      .string()
      .default("[SUCCESS]")
      .describe(
        "marks a response that reaches the goal; empty: the end of the episode counts as success",
      ),
    system: z
      .enum(["pawl", "own"])
      .default("pawl")
      .describe(
        "system message of imported records: Pawl's, with theirs as the initial state, or their own",
      ),
  })
  .refine(({ system, context }) => system === "pawl" || context, {
    path: ["system"],
    message: "own contradicts context: false, because a record's own text is not taken apart",
  })
  .prefault({});

/** Settings of the protocol. */
export type Protocol = z.output<typeof protocolOptions>;

/** What a world model knows before the first action. */
export interface Opening {
  readonly goal: string;
  readonly context?: string | undefined;
  readonly firstObservation: string;
}

/** The text of a response: the observation, and the marker if the goal is reached. */
export function responseText({ observation, success }: Outcome, { marker }: Protocol): string {
  if (!success || marker === "") return observation;
  return observation === "" ? marker : `${observation} ${marker}`;
}

/**
 * A parsed response; `ended` says that the model ended the episode by other means than the marker.
 */
export function readResponse(text: string, ended: boolean, { marker }: Protocol): Outcome {
  const trimmed = text.trim();
  if (marker === "") return { observation: trimmed, done: ended, success: ended };
  const success = trimmed.endsWith(marker);
  return {
    observation: success ? trimmed.slice(0, -marker.length).trimEnd() : trimmed,
    done: ended || success,
    success,
  };
}

const HEADERS = {
  goal: "Goal:\n",
  context: "Initial state:\n",
  firstObservation: "First observation:\n",
} as const;

/** The first message of a dialogue with a world model that reads prose. */
export function systemText(opening: Opening, { marker, system }: Protocol): string {
  const { goal, context, firstObservation } = opening;
  // Only a text that `readSystemText` could not take apart leaves nothing but context.
  const isForeign = context !== undefined && goal === "" && firstObservation === "";
  if (system === "own" && isForeign) return context;
  const sections = [
    `You are the environment of an agent. To each of its actions, reply with exactly what it sees next, and nothing else.${
      marker === "" ? "" : ` When the action reaches the goal, end the reply with ${marker}.`
    }`,
    `${HEADERS.goal}${goal}`,
    ...(context === undefined ? [] : [`${HEADERS.context}${context}`]),
    `${HEADERS.firstObservation}${firstObservation}`,
  ];
  return sections.join("\n\n");
}

/**
 * What `systemText` was made from; any other text is taken as context, because it describes the
 * world.
 */
export function readSystemText(text: string): Opening {
  const after = (header: string, from: number): number => {
    const at = text.indexOf(`\n\n${header}`, from);
    return at < 0 ? -1 : at + 2;
  };
  const goalAt = after(HEADERS.goal, 0);
  const firstAt = goalAt < 0 ? -1 : after(HEADERS.firstObservation, goalAt);
  if (firstAt < 0) {
    return { goal: "", ...(text.trim() !== "" && { context: text }), firstObservation: "" };
  }
  const contextAt = after(HEADERS.context, goalAt);
  const hasContext = contextAt >= 0 && contextAt < firstAt;
  const goalEnd = hasContext ? contextAt : firstAt;
  return {
    goal: text.slice(goalAt + HEADERS.goal.length, goalEnd - 2),
    ...(hasContext && { context: text.slice(contextAt + HEADERS.context.length, firstAt - 2) }),
    firstObservation: text.slice(firstAt + HEADERS.firstObservation.length),
  };
}
