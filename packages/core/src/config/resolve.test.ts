import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { readConfigFile } from "./config-file.js";
import { parseFlags, resolveConfig } from "./resolve.js";
import { settingsOf } from "./settings.js";

const schema = z.strictObject({
  env: z
    .strictObject({
      name: z.string().default("household"),
      noise: z.enum(["off", "ids"]).default("off").describe("surface noise"),
    })
    .prefault({}),
  policy: z
    .discriminatedUnion("name", [
      z.strictObject({ name: z.literal("random") }),
      z.strictObject({
        name: z.literal("chat"),
        model: z.string(),
        maxTokens: z.int().default(256),
      }),
    ])
    .prefault({ name: "random" }),
  groups: z.int().min(1).default(4).describe("how many tasks"),
  history: z.union([z.int().min(0), z.literal("all")]).default(2),
  families: z.array(z.string()).optional(),
  live: z.boolean().default(true),
});

const settings = settingsOf(schema);
const resolve = (args: string[], file?: { path: string; content: Record<string, unknown> }) =>
  resolveConfig(schema, { flags: parseFlags(args, settings).flags, layers: file ? [file] : [] });

describe("settings", () => {
  it("lists flags with placeholders, choices and defaults", () => {
    const table = Object.fromEntries(settings.map((s) => [s.flag, [s.placeholder, s.default]]));
    expect(table).toEqual({
      "--env.name": ["TEXT", "household"],
      "--env.noise": ["off|ids", "off"],
      "--policy.name": ["random|chat", "random"],
      "--policy.model": ["TEXT", undefined],
      "--policy.max-tokens": ["NUMBER", 256],
      "--groups": ["NUMBER", 4],
      "--history": ["NUMBER|all", 2],
      "--families": ["A,B,…", undefined],
      "--live": ["", true],
    });
  });
});

describe("resolveConfig", () => {
  it("flags override the file, and the file overrides the defaults", () => {
    const file = { path: "run.yaml", content: { env: "alfworld", groups: 9, policy: "chat" } };
    const config = resolve(
      [
        "--env.noise=ids",
        "--policy.model",
        "m",
        "--no-live",
        "--history",
        "all",
        "--families",
        "heat, cool",
      ],
      file,
    );
    expect(config).toEqual({
      env: { name: "alfworld", noise: "ids" },
      policy: { name: "chat", model: "m", maxTokens: 256 },
      groups: 9,
      history: "all",
      families: ["heat", "cool"],
      live: false,
    });
    expect(
      resolve(["--env", "webshop", "--groups", "2", "--policy", "random"], file),
    ).toMatchObject({
      env: { name: "webshop" },
      groups: 2,
    });
  });

  it("reports an unknown flag with the nearest one", () => {
    expect(() => resolve(["--grups", "3"])).toThrow(
      'unknown option --grups. Did you mean "--groups"?',
    );
    expect(() => resolve(["--no-groups"])).toThrow("unknown option --no-groups");
    expect(() => resolve(["--train.gradient-sample", "0"])).toThrow(
      "unknown option --train.gradient-sample. Gradients are now measured on whole updates",
    );
    expect(() => resolve(["--groups"])).toThrow("--groups: expected a value: --groups NUMBER");
    expect(() => resolve(["--live=perhaps"])).toThrow(
      '--live: expected true or false, got "perhaps"',
    );
  });

  it("reports an unknown key of a file with the nearest one", () => {
    const file = (content: Record<string, unknown>) => ({ path: "run.yaml", content });
    expect(() => resolve([], file({ env: { noize: "ids" } }))).toThrow(
      'run.yaml: env.noize: unknown setting. Did you mean "env.noise"?',
    );
    expect(() => resolve([], file({ policy: { name: "random", model: "m" } }))).toThrow(
      "run.yaml: policy.model: unknown setting",
    );
  });

  it("says what was expected, what came and where", () => {
    expect(() => resolve(["--groups", "many"])).toThrow('--groups: expected a number, got "many"');
    expect(() => resolve(["--groups", "0"])).toThrow("--groups: expected at least 1, got 0");
    expect(() => resolve(["--env.noise", "loud"])).toThrow(
      '--env.noise: expected "off" or "ids", got "loud"',
    );
    expect(() => resolve(["--policy", "chat"])).toThrow("--policy.model: required, but not given");
    expect(() => resolve(["--policy", "guess"])).toThrow(
      /--policy.name: expected "random" or "chat", got "guess"/,
    );
    expect(() => resolve(["--history", "some"])).toThrow(
      '--history: expected a number, or expected "all", got "some"',
    );
    expect(() => resolve([], { path: "run.json", content: { groups: "x" } })).toThrow(
      'run.json: groups: expected a number, got "x"',
    );
  });
});

describe("readConfigFile", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-config-"));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it("reads JSON, YAML and TypeScript", async () => {
    const expected = { groups: 3, env: { name: "household" } };
    expect(await readConfigFile(file("a.json", JSON.stringify(expected)))).toEqual(expected);
    expect(await readConfigFile(file("a.yaml", "groups: 3\nenv: { name: household }\n"))).toEqual(
      expected,
    );
    const typescript =
      "const groups: number = 3;\nexport default { groups, env: { name: 'household' } };\n";
    expect(await readConfigFile(file("a.ts", typescript))).toEqual(expected);
  });

  it("reports the file and position of a mistake", async () => {
    await expect(readConfigFile(join(folder, "none.json"))).rejects.toThrow(/none.json/);
    await expect(readConfigFile(file("b.json", '{"groups": }'))).rejects.toThrow(
      /b\.json: Unexpected token '}'/,
    );
    await expect(readConfigFile(file("b.yaml", "groups: [1"))).rejects.toThrow(
      /b\.yaml: .*line 1/s,
    );
    await expect(readConfigFile(file("b.ts", "export const x = 1;"))).rejects.toThrow(
      /no default export/,
    );
    await expect(readConfigFile(file("c.json", "[1]"))).rejects.toThrow(
      /expected an object of settings, found a list/,
    );
    await expect(readConfigFile(file("c.txt", ""))).rejects.toThrow(/expected a file that ends in/);
  });
});
