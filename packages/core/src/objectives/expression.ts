/**
 * The language of objectives: elementwise expressions over the quantities of one target token.
 *
 * An expression is a plain object and its own JSON form, so the one definition of a loss is
 * evaluated and differentiated in tests, compiled into the embedded engine's graph, and sent to a
 * GPU server. There are no loops, variables or calls: every expression has a value, computed in
 * time linear in its size. Numbers follow IEEE 754 (0 / 0 is NaN, log 0 is -Infinity). A quantity
 * or an input is one number per target token.
 */

/** What the model produces for a target token, and what a loss is differentiated by. */
export const QUANTITIES = ["logprob", "value", "entropy"] as const;
export type Quantity = (typeof QUANTITIES)[number];

export type UnaryOp = "neg" | "exp" | "log" | "abs" | "stopGradient";

/** `less` and `lessEqual` give 1 or 0 and carry no gradient. */
export type BinaryOp = "add" | "sub" | "mul" | "div" | "min" | "max" | "less" | "lessEqual";

/** An expression; also its JSON form. */
export type Expr =
  | { readonly op: "const"; readonly value: number }
  /** A per-token constant that is known before the forward pass. */
  | { readonly op: "input"; readonly name: string }
  | { readonly op: Quantity }
  | { readonly op: UnaryOp; readonly x: Expr }
  | { readonly op: BinaryOp; readonly x: Expr; readonly y: Expr }
  /** min(max(x, low), high). */
  | { readonly op: "clamp"; readonly x: Expr; readonly low: Expr; readonly high: Expr }
  /** x if the condition is not 0 (NaN is not 0), else y. */
  | { readonly op: "select"; readonly condition: Expr; readonly x: Expr; readonly y: Expr };

export type Op = Expr["op"];

/** The operands of each operation, by field name and in order. */
export const OPERANDS: Readonly<Record<Op, readonly string[]>> = {
  const: [],
  input: [],
  logprob: [],
  value: [],
  entropy: [],
  neg: ["x"],
  exp: ["x"],
  log: ["x"],
  abs: ["x"],
  stopGradient: ["x"],
  add: ["x", "y"],
  sub: ["x", "y"],
  mul: ["x", "y"],
  div: ["x", "y"],
  min: ["x", "y"],
  max: ["x", "y"],
  less: ["x", "y"],
  lessEqual: ["x", "y"],
  clamp: ["x", "low", "high"],
  select: ["condition", "x", "y"],
};

/** A loss, and the metrics to report with it; each is summed over all target tokens. */
export interface Objective {
  readonly loss: Expr;
  readonly metrics: Readonly<Record<string, Expr>>;
  /**
   * Whether many targets are expected to have no gradient; an engine may skip them in the backward
   * pass.
   */
  readonly sparse?: boolean;
}

/** An expression or objective that is not well formed; the message has the place and the fix. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

/** What builders take: an expression, or a number for a constant. */
export type Operand = Expr | number;

/** Valid names of inputs; narrow, because they become graph inputs and keys of Python dicts. */
export const INPUT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** The same number for every token; finite, because JSON has no other numbers. */
export function constant(value: number): Expr {
  if (!Number.isFinite(value))
    throw new ExpressionError(`a constant must be a finite number, but it is ${value}`);
  // JSON drops the sign of zero, so it is dropped here too.
  return { op: "const", value: value === 0 ? 0 : value };
}

/** A per-token constant that is known before the forward pass, such as its advantage. */
export function input(name: string): Expr {
  if (!INPUT_NAME.test(name))
    throw new ExpressionError(
      `an input's name must be a letter followed by at most 63 letters, digits or _, but it is ${JSON.stringify(name)}`,
    );
  return { op: "input", name };
}

/** The model's log-probability of the target token. */
export const logprob: Expr = { op: "logprob" };
/** The value head's output where the target token is predicted. */
export const value: Expr = { op: "value" };
/** Entropy of the whole distribution that the target token is sampled from. */
export const entropy: Expr = { op: "entropy" };

function lift(operand: Operand): Expr {
  return typeof operand === "number" ? constant(operand) : operand;
}

const unary =
  (op: UnaryOp) =>
  (x: Operand): Expr => ({ op, x: lift(x) });

const binary =
  (op: BinaryOp) =>
  (x: Operand, y: Operand): Expr => ({ op, x: lift(x), y: lift(y) });

const leftFold =
  (op: BinaryOp) =>
  (first: Operand, ...rest: readonly Operand[]): Expr =>
    rest.reduce<Expr>((x, y) => ({ op, x, y: lift(y) }), lift(first));

export const neg = unary("neg");
export const exp = unary("exp");
/** Natural logarithm. */
export const log = unary("log");
export const abs = unary("abs");
/** The value of x, as a constant: no gradient flows through it. */
export const stopGradient = unary("stopGradient");
/** The sum of all operands. */
export const add = leftFold("add");
export const sub = binary("sub");
/** The product of all operands. */
export const mul = leftFold("mul");
export const div = binary("div");
/** The smallest operand. */
export const min = leftFold("min");
/** The largest operand. */
export const max = leftFold("max");
/** 1 if x < y, else 0. */
export const less = binary("less");
/** 1 if x ≤ y, else 0. */
export const lessEqual = binary("lessEqual");

/** x, but no less than `low` and no more than `high` (`high` wins if they cross). */
export function clamp(x: Operand, low: Operand, high: Operand): Expr {
  return { op: "clamp", x: lift(x), low: lift(low), high: lift(high) };
}

/** x if the condition is not 0, else y; the branch not taken has no effect. */
export function select(condition: Operand, x: Operand, y: Operand): Expr {
  return { op: "select", condition: lift(condition), x: lift(x), y: lift(y) };
}

/** The objective whose loss is the sum of the given losses and that reports all their metrics. */
export function sumObjectives(...objectives: readonly Objective[]): Objective {
  const metrics = new Map<string, Expr>();
  for (const objective of objectives) {
    for (const [name, metric] of Object.entries(objective.metrics)) {
      if (metrics.has(name))
        throw new ExpressionError(
          `two of the summed objectives have a metric ${JSON.stringify(name)}; rename one of them`,
        );
      metrics.set(name, metric);
    }
  }
  const [first = constant(0), ...rest] = objectives.map((objective) => objective.loss);
  return {
    loss: add(first, ...rest),
    metrics: Object.fromEntries(metrics),
    ...(objectives.some(({ sparse }) => sparse) && { sparse: true }),
  };
}

/** All expressions of an objective: its loss, then its metrics. */
export function expressionsOf(objective: Objective): readonly Expr[] {
  return [objective.loss, ...Object.values(objective.metrics)];
}
