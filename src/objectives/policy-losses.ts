/**
 * The policy's losses by name: `clip`, the clipped policy gradient (`policy.ts`), and those of
 * plugins.
 */
import { addedParts } from "../added-parts.js";
import { UserError } from "../errors.js";
import type { Expr } from "./expression.js";
import { checkExpression } from "./loss-plugin.js";
import { type LossOptions, type LossSettings, lossesBySetting } from "./world-loss.js";

/** A loss of one action token, in place of the clipped policy gradient. */
export interface PolicyLoss<S extends LossSettings = LossSettings> {
  /** Its name in help. */
  readonly title: string;
  /** Its own settings, which become settings of the objective. */
  readonly settings: S;
  /** The loss of one token, unweighted, over `logprob`, `oldLogprob` and `advantage`. */
  token(options: LossOptions<S>): Expr;
}

/** The default. */
export const CLIP = "clip";

const plugins = addedParts<PolicyLoss>("policyLosses");

/** The names of the losses; the first is the default. */
export const policyLossNames = (): [string, ...string[]] => [CLIP, ...plugins.keys()];

/** What help calls them. */
export const policyLossTitles = (): readonly string[] => [
  "the clipped policy gradient",
  ...[...plugins.values()].map(({ title }) => title),
];

/** The settings of all plugins' losses together. */
export const policyLossSettings = (): Readonly<Record<never, never>> =>
  Object.assign({}, ...[...plugins.values()].map(({ settings }) => settings)) as object;

/** The losses that have each setting. */
export const policyLossesBySetting = (): ReadonlyMap<string, readonly string[]> =>
  lossesBySetting(plugins);

/** The loss of an action token by a plugin's loss; undefined for the clipped policy gradient. */
export function policyTokenLoss(options: { readonly loss: string }): Expr | undefined {
  const { loss: name } = options;
  if (name === CLIP) return undefined;
  const loss = plugins.get(name);
  if (loss === undefined) throw new UserError(`there is no policy loss "${name}"`);
  const given = loss.token(options as unknown as LossOptions<LossSettings>);
  return checkExpression(`policy loss "${name}"`, given, ["oldLogprob", "advantage"]);
}
