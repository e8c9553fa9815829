/** The policy's losses by name: those of this package, and those of plugins. */
import { addedParts } from "../added-parts.js";
import { cispo } from "./cispo.js";
import type { Expr } from "./expression.js";
import { gspo } from "./gspo.js";
import { checkExpression } from "./loss-plugin.js";
import { clip, type OwnPolicyLoss, type TokenLoss } from "./policy.js";
import { type LossOptions, type LossSettings, lossesBySetting } from "./world-loss.js";

/** A loss of one action token, brought by a plugin. */
export interface PolicyLoss<S extends LossSettings = LossSettings> {
  /** Its name in help. */
  readonly title: string;
  /** Its own settings, which become settings of the objective. */
  readonly settings: S;
  /** The loss of one token, unweighted, over `logprob`, `oldLogprob` and `advantage`. */
  token(options: LossOptions<S>): Expr;
}

/** In the order that help lists them; the first is the default. */
const own = { clip, cispo, gspo };

const plugins = addedParts<PolicyLoss>("policyLosses");

type AnyLoss = PolicyLoss | OwnPolicyLoss<LossSettings>;

const all = (): ReadonlyMap<string, AnyLoss> =>
  new Map<string, AnyLoss>([
    ...Object.entries(own as unknown as Readonly<Record<string, AnyLoss>>),
    ...plugins,
  ]);

/** The names of the losses; the first is the default. */
export const policyLossNames = () =>
  [...all().keys()] as unknown as [keyof typeof own, ...(keyof typeof own)[]];

/** What help calls them. */
export const policyLossTitles = (): readonly string[] =>
  [...all().values()].map(({ title }) => title);

type OwnSettings = typeof clip.settings & typeof cispo.settings & typeof gspo.settings;

/** The settings of all losses together. */
export const policyLossSettings = (): OwnSettings =>
  Object.assign({}, ...[...all().values()].map(({ settings }) => settings)) as OwnSettings;

/** The losses that have each setting. */
export const policyLossesBySetting = (): ReadonlyMap<string, readonly string[]> =>
  lossesBySetting(all());

/** The loss of an action token by the loss that the options name. */
export function policyTokenLoss(options: { readonly loss: string }): TokenLoss {
  const { loss: name } = options;
  const given = all()
    .get(name)!
    .token(options as unknown as LossOptions<LossSettings>);
  if (!plugins.has(name)) return given as TokenLoss;
  const inputs = ["oldLogprob", "advantage"];
  return { loss: checkExpression(`policy loss "${name}"`, given as Expr, inputs), metrics: {} };
}
