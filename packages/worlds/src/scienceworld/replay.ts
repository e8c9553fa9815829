/**
 * Replays recorded episodes and tours of the original and compares them.
 *
 * Version 1.3.0 of the simulator made the recordings and must repeat them byte for byte. Older ones
 * enumerate things in another order, so with them scores, ends, moves and the words of each text
 * are compared, whatever their order. Heat flows in that order, so temperatures may differ, and the
 * tasks are left out in which order decides what happens.
 */
import { createHash } from "node:crypto";
import { EnvError, type Mismatch, type ReplayResult } from "@pawl/core/envs/env.js";
import { z } from "zod";
import { isOver, scoreOf, tour } from "./science-env.js";
import type { Simulator } from "./simulator.js";

const scene = { task: z.string(), variation: z.int(), simplifications: z.string().default("") };

const episodeSchema = z.object({
  ...scene,
  desc: z.string(),
  goals: z.string().optional(),
  steps: z
    .array(
      z.object({
        action: z.string(),
        obs: z.string(),
        /** From 0 to 100, or from 0 to 1 where there is no `moves`. */
        score: z.number(),
        done: z.boolean(),
        raw_score: z.number().optional(),
        reward: z.number().optional(),
        moves: z.number().optional(),
        valid_n: z.number().optional(),
        valid_sha1: z.string().optional(),
        valid: z.array(z.string()).optional(),
        look_sha1: z.string().optional(),
        inv: z.string().optional(),
      }),
    )
    .min(1),
});

const tourSchema = z.object({
  ...scene,
  goal_progress: z.string(),
  possible_actions: z.array(z.string()),
  rooms: z.array(
    z.object({
      room: z.string(),
      reply: z.string(),
      look: z.string(),
      objects: z.array(z.string()),
    }),
  ),
});

type RecordedEpisode = z.output<typeof episodeSchema>;
type RecordedStep = RecordedEpisode["steps"][number];
type RecordedTour = z.output<typeof tourSchema>;

/** The version from which on the simulator repeats the recordings exactly. */
const EXACT_SINCE = [1, 3];

/**
 * Tasks in which the order of things decides what happens: which flower a bee finds, and in which
 * tick current reaches a lamp.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "power-component",
  "power-component-renewable-vs-nonrenewable-energy",
  "grow-fruit",
  "mendelian-genetics-known-plant",
  "mendelian-genetics-unknown-plant",
]);

/** The number of moves after which the recordings say that an episode is over. */
const MOVE_LIMIT = 100;

/** Whether this version of the simulator repeats the recordings byte for byte. */
export function isExact(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > EXACT_SINCE[0]! || (major === EXACT_SINCE[0] && minor >= EXACT_SINCE[1]!);
}

/** What is compared where, and what was found. */
interface Comparison {
  readonly exact: boolean;
  readonly mismatches: Mismatch[];
  states: number;
  /** States that are the same byte for byte, valid actions aside. */
  identical: number;
}

/** Replays records one after another in one simulator. */
export async function replayRecords(
  records: readonly unknown[],
  simulator: Simulator,
  version: string,
): Promise<ReplayResult> {
  const exact = isExact(version);
  const comparison: Comparison = { exact, mismatches: [], states: 0, identical: 0 };
  let traces = 0;
  for (const [line, json] of records.entries()) {
    const record = parse(json, line);
    if (!exact && LEFT_OUT.has(record.task)) continue;
    traces++;
    if ("steps" in record) await replayEpisode(record, simulator, comparison);
    else await replayTour(record, simulator, comparison);
  }
  const { states, identical, mismatches } = comparison;
  const left = records.length - traces;
  return {
    traces,
    states,
    mismatches,
    notes: exact
      ? [`simulator ${version}: compared byte for byte`]
      : [
          `simulator ${version}: compared without order and temperatures (1.3.0 is needed for byte for byte)`,
          `${identical} of ${states} states are the same byte for byte, valid actions aside`,
          `${left} ${left === 1 ? "trace" : "traces"} left out: ${[...LEFT_OUT].join(", ")} depend on the order of things`,
        ],
  };
}

function parse(json: unknown, line: number): RecordedEpisode | RecordedTour {
  const isTour = typeof json === "object" && json !== null && "rooms" in json;
  const parsed = (isTour ? tourSchema : episodeSchema).safeParse(json);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new EnvError(
    `record ${line + 1}: expected {task, variation, desc, steps: [{action, obs, score, done, …}]} or a tour with rooms; ${path.join(".")}: ${message}`,
  );
}

/** Up to the first difference: what follows would say nothing. */
async function replayEpisode(
  record: RecordedEpisode,
  simulator: Simulator,
  comparison: Comparison,
): Promise<void> {
  await simulator.load(record);
  const where = `${record.task} ${record.variation}`;
  let before = 0;
  for (const [number, step] of record.steps.entries()) {
    const { moves, observation, ...moment } = await simulator.step(step.action);
    const { rawScore, completed } = moment;
    const score = scoreOf(rawScore);
    const done = isOver({ observation, moves, ...moment }, score, MOVE_LIMIT);
    const found =
      step.moves === undefined
        ? { obs: observation, score: rawScore, done: completed }
        : { obs: observation, raw_score: rawScore, score, reward: score - before, done, moves };
    before = score;
    const also = step.valid_sha1 === undefined ? {} : await surroundings(simulator);
    const place = `${where}, step ${number} ("${step.action}")`;
    if (!compare(step, { ...found, ...also }, place, comparison)) return;
  }
  if (record.goals === undefined) return;
  const goals = await simulator.goalProgress();
  compare(
    { desc: record.desc, goals: record.goals },
    { desc: await simulator.taskDescription(), goals },
    `${where}, at the end`,
    comparison,
  );
}

/** What the Python package asks for after every step, in its order: some of it draws numbers. */
async function surroundings(simulator: Simulator) {
  const look = await simulator.freeLook();
  const inv = await simulator.freeInventory();
  await simulator.freeTaskDescription();
  const valid = [...(await simulator.validActions())].sort();
  return {
    look_sha1: sha1(look),
    inv,
    valid,
    valid_n: valid.length,
    valid_sha1: sha1(valid.join("\n")),
  };
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

/** Visits what the recorded tour visited, in its order, because every visit takes time. */
async function replayTour(
  record: RecordedTour,
  simulator: Simulator,
  comparison: Comparison,
): Promise<void> {
  const names = record.rooms.map(({ room }) => room);
  const { goalProgress, possibleActions, places } = await tour(simulator, record, names);
  const where = `${record.task} ${record.variation}`;
  const { goal_progress, possible_actions } = record;
  const actions = [...possibleActions].sort();
  const found = { goal_progress: goalProgress, possible_actions: actions };
  compare({ goal_progress, possible_actions }, found, `${where}, context`, comparison);
  for (const [at, { name, reply, look, objects }] of places.entries()) {
    const { room: _, ...recorded } = record.rooms[at]!;
    const seen = { reply, look, objects: [...objects].sort() };
    compare(recorded, seen, `${where}, ${name}`, comparison);
  }
}

/**
 * The valid actions: the names in them of things that look the same are drawn, so that with another
 * order only their number can be compared.
 */
const VALID = ["valid_sha1", "valid"];

/** Compares a state with its record and says whether they agree. */
function compare(
  recorded: Readonly<Record<string, unknown>> | RecordedStep,
  found: Readonly<Record<string, unknown>>,
  where: string,
  comparison: Comparison,
): boolean {
  const fields = Object.entries(recorded).filter(
    ([field, value]) => value !== undefined && field !== "action",
  );
  const different = fields.filter(([field, value]) => !same(value, found[field]));
  const identical = different.every(([field]) => VALID.includes(field));
  const mismatches = comparison.exact
    ? different
    : different.filter(
        ([field, value]) =>
          !VALID.includes(field) &&
          field !== "look_sha1" &&
          !same(orderFree(value), orderFree(found[field])),
      );
  comparison.states++;
  if (identical) comparison.identical++;
  for (const [field, expected] of mismatches)
    comparison.mismatches.push({ where: `${where}: ${field}`, expected, found: found[field] });
  return mismatches.length === 0;
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** A text as its words, sorted, without temperatures; anything else as it is. */
function orderFree(value: unknown): unknown {
  if (typeof value !== "string") return value;
  return value
    .replace(/-?\d+ degrees/g, "degrees")
    .split(/[\s,.:()]+/)
    .sort();
}
