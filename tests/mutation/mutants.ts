/**
 * Mutants: small mistakes that a test suite should notice, one at a time.
 *
 * Not mutated: types, imports, texts (messages, help) and what is thrown, because the condition
 * decides whether it is thrown.
 */
import { parseAst } from "vitest/node";

/** One change to a source text. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** From 1. */
  readonly line: number;
  /** The text that is replaced, shortened, and its line. */
  readonly original: string;
  readonly context: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const SWAPPED: Readonly<Record<string, string>> = {
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "**": "*",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
  "+=": "-=",
  "-=": "+=",
};
const SWAPPED_CALLS: Readonly<Record<string, string>> = {
  max: "min",
  min: "max",
  some: "every",
  every: "some",
  ceil: "floor",
  floor: "ceil",
};
const TYPES_WITH_CODE = ["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"];

/** All mutants of a source text, in order. */
export function mutantsOf(source: string): readonly Mutant[] {
  const found: Mutant[] = [];
  const text = ({ start, end }: Node): string => source.slice(start, end);
  const add = ({ start, end }: { readonly start: number; readonly end: number }, by: string) => {
    const before = source.lastIndexOf("\n", start - 1) + 1;
    const after = source.indexOf("\n", start);
    found.push({
      start,
      end,
      replacement: by,
      line: source.slice(0, start).split("\n").length,
      original: source.slice(start, end),
      context: source.slice(before, after < 0 ? undefined : after).trim(),
    });
  };
  /** The operator between two parts. */
  const operator = (left: Node, right: Node, sign: string): void => {
    const start = source.indexOf(sign, left.end);
    const by = SWAPPED[sign];
    if (by !== undefined && start < right.start) add({ start, end: start + sign.length }, by);
  };
  const visit = (node: Node): void => {
    if (node.type.startsWith("TS") && !TYPES_WITH_CODE.includes(node.type)) return;
    switch (node.type) {
      case "ImportDeclaration":
      case "TemplateLiteral":
      case "ThrowStatement":
        return;
      case "BinaryExpression":
      case "LogicalExpression":
      case "AssignmentExpression": {
        const { left, right } = node as unknown as { readonly left: Node; readonly right: Node };
        if (node.operator === "??") add(node, `(${text(right)})`);
        else operator(left, right, String(node.operator));
        break;
      }
      case "ConditionalExpression":
      case "IfStatement": {
        const test = node.test as Node;
        for (const answer of ["true", "false"]) add(test, answer);
        break;
      }
      case "UnaryExpression": {
        const argument = node.argument as Node;
        if (["!", "-"].includes(String(node.operator))) add(node, `(${text(argument)})`);
        break;
      }
      case "Literal":
        if (typeof node.value === "number") add(node, String(node.value + 1));
        if (typeof node.value === "boolean") add(node, String(!node.value));
        return;
      case "ExpressionStatement":
        if (["CallExpression", "AssignmentExpression"].includes((node.expression as Node).type))
          add(node, ";");
        break;
      case "CallExpression": {
        const callee = node.callee as Node;
        const property = callee.property as Node | undefined;
        const name = property === undefined ? "" : text(property);
        if (name === "describe") {
          visit(callee);
          return;
        }
        const by = callee.type === "MemberExpression" ? SWAPPED_CALLS[name] : undefined;
        if (by !== undefined) add(property!, by);
        break;
      }
    }
    for (const child of Object.values(node)) {
      for (const each of Array.isArray(child) ? child : [child])
        if (typeof each === "object" && each !== null && "type" in each) visit(each as Node);
    }
  };
  visit(parseAst(source, { lang: "ts" }) as unknown as Node);
  return found.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** The source text with one mutant in it. */
export function withMutant(source: string, { start, end, replacement }: Mutant): string {
  return source.slice(0, start) + replacement + source.slice(end);
}
