/**
 * Replays recorded traces: does an environment still answer as it did when the trace was recorded?
 *
 * A trace is one JSON object per line: `{game, steps: [{action?, obs, admissible?, done?, won?},
 * …]}`. The first step has no action: it is what the world showed at the start.
 */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { z } from "zod";
import { INFLATED_TIMES, inflatedLimit } from "../files/inflate.js";
import { openRegularHandle } from "../files/regular-file.js";
import {
  EnvError,
  type Environment,
  type Mismatch,
  type ReplayResult,
  type TraceWorld,
} from "./env.js";

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
  const lines = await readLines(path);
  if (lines.length === 0) throw new EnvError(`${path} holds no trace: there is nothing to compare`);
  if (environment.replayRecords !== undefined)
    return environment.replayRecords(
      lines.map(({ json }) => json),
      lines.map(({ text }) => text),
    );
  const mismatches: Mismatch[] = [];
  let states = 0;
  for (const { place, line, json } of lines) {
    const trace = parseTrace(json, place);
    states += trace.steps.length;
    for (const mismatch of replayTrace(environment, trace))
      mismatches.push({ ...mismatch, where: `line ${line}, ${mismatch.where}` });
  }
  return { traces: lines.length, states, mismatches };
}

interface Line {
  readonly line: number;
  readonly place: string;
  readonly text: string;
  readonly json: unknown;
}

async function readLines(path: string): Promise<readonly Line[]> {
  const lines: Line[] = [];
  let line = 0;
  try {
    const opened = await openRegularHandle(path);
    const { size } = await opened.stat();
    const file = opened.createReadStream();
    const bytes = path.endsWith(".gz") ? gunzipped(file, size) : file;
    // A pipe does not propagate its source's errors.
    file.on("error", (error) => bytes.destroy(error));
    const input = createInterface({ input: bytes, crlfDelay: Number.POSITIVE_INFINITY });
    for await (const text of input) {
      line++;
      const place = `${path}:${line}`;
      if (text.trim() !== "") lines.push({ line, place, text, json: parseJson(text, place) });
    }
  } catch (error) {
    if (error instanceof EnvError) throw error;
    throw new EnvError(`${path}: unreadable after line ${line}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return lines;
}

/** Unpacks a file of this size, unless it inflates to more than traces do. */
function gunzipped(file: Readable, size: number): Readable {
  const bytes = file.pipe(createGunzip());
  let left = inflatedLimit(size);
  bytes.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0)
      bytes.destroy(new Error(`it inflates to more than ${INFLATED_TIMES} times its size`));
  });
  return bytes;
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EnvError(`${place}: not JSON: ${(error as Error).message}`, { cause: error });
  }
}

function parseTrace(json: unknown, place: string): Trace {
  const parsed = traceSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new EnvError(
    `${place}: expected a trace {game, steps: [{action, obs, admissible, done, won}]}; ${issue.path.join(".")}: ${issue.message}`,
  );
}

/** Replays one trace up to the first difference; what follows would say nothing. */
export function replayTrace(environment: Environment, trace: Trace): readonly Mismatch[] {
  const world = environment.traceWorld?.(trace.game) ?? taskWorld(environment, trace.game);
  for (const [step, expected] of trace.steps.entries()) {
    const found = step === 0 ? world.start() : world.step(expected.action ?? "");
    const after = expected.action === undefined ? "at the start" : `after "${expected.action}"`;
    // What the trace omits is not compared.
    const mismatches = (["obs", "admissible", "done", "won"] as const)
      .filter((field) => expected[field] !== undefined)
      .filter((field) => JSON.stringify(expected[field]) !== JSON.stringify(found[field]))
      .map((field) => ({
        where: `${trace.game}, step ${step}: ${field} ${after}`,
        expected: expected[field],
        found: found[field],
      }));
    if (mismatches.length > 0) return mismatches;
  }
  return [];
}

/** A trace whose game is a task of the environment, as a policy sees it. */
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
