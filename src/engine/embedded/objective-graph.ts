/** Compiles an objective into graph operators: the loss, its derivatives and its metrics, per target token. */
import {
  type BinaryOp,
  type Expr,
  type Objective,
  QUANTITIES,
  type Quantity,
} from "../../objectives/expression.js";
import { derivative } from "../../objectives/expression-derivative.js";
import { type Algebra, interpretAll, quantitiesOf } from "../../objectives/expression-interpret.js";
import { emit, floatConstant, type Tensor } from "./graph.js";
import { broadcasting, cast, compare, elementwise, shapeOf, unary, where } from "./operators.js";

/** The compiled objective; every tensor is a column [targets, 1]. */
export interface CompiledObjective {
  readonly loss: Tensor;
  readonly metrics: readonly Tensor[];
  /** d loss / d quantity, for the quantities the loss depends on. */
  readonly seeds: ReadonlyMap<Quantity, Tensor>;
}

/** Columns of quantities that a graph has computed; log-probabilities are always included. */
export type Quantities = Readonly<Partial<Record<Quantity, Tensor>> & Record<"logprob", Tensor>>;

/** The model quantities that an objective reads, in its loss or in a metric. */
export function quantitiesRead(objective: Objective): readonly Quantity[] {
  return quantitiesOf(objective.loss, ...Object.values(objective.metrics));
}

/** Emits the objective over the given columns [targets, 1]. */
export function compileObjective(
  objective: Objective,
  quantities: Quantities,
  inputs: ReadonlyMap<string, Tensor>,
): CompiledObjective {
  const used = QUANTITIES.filter((quantity) => quantitiesOf(objective.loss).includes(quantity));
  const expressions: readonly Expr[] = [
    objective.loss,
    ...used.map((quantity) => derivative(objective.loss, quantity)),
    ...Object.values(objective.metrics),
  ];
  const { logprob } = quantities;
  const size = shapeOf(logprob);
  // A result is always a column, even if it is a plain number, and a new tensor, even if it is an
  // input.
  const columns = interpretAll(expressions, graphAlgebra(quantities, inputs)).map((column) =>
    emit({ op: "Expand", inputs: [column, size], shape: logprob.shape }),
  );
  return {
    loss: columns[0]!,
    seeds: new Map(used.map((quantity, i) => [quantity, columns[1 + i]!])),
    metrics: columns.slice(1 + used.length),
  };
}

function graphAlgebra(
  quantities: Quantities,
  inputs: ReadonlyMap<string, Tensor>,
): Algebra<Tensor> {
  const { graph } = quantities.logprob;
  const present = (tensor: Tensor | undefined, what: string): Tensor => {
    if (tensor === undefined) throw new Error(`the graph has no ${what}`);
    return tensor;
  };
  return {
    constant: (value) => floatConstant(graph, value),
    input: (name) => present(inputs.get(name), `input ${name}`),
    quantity: (name) => present(quantities[name], name),
    unary: (op, x) => (op === "stopGradient" ? x : unary(UNARY[op], x)),
    binary: (op, x, y) => {
      switch (op) {
        case "less":
        case "lessEqual":
          return cast(compare(COMPARE[op], x, y), "float32");
        case "min":
        case "max":
          return choose(op, x, y);
        default:
          return elementwise(BINARY[op], x, y);
      }
    },
    clamp: (x, low, high) => choose("min", choose("max", x, low), high),
    select: (condition, x, y) => {
      const isZero = compare("Equal", condition, floatConstant(graph, 0));
      return where(unary("Not", isZero), x, y);
    },
  };
}

const UNARY = { neg: "Neg", exp: "Exp", log: "Log", abs: "Abs" } as const;
const BINARY = { add: "Add", sub: "Sub", mul: "Mul", div: "Div" } as const;
const COMPARE = { less: "Less", lessEqual: "LessOrEqual" } as const satisfies Partial<
  Record<BinaryOp, string>
>;

function choose(op: "min" | "max", x: Tensor, y: Tensor): Tensor {
  return broadcasting(op === "min" ? "Min" : "Max", [x, y], "float32");
}
