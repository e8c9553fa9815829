/**
 * Replaying recorded traces: does an environment answer as it did when the trace was made?
 *
 * A trace is one JSON object a line: `{game, steps: [{action?, obs, admissible?, done?, won?}, …]}`. The
 * first step has no action: it is what the world showed at the start.
 */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { z } from "zod";
import { EnvError, type Environment } from "./env.js";
import type { TraceState, TraceWorld } from "./trace.js";

/** A place where the environment answered something else than the trace. */
export interface Mismatch {
  /** Line of the trace file, from 1. */
  readonly line: number;
  readonly game: string;
  /** Number of the step in its trace; 0 is the start. */
  readonly step: number;
  readonly action: string | undefined;
  readonly field: string;
  readonly expected: string;
  readonly found: string;
}

/** The outcome of a replay. */
export interface ReplayResult {
  readonly traces: number;
  readonly states: number;
  readonly mismatches: readonly Mismatch[];
}

const traceSchema = z.object({
  game: z.string(),
  steps: z
    .array(
      z.object({
        action: z.string().optional(),
        obs: z.string(),
        admissible: z.array(z.string()).optional(),
        done: z.boolean().optional(),
        won: z.boolean().optional(),
      }),
    )
    .min(1),
});

/** One recorded trace. */
export type Trace = z.output<typeof traceSchema>;

/** Replays every trace of a `.jsonl` or `.jsonl.gz` file and compares state by state. */
export async function replayFile(environment: Environment, path: string): Promise<ReplayResult> {
  const mismatches: Mismatch[] = [];
  let traces = 0;
  let states = 0;
  for await (const { line, trace } of readTraces(path)) {
    traces++;
    states += trace.steps.length;
    mismatches.push(...replayTrace(environment, trace).map((found) => ({ ...found, line })));
  }
  if (traces === 0) throw new EnvError(`${path} holds no trace: there is nothing to compare`);
  return { traces, states, mismatches };
}

async function* readTraces(path: string): AsyncGenerator<{ line: number; trace: Trace }> {
  const file = createReadStream(path);
  const bytes = path.endsWith(".gz") ? file.pipe(createGunzip()) : file;
  // A pipe does not hand on its source's errors.
  file.on("error", (error) => bytes.destroy(error));
  let line = 0;
  try {
    for await (const text of createInterface({
      input: bytes,
      crlfDelay: Number.POSITIVE_INFINITY,
    })) {
      line++;
      if (text.trim() !== "") yield { line, trace: parseTrace(text, `${path}:${line}`) };
    }
  } catch (error) {
    if (error instanceof EnvError) throw error;
    throw new EnvError(`${path}: unreadable after line ${line}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function parseTrace(text: string, place: string): Trace {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new EnvError(`${place}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = traceSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new EnvError(
    `${place}: expected a trace {game, steps: [{action, obs, admissible, done, won}]}; ${issue.path.join(".")}: ${issue.message}`,
  );
}

/** Replays one trace; once the observations part, the rest of the trace says nothing and is left out. */
export function replayTrace(environment: Environment, trace: Trace): Omit<Mismatch, "line">[] {
  const world = environment.traceWorld?.(trace.game) ?? taskWorld(environment, trace.game);
  for (const [step, expected] of trace.steps.entries()) {
    const found = step === 0 ? world.start() : world.step(expected.action ?? "");
    const differences = compare(expected, found);
    if (differences.length > 0) {
      return differences.map((difference) => ({
        game: trace.game,
        step,
        action: expected.action,
        ...difference,
      }));
    }
  }
  return [];
}

/** Compares what the trace recorded; what it left out is not compared. */
function compare(
  expected: TraceState,
  found: TraceState,
): Pick<Mismatch, "field" | "expected" | "found">[] {
  return (["obs", "admissible", "done", "won"] as const)
    .filter((field) => expected[field] !== undefined)
    .map((field) => ({
      field,
      expected: JSON.stringify(expected[field]),
      found: JSON.stringify(found[field]) ?? "nothing",
    }))
    .filter((pair) => pair.expected !== pair.found);
}

/** A trace whose game is a task of the environment, seen as a policy sees it. */
function taskWorld(environment: Environment, game: string): TraceWorld {
  const env = environment.create();
  if ("close" in env)
    throw new EnvError(`${environment.name} runs behind a server: traces cannot be replayed there`);
  const admissible = (): readonly string[] | undefined => env.admissibleActions?.();
  return {
    start: () => ({
      obs: env.reset(environment.task(game)),
      admissible: admissible(),
      done: false,
      won: false,
    }),
    step(action) {
      const { observation, done, info } = env.step(action);
      return { obs: observation, admissible: admissible(), done, won: info.success };
    },
  };
}
