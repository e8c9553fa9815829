/** Asks a person for a line, with completion on a terminal and plain reading from a pipe. */
import { createInterface } from "node:readline/promises";
import { plainText } from "@pawl/core/plain-text.js";
import type { Situation } from "@pawl/core/rollout/policy.js";
import { type Io, print } from "./io.js";

/** Asks for lines, one at a time. */
export interface Asker {
  /** The trimmed line, or undefined when the input has ended or the question was aborted. */
  ask(
    question: string,
    candidates: () => readonly string[],
    signal?: AbortSignal,
  ): Promise<string | undefined>;
  close(): void;
}

/** Asks on a command's own streams. */
export function createAsker(io: Io): Asker {
  let complete: () => readonly string[] = () => [];
  const interactive = io.stdin.isTTY === true && io.stdout.isTTY === true;
  const lines = createInterface({
    input: io.stdin,
    output: io.stdout,
    terminal: interactive,
    completer(line: string): [string[], string] {
      const fitting = complete()
        .map(plainText)
        .filter((candidate) => candidate.startsWith(line));
      return [fitting, line];
    },
  });
  // Lines from a pipe arrive faster than they are asked for, so they wait here.
  const waiting: string[] = [];
  let wake: (() => void) | undefined;
  let closed = false;
  lines.on("line", (line) => {
    waiting.push(line);
    wake?.();
  });
  // On a terminal, readline handles Ctrl-C itself; here it means that no more lines come.
  lines.on("SIGINT", () => lines.close());
  lines.on("close", () => {
    closed = true;
    wake?.();
  });
  return {
    async ask(question, candidates, signal) {
      complete = candidates;
      if (interactive) {
        lines.setPrompt(question);
        lines.prompt();
      }
      const stop = (): void => wake?.();
      signal?.addEventListener("abort", stop);
      while (waiting.length === 0 && !closed && signal?.aborted !== true) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      signal?.removeEventListener("abort", stop);
      const line = waiting.shift();
      if (line !== undefined && !interactive) print(io, `${question}${line}`);
      return line?.trim();
    },
    close: () => lines.close(),
  };
}

/** Shows a situation and asks for an action. */
export async function askPerson(
  situation: Situation,
  asker: Asker,
  io: Io,
  signal: AbortSignal,
): Promise<string> {
  const { bold, dim } = io.colors;
  if (situation.index === 0) print(io, `\n${dim(situation.task.id)} ${bold(situation.goal)}`);
  print(io, situation.observation);
  const answer = await asker.ask(
    dim(`${situation.index + 1}> `),
    () => situation.admissible ?? [],
    signal,
  );
  if (answer === undefined) throw new Error("the input ended before the episode did");
  return answer;
}
