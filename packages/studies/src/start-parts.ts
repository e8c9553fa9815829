/**
 * Parts of an arm that change what its RL starts from. Each such start is made once per setting, for
 * all seeds, like the setting's own warm start.
 */
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { TrainConfig } from "@pawl/training/config.js";

/** The part whose start is trained by RWML. */
const RWML = "rwml";
/** The mean over observations weighs as much as that over actions, unless the arm says otherwise. */
const ACTOBS_WEIGHT = 1;

/** These parts in the order in which they happen. */
export const startParts: Readonly<Record<string, string>> = {
  "actobs[=NUMBER]": `the warm start learns observations too: their mean has this weight, that of actions its own (default: ${ACTOBS_WEIGHT})`,
  [RWML]: "the start goes through pawl rwml before RL (--rwml.… are its settings)",
};

const ACTOBS = /^actobs(?:=(\d+(?:\.\d+)?))?$/;

/** Whether a part of an arm changes the start. */
export const isStartPart = (part: string): boolean => ACTOBS.test(part) || part === RWML;

/** The name of an arm's start: its parts, the warm start's before RWML; "" is the setting's own. */
export function startNameOf(arm: string): string {
  const parts = arm.split("+").filter(isStartPart);
  return [...parts].sort((a, b) => Number(a === RWML) - Number(b === RWML)).join("+");
}

/** The start that RWML continues from; undefined for starts without RWML. */
export function startBefore(name: string): string | undefined {
  const parts = name.split("+");
  return parts.at(-1) === RWML ? parts.slice(0, -1).join("+") : undefined;
}

/** The folder of a start inside its setting's. */
export const startFolderName = (name: string): string => (name === "" ? "start" : `start-${name}`);

/** The weight of observations in a start's warm start; undefined: as in the setting. */
export function observationWeightOf(
  name: string,
  { warmStart }: Pick<TrainConfig, "warmStart">,
): number | undefined {
  const parts = name.split("+").filter((part) => ACTOBS.test(part));
  if (parts.length === 0) return undefined;
  if (parts.length > 1) throw new ConfigError(`--arms: expected one of ${parts.join(" and ")}`);
  const weight = Number(ACTOBS.exec(parts[0]!)![1] ?? ACTOBS_WEIGHT);
  if (warmStart.episodes === 0)
    throw new ConfigError(
      `--arms: ${parts[0]} teaches observations in the warm start, and there is none: set --train.warm-start.episodes, or leave the arm out`,
    );
  const { observationWeight, mean } = warmStart.sft;
  if (observationWeight === weight && mean === "each")
    throw new ConfigError(
      `--arms: ${parts[0]} is the warm start of this setting already (its observationWeight is ${weight}): use the setting actions-only, or another weight`,
    );
  return weight;
}
