/** What choosing before acting is worth, in tables: by way, arm and seed. */
import type { Knowledge } from "@pawl/core/rollout/choice/knowledge.js";
import { table } from "@pawl/studies/markdown.js";
import { estimate, pairedDifference } from "@pawl/studies/statistics.js";
import type { choosingJson } from "../../packages/pawl/src/cli/choosing.js";
import { number, withInterval } from "./figures.js";

/** An evaluation of one agent, acting in one way. */
export interface WayResult {
  readonly tasks: number;
  readonly solved: number;
  /** Mean steps of an episode, and the share of actions that were not carried out. */
  readonly steps: number;
  readonly invalid: number;
  readonly choosing?: Partial<ReturnType<typeof choosingJson>>;
  /** Of the whole command. */
  readonly seconds: number;
}

/** Results by arm, way and seed. */
export interface Study {
  readonly machine: string;
  readonly date: string;
  readonly results: Readonly<
    Record<string, Readonly<Record<string, Readonly<Record<string, WayResult>>>>>
  >;
}

type BySeed = ReadonlyMap<number, number>;

/** The ways of acting, in words. */
const WAYS: Readonly<Record<string, string>> = {
  acting: "acting, temperature 1",
  greedy: "greedy",
  vote: "vote",
  self: "self",
  critic: "self, and a critic",
  model: "model",
  exact: "exact",
};
/** Which ways are compared, and why. */
const COMPARED = [
  ["self", "vote", "what its own predictions add to votes"],
  ["model", "vote", "what a world model's add"],
  ["critic", "self", "what a critic's values add to that"],
  ["exact", "vote", "what there was to gain"],
  ["vote", "greedy", "votes, beside the most probable action"],
  ["model", "greedy", "a world model's word, beside it (not planned)"],
  ["exact", "greedy", "perfect knowledge, beside it (not planned)"],
  ["vote", "acting", "votes, beside one sample"],
] as const;

/** A number of every seed. */
function bySeed(
  { results }: Study,
  arm: string,
  way: string,
  of: (one: WayResult) => number | undefined,
): BySeed {
  return new Map(
    Object.entries(results[arm]?.[way] ?? {}).flatMap(([seed, one]) => {
      const value = of(one);
      return value === undefined ? [] : [[Number(seed), value] as const];
    }),
  );
}

/** Agents, in the order in which they were planned. */
const ARMS = ["plain", "echo", "tried", "ppo"];
const armsIn = ({ results }: Study) => ARMS.filter((arm) => results[arm] !== undefined);

/** The ways of which there are results. */
const waysIn = ({ results }: Study) =>
  Object.entries(WAYS).filter(([way]) =>
    Object.values(results).some((ways) => ways[way] !== undefined),
  );

const success = ({ solved, tasks }: WayResult): number => (100 * solved) / tasks;

/** The mean of a number over seeds, with its standard deviation where that is asked for. */
function meanOf(values: BySeed, places = 1, deviation = false): string {
  if (values.size === 0) return "";
  const { mean, deviation: spread } = estimate([...values.values()]);
  return `${number(mean, places)}${deviation && spread !== undefined ? ` ± ${number(spread, places)}` : ""}`;
}

/** Success in each way. */
export function successTable(study: Study): readonly string[] {
  const arms = armsIn(study);
  return table(
    ["acting", ...arms.flatMap((arm) => [`${arm}, %`, "refused, %", "seeds"])],
    waysIn(study).map(([way, words]) => [
      words,
      ...arms.flatMap((arm) => {
        const own = bySeed(study, arm, way, success);
        if (own.size === 0) return ["", "", ""];
        const refused = bySeed(study, arm, way, ({ invalid }) => 100 * invalid);
        return [meanOf(own, 1, true), meanOf(refused), String(own.size)];
      }),
    ]),
  );
}

/** Differences in points, paired by seed. */
export function differenceTable(study: Study): readonly string[] {
  const arms = armsIn(study);
  const gain = (arm: string, [way, other]: readonly [string, string, ...string[]]) =>
    pairedDifference(bySeed(study, arm, way, success), bySeed(study, arm, other, success));
  const known = waysIn(study).map(([way]) => way);
  const rows = COMPARED.filter(([way]) => known.includes(way)).map((compared) => [
    `${compared[0]} − ${compared[1]}`,
    compared[2],
    ...arms.map((arm) => {
      const found = gain(arm, compared);
      return found === undefined ? "" : withInterval(found);
    }),
  ]);
  return table(["points", "", ...arms.map((arm) => `${arm} (95 %)`)], rows);
}

/** Who predicts. */
const KNOWERS = [
  ["plain", "self", "plain, itself"],
  ["echo", "self", "echo, itself"],
  ["tried", "self", "tried, itself"],
  ["plain", "model", "plain, a world model"],
] as const;

/** What is known of the agents' own candidates. */
export function knowledgeTable(study: Study): readonly string[] {
  const rows = KNOWERS.map(([arm, way, words]) => {
    const of = (what: (one: Knowledge) => number | undefined, places = 1): string =>
      meanOf(
        bySeed(study, arm, way, ({ choosing }) => choosing?.knowledge && what(choosing.knowledge)),
        places,
      );
    return [
      words,
      of(({ refused }) => 100 * refused),
      of(({ recall }) => recall && 100 * recall),
      of(({ falseAlarms }) => falseAlarms && 100 * falseAlarms),
      of(({ brier }) => brier, 3),
      of(({ brierOfShare }) => brierOfShare, 3),
      of(({ exact }) => 100 * exact),
    ];
  });
  return table(
    [
      ...["who predicts", "refused, %", "recall, %", "false alarms, %", "Brier", "of the share"],
      "word for word, %",
    ],
    rows,
  );
}

/** Which agents are compared, the first less the second. */
const AGENTS = [
  ["echo", "plain"],
  ["tried", "echo"],
] as const;

/** Differences between agents, paired by seed: what they know, and how they act. */
export function agentsTable(study: Study): readonly string[] {
  const knowledge = (arm: string, what: (one: Knowledge) => number | undefined): BySeed =>
    bySeed(study, arm, "self", ({ choosing }) => choosing?.knowledge && what(choosing.knowledge));
  const on = (way: string) => (arm: string) => bySeed(study, arm, way, success);
  const gain = (arm: string): BySeed => {
    const votes = on("vote")(arm);
    return new Map([...on("self")(arm)].map(([seed, own]) => [seed, own - votes.get(seed)!]));
  };
  const rows: readonly (readonly [string, (arm: string) => BySeed, number])[] = [
    ["recall of refusals, points", (arm) => knowledge(arm, (one) => 100 * one.recall!), 1],
    ["false alarms, points", (arm) => knowledge(arm, (one) => 100 * one.falseAlarms!), 1],
    ["Brier score", (arm) => knowledge(arm, ({ brier }) => brier), 3],
    ["self − vote, points", gain, 1],
    ...["acting", "greedy", "vote", "self"].map(
      (way) => [`success, ${WAYS[way]}, points`, on(way), 1] as const,
    ),
  ];
  const shown = AGENTS.filter((pair) => pair.every((arm) => armsIn(study).includes(arm)));
  return table(
    ["", ...shown.map(([one, other]) => `${one} − ${other} (95 %)`)],
    rows.map(([words, of, places]) => [
      words,
      ...shown.map(([one, other]) => {
        const difference = pairedDifference(of(one), of(other));
        return difference === undefined ? "" : withInterval(difference, places);
      }),
    ]),
  );
}

/** All of them. */
export const resultsPart = (study: Study): readonly string[] => [
  ...[...successTable(study), "", ...differenceTable(study), "", ...knowledgeTable(study), ""],
  ...agentsTable(study),
];
