/** Plugins: what they may add, and what is refused, each time by name. */
import "@pawl/pawl/cli/all-worlds.js";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfigFile } from "@pawl/core/config/config-file.js";
import { createJiti } from "jiti";
import { beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../cli/testing.js";
import { hashPlugin } from "./source.js";

let folder: string;
let made = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-plugin-"));
  process.env.XDG_CACHE_HOME = join(folder, "cache");
});

/** Writes a plugin; names in it must be new in this process. */
function plugin(source: string, name = "plugin.ts"): string {
  const path = join(folder, name);
  writeFileSync(path, source);
  return path;
}

const world = (name: string, more = ""): string => `
import { defineEnv, definePlugin, numberedTasks, taskLists } from "pawl";
import { z } from "zod";
${more}
const lists = taskLists("${name}", { train: numberedTasks("train", 3, "coin") });
const coin = defineEnv({
  name: "${name}",
  summary: "a coin",
  options: z.strictObject({ sides: z.int().min(2).default(2).describe("sides of the coin") }),
  open: ({ sides }) => ({
    ...lists, name: "${name}", stepLimit: 3, maxReturn: 1,
    create() {
      let over = true;
      return {
        goal: "Say heads.", taskType: "coin",
        reset(task) { lists.task(task.id); over = false; return \`A coin with \${sides} sides.\`; },
        step(action) {
          if (over) throw new Error("call reset first");
          const success = action === "heads";
          const valid = success || action === "tails";
          over = success;
          return { observation: valid ? "It falls." : "What?", reward: success ? 1 : 0, done: success, info: { valid, success } };
        },
        admissibleActions: () => ["heads", "tails"],
        clone() { throw new Error("not needed here"); },
      };
    },
  }),
});
export default definePlugin({ environments: [coin] });
`;
const fresh = (): string => `coin-${++made}`;

describe("a plugin", () => {
  it("adds an environment from a folder without packages, with options, help and checks", async () => {
    const name = fresh();
    const path = plugin(world(name));
    const listed = await runCli(["env", "list", "--plugin", path]);
    expect(listed.stdout).toContain(`${name} `);
    const info = await runCli(["env", "info", path]);
    expect(info.stdout).toContain("--env.sides");
    expect(info.stdout).toContain("A coin with 2 sides.");
    const help = await runCli(["rollout", `--plugin=${path}`, "--env", name, "--help", "all"]);
    expect(help.stdout).toMatch(/--env\.sides NUMBER\s+sides of the coin/);
    expect(help.stdout).toContain("--plugin FILE");
    const checked = await runCli(["env", "check", path]);
    expect(checked.stdout).toContain("✓ lists its tasks");
    expect(checked.stdout).toMatch(/✗ clones exactly\n +not needed here/);
    expect(checked.code).toBe(1);
  });

  it("is named in a configuration relative to it, and recorded with its hash", async () => {
    const name = fresh();
    mkdirSync(join(folder, "parts"));
    const path = plugin(world(name), join("parts", "coin.ts"));
    const config = plugin(
      JSON.stringify({
        plugins: ["./parts/coin.ts"],
        env: { name, sides: 6 },
        policy: "random",
        groups: 2,
      }),
      "run.json",
    );
    const out = join(folder, "run");
    const { code, stderr } = await runCli(["rollout", "--config", config, "--out", out]);
    expect(stderr).not.toContain("error");
    expect(code).toBe(0);
    const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
    expect(manifest.plugins).toContainEqual({ path, sha256: hashPlugin(path) });
    expect(manifest.config.env).toMatchObject({ name, sides: 6 });
    expect(manifest.config).not.toHaveProperty("plugins");
    const known = readFileSync(join(folder, "cache", "pawl", "known-plugins"), "utf8");
    expect(known).toContain(hashPlugin(path));
  });

  it("is hashed with what it imports by relative paths", () => {
    const path = plugin('import { a } from "./a.js";\nexport default a;');
    plugin('export * from "./deep/b";', "a.ts");
    mkdirSync(join(folder, "deep"));
    plugin("export const a = 1;", join("deep", "b.mjs"));
    const before = hashPlugin(path);
    expect(hashPlugin(path)).toBe(before);
    plugin("export const a = 2;", join("deep", "b.mjs"));
    expect(hashPlugin(path)).not.toBe(before);
  });

  it("adds a policy, an estimator and losses that settings can name", async () => {
    const path = plugin(`
      import { commonSettings, definePlugin, expression as e, groupEstimator, mapSteps } from "pawl";
      import { z } from "zod";
      const settings = z.strictObject({ name: z.literal("flat"), ...commonSettings, height: z.number().default(1) });
      export default definePlugin({
        policies: [{ name: "shout", options: z.strictObject({ word: z.string().default("hey") }),
          create: ({ word }) => ({ name: "shout", batch: 1, act: async (all) => all.map((s) => ({ response: s.format(word) })) }) }],
        estimators: [groupEstimator(settings, (scores, { height }) => mapSteps(scores, () => height))],
        policyLosses: { plain: { title: "no clipping", settings: { plainScale: z.number().default(1) },
          token: ({ plainScale }) => e.mul(plainScale, e.neg(e.mul(e.input("advantage"), e.logprob))) } },
        worldLosses: { squared: { title: "squares", settings: {}, token: () => e.mul(e.logprob, e.logprob) } },
      });`);
    let stdout = "";
    for (const group of ["advantage", "objective", "paw"])
      stdout += (await runCli(["train", "--plugin", path, "--help", group])).stdout;
    expect(stdout).toContain("--advantage grpo|rloo|gigpo|tree|ppo|flat");
    expect(stdout).toContain("--advantage.height");
    expect(stdout).toContain("--objective.loss clip|cispo|gspo|plain");
    expect(stdout).toContain("--objective.plain-scale");
    expect(stdout).toContain("--paw.loss cmae|mae|ce|squared|off");
    const out = join(folder, "shouts");
    const played = await runCli([
      "rollout",
      "--policy",
      "shout",
      "--policy.word",
      "ho",
      "--groups",
      "1",
      "--group-size",
      "1",
      "--out",
      out,
    ]);
    expect(played.code, played.stderr).toBe(0);
    const shown = await runCli(["show", out, "0.0", "--json"]);
    expect(JSON.parse(shown.stdout).steps[0].action).toBe("ho");
  });
});

describe("a plugin's prompt style", () => {
  const style = (name: string, more: string): string => `import { definePlugin } from "pawl";
    export default definePlugin({ promptStyles: [{ name: "${name}", title: "few words",
      create: ({ history }) => (${more}) }] });`;

  it("renders the prompts and parses the answers", async () => {
    const path = plugin(
      style(
        "terse",
        `{ name: "terse", continuing: false, responseEnd: "",
           render: ({ goal, index }) => [{ origin: "task", text: \`\${goal} (\${history} \${index})\` }],
           parse: (response) => ({ action: response.replace("!", ""), wellFormed: response.endsWith("!") }),
           format: (action) => \`\${action}!\`,
           continuation: (observation) => [{ origin: "observation", text: observation }] }`,
      ),
    );
    const help = await runCli(["rollout", "--plugin", path, "--help", "prompt"]);
    expect(help.stdout).toMatch(
      /--prompt\.style full\|compact\|chat\|terse[\s\S]*terse: few words/,
    );
    const out = join(folder, "terse");
    const asked = ["--prompt.style", "terse", "--prompt.history", "7"];
    const small = ["--groups", "1", "--group-size", "1", "--out", out];
    const { code, stderr } = await runCli(["rollout", ...asked, ...small]);
    expect(code, stderr).toBe(0);
    const { stdout } = await runCli(["show", out, "0.0", "--json"]);
    const { goal, steps, success } = JSON.parse(stdout);
    expect(success).toBe(true);
    expect(steps[1]).toMatchObject({ prompt: [{ text: `${goal} (7 1)` }], wellFormed: true });
    expect(steps[1].response).toBe(`${steps[1].action}!`);
  });

  it("must not be one that there is, and must be whole", async () => {
    const twice = await runCli(["env", "list", "--plugin", plugin(style("full", "{}"), "a.ts")]);
    expect(twice.stderr).toMatch(/promptStyles: there is a prompt style "full" already/);
    const path = plugin(style("half", "{ render: () => [] }"), "b.ts");
    const half = await runCli(["rollout", "--plugin", path, "--prompt.style", "half"]);
    expect(half.stderr).toMatch(/prompt style "half": what create gave has no parse\(\)/);
    const none = plugin("export default { promptStyles: [{ name: 'x' }] };", "c.ts");
    const nameless = await runCli(["env", "list", "--plugin", none]);
    expect(nameless.stderr).toMatch(/a prompt style consists of a name, a title and create/);
  });
});

describe("what is refused", () => {
  const one = (part: string): string =>
    `import { definePlugin } from "pawl"; import { z } from "zod"; export default definePlugin({ ${part} });`;
  it.each([
    ["throw new Error('boom');", /plugin .*bad\.ts: it failed while loading: boom/],
    ["export default {", /plugin .*bad\.ts: it failed while loading/],
    ["import 'no-such-package'; export default {};", /no-such-package/],
    [
      "export const plugin = 1;",
      /there is no default export; expected export default definePlugin/,
    ],
    ["export default 3;", /the default export is a number/],
    ["export default [];", /the default export is a list/],
    ["export default {};", /adds nothing; expected/],
    [
      "export default { environment: [] };",
      /"environment", which is no part.*Did you mean "environments"/,
    ],
    ["export default { environments: {} };", /environments: expected a list, found a object/],
    [
      "export default { environments: [{ name: 'Big Name' }] };",
      /lowercase letters, digits and dashes, not "Big Name"/,
    ],
    ["export default { environments: [undefined] };", /lowercase letters/],
    [
      "export default { environments: [{ name: 'half' }] };",
      /environment "half": expected \{ name, summary/,
    ],
    [
      one(
        "environments: [{ name: 'household', summary: '', options: z.strictObject({}), open() {} }]",
      ),
      /an environment "household" already/,
    ],
    [
      one(
        "environments: [{ name: 'taken', summary: '', options: z.strictObject({ limits: z.string() }), open() {} }]",
      ),
      /an option cannot be called limits/,
    ],
    [
      one("estimators: [{ settings: z.strictObject({ name: z.literal('grpo') }), estimate() {} }]"),
      /estimators: there is an advantage estimator "grpo" already/,
    ],
    [one("estimators: [{ estimate() {} }]"), /whose name is a z\.literal/],
    [
      one("worldLosses: { mae: { title: '', settings: {}, token() {} } }"),
      /worldLosses: world-model loss "mae": the name is taken/,
    ],
    [
      one("worldLosses: { off: { title: '', settings: {}, token() {} } }"),
      /"off": the name is taken/,
    ],
    [
      one("worldLosses: { mine: { title: '', settings: { alpha: z.number() }, token() {} } }"),
      /there is a setting "alpha" already/,
    ],
    [
      one("policyLosses: { mine: { title: '' } }"),
      /policy loss "mine": expected \{ title, settings, token/,
    ],
    [
      one("policyLosses: { clip: { title: '', settings: {}, token() {} } }"),
      /"clip": the name is taken/,
    ],
    [
      one("policies: [{ name: 'random', options: z.strictObject({}), create() {} }]"),
      /there is a policy "random" already/,
    ],
    [
      one("policies: [{ name: 'mine', create() {} }]"),
      /policy "mine": expected \{ name, options, create/,
    ],
  ])("%s", async (source, message) => {
    const { code, stderr } = await runCli(["env", "list", "--plugin", plugin(source, "bad.ts")]);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("    at ");
    expect(code).toBe(2);
  });

  it.each([
    [["--plugin", "nowhere.ts"], /plugin nowhere\.ts: there is no such file/],
    [["--plugin", "README.md"], /README\.md: expected a file that ends in \.ts/],
    [["--plugin"], /--plugin: expected a file/],
  ])("%j", async (args, message) => {
    const { code, stderr } = await runCli(["env", "list", ...args]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  it("says what plugins of a configuration must be", async () => {
    const config = plugin(JSON.stringify({ plugins: "x.ts" }), "run.json");
    const { stderr } = await runCli(["rollout", "--config", config]);
    expect(stderr).toContain(
      'run.json: plugins: expected a list of files, such as ["./guess.ts"], got "x.ts"',
    );
  });

  it("names a loss that is no expression, or that asks for what its tokens do not have", async () => {
    const path = plugin(
      one(`policyLosses: {
      nothing: { title: "n", settings: {}, token: () => 3 },
      values: { title: "v", settings: {}, token: () => ({ op: "value" }) },
    }`),
    );
    const small = ["--updates", "1", "--warm-start.episodes", "0", "--evaluation.every", "0"];
    for (const [loss, message] of [
      ["nothing", /policy loss "nothing": loss: expected/],
      [
        "values",
        /policy loss "values": its tokens have no "value", only logprob, oldLogprob, advantage/,
      ],
    ] as const) {
      const out = join(folder, loss);
      const { code, stderr } = await runCli([
        "train",
        "--plugin",
        path,
        "--objective.loss",
        loss,
        "--out",
        out,
        ...small,
      ]);
      expect(stderr).toMatch(message);
      expect(code).toBe(1);
    }
  });
});

describe("code of users", () => {
  it("is never taken from, or left in, a cache in the shared temporary folder", async () => {
    const before = process.env.TMPDIR;
    const shared = join(folder, "tmp");
    mkdirSync(shared);
    process.env.TMPDIR = shared;
    try {
      const path = plugin("export default { groups: 1 };", "config.ts");
      // What a careless loader would leave there, and somebody else could have put there first.
      await createJiti(import.meta.url, { fsCache: join(shared, "jiti") }).import(path);
      const [cached] = readdirSync(join(shared, "jiti"));
      const planted = join(shared, "jiti", cached!);
      writeFileSync(planted, readFileSync(planted, "utf8").replace("groups: 1", "groups: 666"));
      expect(readFileSync(planted, "utf8")).toContain("666");
      expect(await readConfigFile(path)).toEqual({ groups: 1 });
      expect(readdirSync(shared)).toEqual(["jiti"]);
      expect(readdirSync(join(shared, "jiti"))).toEqual([cached]);
    } finally {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
    }
  });
});
