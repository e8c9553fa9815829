/** StableToolBench's questions with the tools that may answer them, from its JSON files. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { Tool } from "@pawl/core/text/tool.js";
import { z } from "zod";

const parameter = z.object({
  name: z.string(),
  type: z.string().default("STRING"),
  description: z.string().nullish(),
  default: z.unknown(),
});

const api = z.object({
  category_name: z.string(),
  tool_name: z.string(),
  api_name: z.string(),
  api_description: z.string().nullish(),
  required_parameters: z.array(parameter).default([]),
  optional_parameters: z.array(parameter).default([]),
});

const question = z.object({
  query: z.string().min(1),
  query_id: z.union([z.string(), z.int()]).optional(),
  api_list: z.array(api).min(1),
});

type Api = z.output<typeof api>;

/** How the server knows an API. */
interface Address {
  readonly category: string;
  readonly tool: string;
  readonly api: string;
}

/** A question and its tools. */
export interface Question {
  readonly id: string;
  readonly query: string;
  /** The category of the first tool. */
  readonly category: string;
  readonly tools: readonly Tool[];
  readonly addresses: ReadonlyMap<string, Address>;
}

/** The name of the tool that ends an episode. */
export const FINISH = "Finish";

const finish: Tool = {
  name: FINISH,
  description:
    "End the task: with an answer that tells the user everything, or by giving up. Call it last, always.",
  parameters: {
    type: "object",
    properties: {
      return_type: { type: "string", enum: ["give_answer", "give_up_and_restart"] },
      final_answer: { type: "string", description: "The answer, if one is given." },
    },
    required: ["return_type"],
  },
};

/** The files of a folder: each `NAME.json` is a split. */
export function questionFiles(data: string): ReadonlyMap<string, string> {
  const folders = ["", "test_instruction", "solvable_queries/test_instruction"];
  for (const folder of folders.map((one) => join(data, one))) {
    if (!existsSync(folder)) continue;
    const names = readdirSync(folder)
      .filter((name) => name.endsWith(".json"))
      .sort();
    if (names.length > 0)
      return new Map(names.map((name) => [name.slice(0, -".json".length), join(folder, name)]));
  }
  throw new EnvError(
    `${data} has no question files: expected G1_instruction.json and so on there, in test_instruction or in solvable_queries/test_instruction`,
  );
}

/** Reads a file of questions. */
export function readQuestions(path: string): readonly Question[] {
  let json: unknown;
  try {
    json = JSON.parse(readRegularText(path));
  } catch (error) {
    throw new EnvError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  const parsed = z.array(question).safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new EnvError(`${path}: ${issue.path.join(".")}: ${issue.message}`);
  }
  return parsed.data.map((one, at) => {
    const tools = new Map<string, Tool>();
    const addresses = new Map<string, Address>();
    for (const each of one.api_list) {
      const tool = toolOf(each);
      // Two APIs can get the same name: the server's client takes the first.
      if (tools.has(tool.name)) continue;
      tools.set(tool.name, tool);
      addresses.set(tool.name, addressOf(each));
    }
    return {
      id: String(one.query_id ?? at),
      query: one.query,
      category: one.api_list[0]!.category_name,
      tools: [...tools.values(), finish],
      addresses,
    };
  });
}

function addressOf({ category_name, tool_name, api_name }: Api): Address {
  return {
    category: category_name,
    tool: standardName(tool_name),
    api: safeName(standardName(api_name)),
  };
}

const LONGEST_NAME = 64;
const LONGEST_DESCRIPTION = 256;

function toolOf(given: Api): Tool {
  const { tool, api: name } = addressOf(given);
  const properties = [...given.required_parameters, ...given.optional_parameters].map((one) => {
    const type = TYPES[one.type.toUpperCase()] ?? "string";
    const example =
      one.default === undefined || one.default === "" ? {} : { examples: [one.default] };
    const description = (one.description ?? "").slice(0, LONGEST_DESCRIPTION);
    return [safeName(standardName(one.name)), { type, description, ...example }] as const;
  });
  return {
    name: `${name}_for_${tool}`.slice(-LONGEST_NAME).replace(/[^\w.-]/g, "_"),
    description: `${tool}: ${(given.api_description ?? "").trim().slice(0, LONGEST_DESCRIPTION)}`,
    parameters: {
      type: "object",
      properties: Object.fromEntries(properties),
      required: given.required_parameters.map((one) => safeName(standardName(one.name))),
    },
  };
}

const TYPES: Readonly<Record<string, string>> = {
  NUMBER: "integer",
  STRING: "string",
  BOOLEAN: "boolean",
};

/** A name as the server's folders are called: lower case, with single underscores. */
export function standardName(name: string): string {
  const words = name.replace(/[^\u4e00-\u9fa5a-zA-Z0-9_^]/g, "_").replace(/_+/g, "_");
  const trimmed = words.toLowerCase().replace(/^_|_$/g, "");
  return /^\d/.test(trimmed) ? `get_${trimmed}` : trimmed;
}

/** Names that Python keeps for itself get a prefix there. */
function safeName(name: string): string {
  return ["from", "class", "return", "false", "true", "id", "and"].includes(name)
    ? `is_${name}`
    : name;
}
