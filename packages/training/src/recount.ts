/**
 * A recount: an update's numbers computed a second way, plainly, from its recorded episodes alone.
 *
 * It uses nothing that training computes with (`advantages/`, `update/`, `objectives/`,
 * `metrics.ts`); otherwise a replay would only show that they agree with themselves. Everything is
 * written as in the paper, over one flat list of steps, without regard to speed. What the record
 * does not determine is left out.
 */
import type { Advantages } from "@pawl/core/advantages/advantages.js";
import type { Episode, Group, Step } from "@pawl/core/rollout/episode.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { drawnLogprobs, type Sequence } from "@pawl/core/text/sequence.js";
import type { TrainConfig } from "./config.js";

/** What a recount needs in addition to the episodes. */
export interface RecountOptions {
  readonly config: Pick<TrainConfig, "paw" | "objective" | "minibatch" | "rollout" | "groupSize">;
  /** R_max of episodes that do not record their own, and the model's longest sequence. */
  readonly maxReturn: number;
  readonly maxTokens: number;
  /** Whether each episode is its own group, as with a critic. */
  readonly ownGroups: boolean;
  /**
   * Absent if they, or the ratios they are multiplied with, cannot be known: then there is no
   * policy loss.
   */
  readonly advantages: Advantages | undefined;
}

/** One step of an unbroken episode. */
interface Row {
  readonly group: number;
  readonly attempt: number;
  readonly step: number;
  /** The group whose λ applies. */
  readonly unit: number;
  readonly episode: Episode;
  readonly ids: readonly number[];
  readonly start: number;
  readonly end: number;
  /** The observation `[from, to)`; a chat template may write something before and after it. */
  readonly from: number;
  readonly to: number;
  /** Undefined if the log-probabilities were not recorded. */
  readonly entropy: number | undefined;
}

const sum = (values: readonly number[]): number => values.reduce((total, x) => total + x, 0);
const mean = (values: readonly number[]): number => sum(values) / Math.max(values.length, 1);

/** The numbers of an update that its record determines. */
export function recount(groups: readonly Group[], options: RecountOptions): MetricsLine {
  const { paw } = options.config;
  const units = options.ownGroups
    ? groups.flatMap((group) => group.episodes.map((episode) => [episode]))
    : groups.map((group) => [...group.episodes]);
  const rows = rowsOf(groups, units);
  const lambdas = lambdasOf(units, options);
  const isKnown = rows.every(({ entropy }) => entropy !== undefined);
  const selected = selectedRows(rows, options);
  const lengths = rows.map((row) =>
    selected.rows.has(row) && lambdas[row.unit]! > 0
      ? observationLength(row, options)
      : { read: row.end, targets: 0 },
  );
  const targets = sum(lengths.map((length) => length.targets));
  const actions = sum(rows.map(({ start, end }) => end - start));
  const taught = [...new Set(rows.map(({ unit }) => unit))];
  const isSelectable = isKnown && paw.entropy === "sampled";
  return {
    ...ofEpisodes(groups),
    ...ofBranches(groups, options),
    ...(rows.length > 0 && { "train.responseTokens": actions / rows.length }),
    ...equalShare(options.advantages),
    "world.lambda": paw.loss === "off" ? 0 : mean(taught.map((unit) => lambdas[unit]!)),
    "world.selectedShare": selected.rows.size / Math.max(selected.pool, 1),
    ...(isKnown &&
      (paw.loss === "off" || paw.entropy === "sampled") && {
        "policy.actionEntropy": mean(rows.map(({ entropy }) => entropy!)),
      }),
    ...(rows.length > 0 && { "policy.tokens": actions }),
    // Other targets have other lengths, which the record does not say.
    ...((paw.loss === "off" ||
      (isSelectable &&
        paw.targets === "own" &&
        paw.until === undefined &&
        paw.skip === undefined)) && {
      "world.targets": targets,
      "train.tokens": tokensRead(
        rows,
        lengths.map(({ read }) => read),
      ),
      ...(rows.length > 0 && paw.loss !== "off" && { "world.tokens": targets }),
    }),
    ...policyLoss(rows, options),
  };
}

/** The steps that only this episode took, or took first, after what a teacher did. */
const played = ({ steps, branch, hint }: Episode): readonly Step[] =>
  steps.filter((_, step) => step >= (branch?.step ?? 0) && step >= (hint ?? 0));

/** What branches share with the episodes that they branched off, where the rule says that they do. */
function ofBranches(
  groups: readonly Group[],
  { config: { rollout, groupSize } }: RecountOptions,
): MetricsLine {
  const { points, width, choose } = rollout.branch;
  if (points === 0) return {};
  const perTrunk = points * (width - 1);
  const trunks = groupSize / (1 + perTrunk);
  let shared = 0;
  const states: boolean[] = [];
  for (const { episodes } of groups)
    for (const trunk of episodes.slice(0, trunks)) {
      const { attempt, stop, steps, untrained, return: earned, hint = 0 } = trunk;
      if (stop === "broken" || untrained !== undefined) continue;
      if (steps.some(({ time }) => time !== undefined)) continue;
      const told = steps.slice(hint).map(({ valid, sequence }, step) => ({
        step,
        valid,
        h: surprise(sequence!),
      }));
      const failed = choose === "refused" ? told.find(({ valid }) => !valid)?.step : undefined;
      const chosen = told
        .filter(({ step }) => step > 0)
        .sort((a, b) => Number(b.step === failed) - Number(a.step === failed) || b.h - a.h)
        .slice(0, points)
        .map(({ step }) => step)
        .sort((a, b) => a - b);
      for (const [point, step] of chosen.entries()) {
        const start = trunks + attempt * perTrunk + point * (width - 1);
        const whole = episodes
          .slice(start, start + width - 1)
          .filter((episode) => episode.stop !== "broken");
        shared += whole.length * step;
        if (whole.length > 0) states.push(whole.some((episode) => episode.return !== earned));
      }
    }
  if (states.length === 0) return {};
  return {
    "branch.shared": shared,
    "branch.differ": states.filter((differ) => differ).length / states.length,
  };
}

/** The share of groups whose advantages are all 0 but for rounding. */
function equalShare(table: Advantages | undefined): MetricsLine {
  const groups = (table?.advantages ?? []).map((group) => group.flat(2));
  const played = groups.filter((numbers) => numbers.length > 0);
  if (played.length === 0) return {};
  const largest = played.map((numbers) => Math.max(...numbers.map(Math.abs)));
  return { "train.equalGroups": largest.filter((most) => most < 1e-9).length / played.length };
}

/** Success and related metrics: over unbroken episodes, and for each task type. */
function ofEpisodes(groups: readonly Group[]): MetricsLine {
  const all = groups.flatMap((group) => group.episodes);
  const whole = all.filter(({ stop }) => stop !== "broken");
  const steps = whole.flatMap(played);
  const successes = (episodes: readonly Episode[]) => mean(episodes.map((e) => Number(e.success)));
  const types = [...new Set(whole.map(({ task }) => task.type))];
  return {
    "train.broken": all.length - whole.length,
    ...replacedGroups(all),
    ...hintedGroups(groups),
    ...(whole.length > 0 && {
      "train.success": successes(whole),
      "train.return": mean(whole.map((episode) => episode.return)),
      "train.steps": steps.length / whole.length,
    }),
    ...(steps.length > 0 && {
      "train.invalid":
        steps.filter(({ wellFormed, valid }) => !(wellFormed && valid)).length / steps.length,
    }),
    ...Object.fromEntries(
      types.map((type) => [
        `train.success.${type}`,
        successes(whole.filter(({ task }) => task.type === type)),
      ]),
    ),
  };
}

/** What was played in place of these groups before, and not learnt. */
function replacedGroups(episodes: readonly Episode[]): MetricsLine {
  const notes = episodes.flatMap(({ replaced }) => replaced ?? []);
  if (notes.length === 0) return {};
  return {
    "curriculum.replaced": notes.length,
    "curriculum.tokens": sum(notes.map(({ tokens }) => tokens)),
  };
}

/** Where groups began with what a teacher had done. */
function hintedGroups(groups: readonly Group[]): MetricsLine {
  const lengths = groups.map(({ episodes }) => Math.max(0, ...episodes.map((e) => e.hint ?? 0)));
  const hinted = lengths.filter((length) => length > 0);
  if (hinted.length === 0) return {};
  return {
    "curriculum.hinted": hinted.length / groups.length,
    "curriculum.hintSteps": mean(hinted),
  };
}

/** The mean of −q·log q over an action's tokens, as they were sampled. */
const surprise = (sequence: Sequence): number =>
  mean((drawnLogprobs(sequence) ?? []).map((l) => (Math.exp(l) > 0 ? -l * Math.exp(l) : 0)));

function rowsOf(groups: readonly Group[], units: readonly (readonly Episode[])[]): readonly Row[] {
  const unitOf = new Map(units.flatMap((unit, u) => unit.map((episode) => [episode, u] as const)));
  return groups.flatMap(({ episodes }, group) =>
    episodes.flatMap((episode, attempt) =>
      (episode.stop === "broken" ? [] : played(episode)).map(({ sequence }, own): Row => {
        const step = own + (episode.steps.length - played(episode).length);
        const { ids, spans } = sequence!;
        const actions = spans.filter(({ kind }) => kind === "action");
        const seen = spans.filter(({ kind }) => kind === "observation");
        const logprobs = drawnLogprobs(sequence!);
        return {
          ...{ group, attempt, step, unit: unitOf.get(episode)!, episode, ids },
          start: actions[0]!.start,
          end: actions.at(-1)!.end,
          from: seen[0]?.start ?? actions.at(-1)!.end,
          to: seen.at(-1)?.end ?? actions.at(-1)!.end,
          entropy: logprobs && surprise(sequence!),
        };
      }),
    ),
  );
}

/** PaW eq. 10 for each group. */
function lambdasOf(
  units: readonly (readonly Episode[])[],
  { config: { paw }, maxReturn }: RecountOptions,
): readonly number[] {
  return units.map((unit) => {
    const whole = unit.filter(({ stop }) => stop !== "broken");
    if (whole.length === 0) return 0;
    if (paw.lambda !== "adaptive") return paw.lambda;
    const most = whole[0]!.maxReturn ?? maxReturn;
    return Math.min(1, Math.max(0, 1 - mean(whole.map((one) => one.return)) / most));
  });
}

/** PaW eq. 4: the ⌈α·N⌉ steps of highest entropy; of ties, the earlier. */
function selectedRows(
  rows: readonly Row[],
  { config: { paw } }: RecountOptions,
): { readonly pool: number; readonly rows: ReadonlySet<Row> } {
  if (paw.loss === "off") return { pool: 0, rows: new Set() };
  const pool = rows.filter((row) => row.to > row.from).map((row, place) => ({ row, place }));
  // 0.07 · 100 is slightly more than 7 in binary.
  const count = Math.ceil(paw.alpha * pool.length - 1e-9);
  const byEntropy = pool.sort(
    (a, b) => (b.row.entropy ?? 0) - (a.row.entropy ?? 0) || a.place - b.place,
  );
  return { pool: pool.length, rows: new Set(byEntropy.slice(0, count).map(({ row }) => row)) };
}

/** The tokens of a selected step that are read, and those of its observation, as far as they fit. */
function observationLength(
  { end, from, to }: Row,
  { maxTokens }: RecountOptions,
): { readonly read: number; readonly targets: number } {
  const targets = Math.min(to - from, maxTokens - from);
  return targets > 0 ? { read: from + targets, targets } : { read: end, targets: 0 };
}

/** Tokens in all passes: a step that is a prefix of the next step's prompt is read there. */
function tokensRead(rows: readonly Row[], lengths: readonly number[]): number {
  return sum(
    rows.map(({ ids }, i) => {
      const [next, length] = [rows[i + 1], lengths[i]!];
      const goesOn =
        next !== undefined &&
        next.start >= length &&
        ids.slice(0, length).every((id, at) => id === next.ids[at]);
      return goesOn ? 0 : length;
    }),
  );
}

/**
 * L_RL (PaW eq. 1) of an update with one mini-batch, before any weight has moved: every ratio is 1,
 * nothing is clipped, and what remains is minus the mean advantage.
 */
function policyLoss(
  rows: readonly Row[],
  { config: { objective, minibatch }, advantages }: RecountOptions,
): MetricsLine {
  if (advantages === undefined || rows.length === 0) return {};
  // CISPO multiplies with log p, and a plugin's loss is another function of the advantages.
  if (objective.loss !== "clip" && objective.loss !== "gspo") return {};
  if (Math.round(rows.length / minibatch) > 1) return {};
  const tokens = sum(rows.map(({ start, end }) => end - start));
  const units = [...new Set(rows.map(({ unit }) => unit))];
  const episodesIn = new Map(
    units.map((unit) => [
      unit,
      new Set(rows.filter((row) => row.unit === unit).map(({ episode }) => episode)).size,
    ]),
  );
  const losses = rows.map(({ group, attempt, step, unit, start, end }) => {
    const advantage = advantages.advantages[group]![attempt]![step]!;
    const total = typeof advantage === "number" ? (end - start) * advantage : sum(advantage);
    const shares = {
      "token-mean": tokens,
      "response-mean": rows.length * (end - start),
      "group-mean": units.length * episodesIn.get(unit)!,
    };
    return -total / shares[objective.aggregation];
  });
  return { "policy.loss": sum(losses) };
}

/** The mean number of updates by which the weights that drew the episodes are older than this one. */
export function recountStaleness(groups: readonly Group[], update: number): number {
  let [sum, count] = [0, 0];
  for (const { episodes } of groups)
    for (const { weights = update } of episodes) {
      sum += update - weights;
      count += 1;
    }
  return sum / count;
}
