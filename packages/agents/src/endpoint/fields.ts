/** Fields that several APIs' requests have, and how a request is refused. */
import type { Tool } from "@pawl/core/text/tool.js";
import { z } from "zod";
import { Refusal } from "./refusal.js";

/** A field that is accepted only with values that ask for nothing. */
export const neutral = (instead: string, ...values: readonly unknown[]) =>
  z
    .unknown()
    .optional()
    .refine(
      (value) =>
        value == null || values.some((one) => JSON.stringify(one) === JSON.stringify(value)),
      { error: `is not supported; ${instead}` },
    );

/** What to do about a field that nothing replaces. */
export const leaveOut = "leave it out";

/** A label that changes no answer. */
export const label = z.unknown().optional();

/** True, false or nothing. */
export const flag = z.boolean().nullish();

/** A number of tokens. */
export const count = z
  .int()
  .min(1)
  .max(2 ** 31 - 1)
  .nullish();

/** A number of probable tokens; some clients write "all" as -1. */
export const topK = z
  .int()
  .min(-1)
  .max(2 ** 31 - 1)
  .nullish();

/** A JSON schema, or any other object. */
export const object = z.record(z.string(), z.unknown());

/** Content that is a text, or parts of these types with a text in them. */
export const textContent = (...types: readonly string[]) =>
  z.union(
    [
      z.string(),
      z
        .array(
          z
            .looseObject({ type: z.string(), text: z.unknown().optional() })
            .refine(({ type }) => types.includes(type), {
              error: ({ input }) =>
                `a part of type ${JSON.stringify((input as { type?: unknown }).type)} is not supported; the model reads text only`,
            })
            .transform(({ text }, context) => {
              if (typeof text === "string") return text;
              context.addIssue("expected the text of the part");
              return z.NEVER;
            }),
        )
        .transform((parts) => parts.join("")),
    ],
    {
      error: `expected a text, or a list of parts of type ${types[0]}: the model reads text only`,
    },
  );

/** The name of a tool. */
export const toolName = z
  .string()
  .regex(/^[\w.-]{1,128}$/, "expected 1 to 128 letters, digits, _, . or -");

/** A tool as an API offers it. */
export interface OfferedTool {
  readonly tool: Tool;
  /** Whether its arguments must fit into their schema. */
  readonly strict: boolean;
}

/** A list of tools with different names. */
export const toolsOf = <T extends z.ZodType<OfferedTool>>(tool: T) =>
  z
    .array(tool)
    .max(512, "expected at most 512 tools")
    .refine((list) => new Set(list.map((one) => one.tool?.name)).size === list.length, {
      error: "two tools have the same name",
    })
    .nullish();

/** The tool in our words. */
export const offered = (
  name: string,
  description: string | null | undefined,
  parameters: Readonly<Record<string, unknown>> | null | undefined,
  strict: boolean | null | undefined,
): OfferedTool => ({
  strict: strict === true,
  tool: {
    name,
    description: description ?? "",
    parameters: parameters ?? { type: "object", properties: {} },
  },
});

/** A body as the schema has it, or a refusal. */
export function parseBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw refused(parsed.error);
  return parsed.data;
}

/** The first thing that is wrong, with its place. */
function refused({ issues }: z.ZodError): Refusal {
  const issue = deepest(issues[0]!);
  const unknown = issue.code === "unrecognized_keys" ? issue.keys[0]! : undefined;
  const param = placeOf([...issue.path, ...(unknown === undefined ? [] : [unknown])]);
  const problem = unknown === undefined ? issue.message : "is not supported; leave it out";
  return new Refusal(400, param === "" ? problem : `${param}: ${problem}`, {
    param: param === "" ? undefined : param,
  });
}

/** Of a union's complaints, the one that got furthest: what was meant. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors.flat().map((one) => deepest(one));
  const best = inner.reduce<z.core.$ZodIssue | undefined>(
    (furthest, one) => (one.path.length > (furthest?.path.length ?? 0) ? one : furthest),
    undefined,
  );
  return best === undefined ? issue : { ...best, path: [...issue.path, ...best.path] };
}

function placeOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) =>
      typeof key === "number"
        ? `${text}[${key}]`
        : `${text}${text === "" ? "" : "."}${String(key)}`,
    "",
  );
}
