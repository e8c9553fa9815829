/** Checks a loss that a plugin brings, before the settings offer it. */
import { UserError } from "../errors.js";
import { type Expr, ExpressionError } from "./expression.js";
import { inputsOf, quantitiesOf } from "./expression-interpret.js";
import { parseObjective } from "./expression-parse.js";

/** What world-model and policy losses have in common. */
interface AnyLoss {
  readonly title: string;
  readonly settings: object;
  token(options: never): Expr;
}

/** What is there already. */
interface Taken {
  readonly names: readonly string[];
  /** The settings beside which the loss's own will stand, by name. */
  readonly settings: object;
}

const NAME = /^[a-z][a-z0-9-]*$/;

/** Throws if a loss is no loss, or if its name or one of its settings is taken. */
export function checkLoss(what: string, name: string, loss: AnyLoss, taken: Taken): void {
  if (!NAME.test(name))
    throw new UserError(`${what}: a name consists of lowercase letters, digits and dashes`);
  if (taken.names.includes(name))
    throw new UserError(
      `${what}: the name is taken; choose another than ${taken.names.join(", ")}`,
    );
  if (
    typeof loss?.title !== "string" ||
    typeof loss.token !== "function" ||
    typeof loss.settings !== "object"
  )
    throw new UserError(
      `${what}: expected { title, settings, token(options) }, where token gives an expression`,
    );
  const doubled = Object.keys(loss.settings).find((key) => key in taken.settings);
  if (doubled !== undefined)
    throw new UserError(
      `${what}: there is a setting "${doubled}" already; give the loss's own another name`,
    );
}

/**
 * What a plugin's loss gave, if it is an expression over the log-probability and the inputs that
 * its tokens have.
 */
export function checkExpression(what: string, given: Expr, inputs: readonly string[]): Expr {
  try {
    const { loss } = parseObjective({ loss: given, metrics: {} });
    const used = [...quantitiesOf(loss), ...inputsOf(loss)];
    const unknown = used.find((name) => !["logprob", ...inputs].includes(name));
    if (unknown === undefined) return loss;
    throw new ExpressionError(
      `its tokens have no "${unknown}", only ${["logprob", ...inputs].join(", ")}`,
    );
  } catch (error) {
    throw new UserError(`${what}: ${(error as Error).message}`, { cause: error });
  }
}
