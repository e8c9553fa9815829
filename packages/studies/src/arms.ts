/**
 * The arms of a comparison: an algorithm, and what world modelling is added to it.
 *
 * An arm is written as `grpo` (no world modelling), `grpo+paw`, `grpo+ce`, or with several changes
 * as `grpo+rho=0.5+kl=0.1`. Everything but `plain` is PaW as in the base configuration, with the
 * named changes. Arms such as `rwml` change what RL starts from instead (`start-parts.ts`): alone they
 * have no world modelling during RL, so that the difference to the plain arm is the start's.
 */
import { type AdvantageOptions, estimatorNames } from "@pawl/core/advantages/advantages.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { mergeTrees } from "@pawl/core/config/settings-tree.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import type { TrainConfig } from "@pawl/training/config.js";
import type { Changes } from "./settings.js";
import { isStartPart, startParts } from "./start-parts.js";

/** Every advantage estimator there is. */
export const algorithms = (): readonly Algorithm[] => estimatorNames();
export type Algorithm = AdvantageOptions["name"];

/** RLOO as in the reference implementation of PaW, which the paper compares with. */
const OWN: Partial<Record<Algorithm, Changes>> = { rloo: { per: "step" } };

/** The baseline arm. */
export const PLAIN = "plain";
/**
 * λ of every group in the arm `fixed`, as in the paper's ablation without adaptive λ (PaW table 4).
 */
const FIXED_LAMBDA = 1;

interface Variant {
  readonly does: string;
  readonly changes: Changes;
}

/** λ of the arm `echo`: ECHO (arXiv 2605.24517) adds cross-entropy at 0.05 to 0.1. */
const ECHO_LAMBDA = 0.05;

/** What a harbour's log says, as long as what a house answers: nothing of it is in any world here. */
const FOREIGN = `${[
  "The ferry leaves pier 4 at noon. Two crates of lemons and a bicycle are still on the quay.",
  "Wind from the north-west, 5 knots. The lighthouse reports fog beyond the second buoy.",
  "A trawler asks for ice. The harbour master grants berth 12, next to the pilot boat.",
  "The crane lifts a container from the barge. It weighs 9 tonnes, and the ropes hold.",
  "Low tide. The sandbank lies bare, and seals rest on it until the evening.",
  "The customs officer counts 30 sacks of coffee, one fewer than on the list.",
  "Nobody answers the radio. The coastguard sends a cutter to the wreck.",
  "The diver comes up with a chain. He says the anchor is stuck in old nets.",
  "High water at six. The lock keeper opens the gate for a sailing school.",
  "The net is torn in three places. It takes the crew all afternoon to mend it.",
  "A storm warning: gusts of 50 knots before midnight. All small boats stay in port.",
  "The cook buys mackerel from the stall by the bridge, and pays with a bottle of rum.",
].join("\n")}\n`;

/** Where a house begins to list what is seen in a place, with the words that lead to it. */
const SEEN = "\\s*(On|In|Inside|Next to) (the [^,.]*|it), you see";

const paw = (changes: Changes): Changes => ({ paw: changes });

/** Changes by name. */
export const variants: Readonly<Record<string, Variant>> = {
  [PLAIN]: { does: "no world modelling", changes: paw({ loss: "off" }) },
  paw: { does: "PaW", changes: {} },
  fixed: { does: `λ = ${FIXED_LAMBDA} for every group`, changes: paw({ lambda: FIXED_LAMBDA }) },
  ce: { does: "cross-entropy instead of clipped MAE", changes: paw({ loss: "ce" }) },
  echo: {
    does: `ECHO: cross-entropy on all transitions, λ = ${ECHO_LAMBDA}, mean over all their tokens`,
    changes: paw({ loss: "ce", alpha: 1, lambda: ECHO_LAMBDA, aggregation: "token-mean" }),
  },
  shuffled: {
    does: "PaW with what followed other transitions as targets",
    changes: paw({ targets: "shuffled" }),
  },
  foreign: {
    does: "PaW with texts of another world as targets",
    changes: paw({ targets: FOREIGN }),
  },
  effect: {
    does: "PaW up to the list of what is seen: what changes through actions",
    changes: paw({ until: SEEN }),
  },
  alternating: {
    does: "as echo, in every fourth update only",
    changes: paw({
      loss: "ce",
      alpha: 1,
      lambda: ECHO_LAMBDA,
      aggregation: "token-mean",
      every: 4,
    }),
  },
  mae: { does: "MAE without the mask", changes: paw({ loss: "mae" }) },
  above: { does: "the mask keeps p ≥ ρ", changes: paw({ mask: "above" }) },
  margin: { does: "the mask keeps p ≤ 1 − ρ", changes: paw({ mask: "margin" }) },
  full: { does: "selection by full entropy", changes: paw({ entropy: "full" }) },
};

/** Changes with a number, such as `alpha=0.25`. */
export const numbered: Readonly<
  Record<string, { readonly does: string; readonly changes: (value: number) => Changes }>
> = {
  alpha: { does: "α of the selection", changes: (alpha) => paw({ alpha }) },
  rho: { does: "ρ of the mask", changes: (rho) => paw({ rho }) },
  lambda: { does: "a fixed λ", changes: (lambda) => paw({ lambda }) },
  kl: { does: "coefficient of the KL penalty", changes: (kl) => ({ objective: { kl } }) },
  beta2: { does: "Adam's β₂", changes: (beta2) => ({ optimizer: { beta2 } }) },
};

/** `grpo` for the plain arm, `grpo+ce` for others. */
export function armName(algorithm: Algorithm, arm: string): string {
  const parts = arm.split("+").filter((part) => part !== PLAIN);
  return [algorithm, ...parts].join("+");
}

/** What an arm changes, by its name. */
export function changesOfArm(name: string): Changes {
  const [, ...parts] = name.split("+");
  return parts
    .filter((part) => !isStartPart(part))
    .map(changesOf)
    .reduce(mergeTrees, {});
}

/** A configuration with the algorithm and the changes of an arm. */
export function armConfig(base: Changes, algorithm: Algorithm, arm: string): Changes {
  const { advantage, paw: given } = base as TrainConfig;
  const { penalty, penaltyPlace, penaltyOn } = advantage;
  // Estimators share few settings; those of another one would be rejected.
  const other = { name: algorithm, penalty, penaltyPlace, penaltyOn, ...OWN[algorithm] };
  const own = advantage.name === algorithm ? advantage : other;
  const on = { ...given, loss: given.loss === "off" ? "cmae" : given.loss };
  const parts = arm.split("+").filter((part) => !isStartPart(part));
  const changed = (parts.length === 0 ? [PLAIN] : parts)
    .map(changesOf)
    .reduce(mergeTrees, { ...base, advantage: own, paw: on });
  // Settings of world modelling are refused where there is none.
  return (changed as TrainConfig).paw.loss === "off"
    ? { ...changed, paw: { loss: "off" } }
    : changed;
}

function changesOf(part: string): Changes {
  const [name, text] = part.split("=") as [string, string?];
  if (text === undefined && variants[name] !== undefined) return variants[name].changes;
  const value = Number(text);
  if (numbered[name] !== undefined && text !== undefined && text !== "" && Number.isFinite(value))
    return numbered[name].changes(value);
  const names = [
    ...Object.keys(variants),
    ...Object.keys(numbered).map((key) => `${key}=NUMBER`),
    ...Object.keys(startParts),
  ];
  throw new ConfigError(
    `--arms: expected ${names.join(", ")}, or several joined by +, got "${part}".${didYouMean(part, names)}`,
  );
}
