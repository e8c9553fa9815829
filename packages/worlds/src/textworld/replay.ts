/** Compares recorded traces of the original with ours, in everything that was recorded. */

import { EnvError, type Mismatch, type ReplayResult } from "@pawl/core/envs/env.js";
import { z } from "zod";
import { createMemo } from "../alfworld/memo.js";
import type { Game } from "./game.js";
import { type StoryMoment, startPlay } from "./play.js";

const texts = z.array(z.string()).optional();
const traceSchema = z.object({
  game: z.string(),
  style: z.enum(["tw", "plain"]).optional(),
  max_score: z.number().optional(),
  steps: z
    .array(
      z.object({
        action: z.string().optional(),
        obs: z.string(),
        admissible: texts,
        score: z.number().optional(),
        done: z.boolean().optional(),
        won: z.boolean().optional(),
        lost: z.boolean().optional(),
        description: z.string().optional(),
        inventory: z.string().optional(),
        facts: texts,
        moves: z.number().optional(),
      }),
    )
    .min(1),
});

type Trace = z.output<typeof traceSchema>;
type State = Omit<Trace["steps"][number], "action">;

/** Games kept at once: the traces of a game follow one another. */
const GAMES_KEPT = 4;

/** Replays traces; `gameCalled` finds the game with a file name. */
export function replayTextworld(
  records: readonly unknown[],
  gameCalled: (name: string) => Game,
): ReplayResult {
  const games = createMemo<Game>(GAMES_KEPT);
  let states = 0;
  const mismatches: Mismatch[] = [];
  for (const [index, record] of records.entries()) {
    const trace = parseTrace(record, index + 1);
    states += trace.steps.length;
    const game = games(trace.game, () => gameCalled(trace.game));
    for (const mismatch of replayTrace(trace, game))
      mismatches.push({
        ...mismatch,
        where: `line ${index + 1}, ${trace.game}, ${mismatch.where}`,
      });
  }
  return { traces: records.length, states, mismatches };
}

function parseTrace(record: unknown, line: number): Trace {
  const parsed = traceSchema.safeParse(record);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new EnvError(
    `line ${line}: expected a trace {game, style, steps: [{action, obs, …}]}; ${issue.path.join(".")}: ${issue.message}`,
  );
}

/** The differences in the first state that differs; what follows would say nothing. */
function replayTrace(trace: Trace, game: Game): readonly Mismatch[] {
  const style = trace.style ?? (game.named ? "tw" : "plain");
  if (trace.max_score !== undefined && trace.max_score !== game.maxScore)
    return [{ where: "max_score", expected: trace.max_score, found: game.maxScore }];
  const play = startPlay(game, { style, tracked: true });
  let moment = play.start;
  for (const [step, { action, ...expected }] of trace.steps.entries()) {
    if (step > 0) moment = play.step(moment, action ?? "");
    const found = stateOf(game, moment);
    const after = action === undefined ? "at the start" : `after "${action}"`;
    const fields = (Object.keys(expected) as (keyof State)[]).filter(
      (field) =>
        expected[field] !== undefined &&
        JSON.stringify(expected[field]) !== JSON.stringify(found[field]),
    );
    if (fields.length > 0)
      return fields.map((field) => ({
        where: `step ${step}: ${field} ${after}`,
        expected: expected[field],
        found: found[field],
      }));
  }
  return [];
}

function stateOf({ tracker }: Game, moment: StoryMoment): State {
  return {
    obs: moment.observation,
    admissible: [...tracker.commands(moment.facts)],
    score: moment.score,
    done: moment.won || moment.lost,
    won: moment.won,
    lost: moment.lost,
    description: moment.description,
    inventory: moment.inventory,
    facts: [...tracker.readable(moment.facts)],
    moves: moment.moves,
  };
}
