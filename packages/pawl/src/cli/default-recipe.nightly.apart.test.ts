import "@pawl/pawl/cli/all-worlds.js";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "@pawl/core/config/resolve.js";
import type { EnvKind } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind, registerEnv } from "@pawl/core/envs/registry.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { checkConfig } from "@pawl/training/checks.js";
import { trainConfig } from "@pawl/training/config.js";
import { afterAll, describe, expect, it } from "vitest";
import { recipeOf } from "./default-recipe.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-recipe-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** The smallest run of a recipe: only its size is reduced. */
const small = [
  ...["--warm-start.episodes", "2", "--warm-start.sft.batch", "2", "--updates", "1"],
  ...["--groups", "1", "--group-size", "2", "--step-limit", "2", "--engine.threads", "1"],
  ...["--evaluation.tasks", "1", "--evaluation.every", "1"],
];

describe("pawl train --env NAME", () => {
  for (const [name, more] of [
    ["webshop", ["--env.products", "40"]],
    ["search", ["--env.size", "40"]],
    ["desk", []],
    ["textworld", ["--env.data", "made-up"]],
  ] as const)
    it(`trains in ${name} with its own recipe`, async () => {
      const out = join(parent, name);
      const { code, stderr } = await runCli([
        ...["train", "--env", name, "--out", out],
        ...[...small, ...more],
      ]);
      expect([code, stderr]).toEqual([0, expect.stringContaining("update 1/1")]);
      expect(readManifest(out)).toMatchObject({
        recipe: `recipes/${name}.ts`,
        config: {
          env: { name },
          warmStart: { teacher: "expert" },
          prompt: { style: "compact" },
        },
      });
    });

  it("keeps what small models need in made-up worlds away from official files", () => {
    const given = (data: string) => (path: string) => (path === "env.data" ? data : undefined);
    expect(recipeOf("webshop", given("made-up")).content).toMatchObject({
      env: { products: 200, wording: "plain" },
    });
    expect(recipeOf("webshop", given("/official")).content.env).toEqual({
      name: "webshop",
      limits: { observation: 4000 },
    });
    expect(recipeOf("search", given("/official")).content.env).toEqual({ name: "search" });
    for (const [name, options] of [
      ["webshop", { wording: "plain" }],
      ["search", { relations: ["teacher"] }],
      ["search", { names: "shared" }],
    ] as const)
      expect(() => openEnvironment({ name, data: parent, ...options })).toThrow(
        `${Object.keys(options)[0]} is about the made-up`,
      );
  });

  it("says what is missing if alfworld's games are not there", async () => {
    const data = process.env.ALFWORLD_DATA;
    delete process.env.ALFWORLD_DATA;
    try {
      const { code, stderr } = await runCli(["train", "--env", "alfworld"]);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/alfworld-download.*ALFWORLD_DATA/),
      ]);
    } finally {
      if (data !== undefined) process.env.ALFWORLD_DATA = data;
    }
  });

  it("rejects what the recipe's environment does not have, naming the flag", async () => {
    const { code, stderr } = await runCli(["train", "--env", "search", "--env.rooms", "3"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("unknown option --env.rooms")]);
    const quick = await runCli(["train", "--env", "search", "--quick"]);
    expect(quick.stderr).toContain("--quick is a smaller household world, and --env names search");
  });
});

it.each(["household", "webshop", "search", "alfworld", "desk", "textworld"])(
  "the recipe of %s is one",
  (name) => {
    const schema = trainConfig(findEnvKind(name));
    const config = resolveConfig(schema, { layers: [recipeOf(name, () => undefined)], flags: [] });
    expect(config.env.name).toBe(name);
    // Without their games they cannot be opened.
    if (name === "alfworld" || name === "textworld") return;
    const environment = openEnvironment({ ...config.env, name });
    checkConfig(config, environment);
    expect(environment[config.warmStart.teacher]).toBeTypeOf("function");
  },
);

describe("a user's own environment", () => {
  const household = findEnvKind("household");
  const own = (name: string, teacher: boolean): EnvKind => ({
    ...household,
    name,
    open(options) {
      const world = household.open(options);
      const { seeker: _, expert: __, ...bare } = world;
      return { ...(teacher ? world : bare), name, splits: ["all", "held-out"] };
    },
  });

  it("is trained in with the laptop recipe, with its own splits and teacher", () => {
    registerEnv(own("own-taught", true));
    const { content, file } = recipeOf("own-taught", () => undefined);
    expect(file).toBe("instead");
    expect(content).toMatchObject({
      env: { name: "own-taught" },
      split: "all",
      warmStart: { teacher: "seeker" },
      evaluation: { splits: ["held-out"] },
    });
    expect(content).not.toHaveProperty("stepLimit");
    // It is unknown whether its teacher can take over someone else's episode.
    expect(content).not.toHaveProperty("corrections");
  });

  it("without a teacher needs a pretrained model", () => {
    registerEnv(own("own-untaught", false));
    expect(() => recipeOf("own-untaught", () => undefined)).toThrow(
      /own-untaught has no teacher .* --model.start FOLDER, or .* --config/,
    );
    const { content } = recipeOf("own-untaught", (path) =>
      path === "model.start" ? "some/model" : undefined,
    );
    expect(content).toMatchObject({ warmStart: { episodes: 0 } });
  });
});
