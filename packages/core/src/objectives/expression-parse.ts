/** Parses objectives from untrusted JSON, and rejects what is malformed or too large. */
import {
  type Expr,
  ExpressionError,
  INPUT_NAME,
  type Objective,
  OPERANDS,
  type Op,
} from "./expression.js";

/** How large an objective may be. Losses in use have about 50 nodes, nested about 12 deep. */
export const OBJECTIVE_LIMITS = { nodes: 4096, depth: 128, metrics: 128 } as const;

const METRIC_NAME = /^[A-Za-z][A-Za-z0-9_./-]{0,127}$/;

/** The objective that a JSON value describes; errors name the place and what was expected. */
export function parseObjective(json: unknown): Objective {
  const { loss, metrics } = fieldsOf(json, "objective", ["loss", "metrics"]);
  const budget = { nodes: OBJECTIVE_LIMITS.nodes };
  const parsedLoss = parseNode(loss, "loss", 1, budget);
  const entries = Object.entries(recordOf(metrics, "metrics"));
  if (entries.length > OBJECTIVE_LIMITS.metrics)
    throw new ExpressionError(
      `metrics: expected at most ${OBJECTIVE_LIMITS.metrics}, found ${entries.length}`,
    );
  return {
    loss: parsedLoss,
    metrics: Object.fromEntries(
      entries.map(([name, metric]) => {
        if (!METRIC_NAME.test(name))
          throw new ExpressionError(
            `metrics: ${show(name)} is not a valid metric name; expected a letter followed by at most 127 letters, digits or _ . / -`,
          );
        return [name, parseNode(metric, `metrics.${name}`, 1, budget)];
      }),
    ),
  };
}

// Recursive, since the limit on depth also bounds the stack.
function parseNode(json: unknown, path: string, depth: number, budget: { nodes: number }): Expr {
  if (depth > OBJECTIVE_LIMITS.depth)
    throw new ExpressionError(
      `${path}: nested deeper than ${OBJECTIVE_LIMITS.depth} operations; write the expression flatter`,
    );
  budget.nodes -= 1;
  if (budget.nodes < 0)
    throw new ExpressionError(
      `${path}: the objective has more than ${OBJECTIVE_LIMITS.nodes} nodes; split it or make it smaller`,
    );
  const op = recordOf(json, path).op;
  if (typeof op !== "string" || !Object.hasOwn(OPERANDS, op))
    throw new ExpressionError(
      `${path}: unknown op ${show(op)}; known: ${Object.keys(OPERANDS).join(", ")}`,
    );
  if (op === "const") {
    const { value } = fieldsOf(json, path, ["op", "value"]);
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new ExpressionError(`${path}.value: expected a finite number, found ${show(value)}`);
    return { op, value };
  }
  if (op === "input") {
    const { name } = fieldsOf(json, path, ["op", "name"]);
    if (typeof name !== "string" || !INPUT_NAME.test(name))
      throw new ExpressionError(
        `${path}.name: expected a letter followed by at most 63 letters, digits or _, found ${show(name)}`,
      );
    return { op, name };
  }
  const operands = OPERANDS[op as Op];
  const fields = fieldsOf(json, path, ["op", ...operands]);
  return Object.fromEntries([
    ["op", op],
    ...operands.map((field) => [
      field,
      parseNode(fields[field], `${path}.${field}`, depth + 1, budget),
    ]),
  ]) as Expr;
}

/** The fields of a JSON object that must have exactly these. */
function fieldsOf(
  json: unknown,
  path: string,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const record = recordOf(json, path);
  const missing = names.find((name) => !Object.hasOwn(record, name));
  if (missing !== undefined)
    throw new ExpressionError(
      `${path}: field ${show(missing)} is missing; expected ${names.join(", ")}`,
    );
  const unexpected = Object.keys(record).find((name) => !names.includes(name));
  if (unexpected !== undefined)
    throw new ExpressionError(
      `${path}: unexpected field ${show(unexpected)}; expected only ${names.join(", ")}`,
    );
  return record;
}

function recordOf(json: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new ExpressionError(`${path}: expected an object, found ${show(json)}`);
  return json as Readonly<Record<string, unknown>>;
}

/** A value for an error text: short, and never throws. */
function show(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}
