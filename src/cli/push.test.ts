import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { worldTexts } from "../../tests/helpers/small-world.js";
import { learn, toy } from "../engine/conformance-tools-testing.js";
import { inProcess, testModel } from "../engine/remote/model-testing.js";
import { startUploadHub, type UploadStandIn } from "../hub/hub-upload-testing.js";
import { saveCheckpoint } from "../runs/checkpoints.js";
import { createRun } from "../runs/run-folder.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { tinyConfig } from "../train/testing.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-push-test-"));
const at = (name: string): string => join(parent, name);
const KEY = "hf_this_is_a_secret_key";
const IDS = [5, 9, 2, 30, 11, 3];

/** A finished run whose model has learned a little; returns its log-probabilities of some tokens. */
async function recordTrained(name: string, options: object): Promise<readonly number[]> {
  const engine = await inProcess({ ...testModel, ...options });
  await learn(engine, toy, 3);
  const start = { model: "owner/base", revision: "c0ffee" };
  const config = tinyConfig() as unknown as Record<string, unknown>;
  const run = createRun({ folder: at(name), kind: "train", seed: 3, config, start }, () => {});
  run.recordMetrics({ update: 0, "train.success": 0.5 });
  run.finish("done");
  await saveCheckpoint(at(name), { updates: 7, optimizerSteps: 7 }, (folder) =>
    engine.save(folder),
  );
  await buildTokenizer(worldTexts).save(join(at(name), "tokenizer"));
  const [scored] = await engine.forward([{ ids: IDS }]);
  await engine.dispose();
  return [...scored!.logprobs];
}

const scores = new Map<string, readonly number[]>();
beforeAll(async () => {
  scores.set("whole", await recordTrained("whole", {}));
  const lora = { rank: 2, alpha: 4, targets: ["q_proj", "up_proj"] };
  scores.set("lora", await recordTrained("lora", { lora }));
  await runCli([
    ...["eval", "--policy", "random", "--tasks", "5", "--step-limit", "3", "--out", at("eval")],
  ]);
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort();

async function dryRun(run: string, ...more: readonly string[]): Promise<string> {
  const out = at(`page-${run}-${Math.random()}`);
  const { code, stderr } = await runCli([
    ...["push", at(run), "me/agent", "--dry-run", "--out", out, ...more],
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  return out;
}

describe("the folder of a model", () => {
  it("has weights, tokenizer, settings, curves, evaluations and a card with their figures", async () => {
    const out = await dryRun("whole", "--cards", at("eval"), "--license", "apache-2.0");
    expect(filesIn(out).map((name) => name.replace(/tfevents.*/, "tfevents"))).toEqual([
      ...["README.md", "config.json", "evaluation/1-household-valid_seen.json"],
      ...["evaluation/1-household-valid_seen.md", "model.safetensors", "pawl.json"],
      ...["tensorboard/events.out.tfevents", "tokenizer.json", "tokenizer_config.json"],
    ]);
    const readme = readFileSync(join(out, "README.md"), "utf8");
    const [, head, body] = /^---\n([\s\S]*?)---\n([\s\S]*)$/.exec(readme)!;
    const card = JSON.parse(readFileSync(join(at("eval"), "card.json"), "utf8"));
    expect(parse(head!)).toMatchObject({
      license: "apache-2.0",
      library_name: "transformers",
      base_model: "owner/base",
      "model-index": [
        {
          name: "me/agent",
          results: [
            {
              dataset: {
                type: "household",
                name: "household/valid_seen:5-shuffled",
                split: "valid_seen",
              },
              metrics: [{ type: "success_rate", value: 100 * card.results.success }],
            },
          ],
        },
      ],
    });
    expect(body).toContain("in 7 updates");
    expect(body).toContain(card.tasks.sha256);
    expect(body).toContain("95 % interval 0.0 – 43.4 %");
    expect(body).toContain("pawl eval --policy random --tasks 5");
    expect(body).toContain("npx pawl train --config pawl.json");
    expect(body).toContain("start model: `owner/base`, revision `c0ffee`");
    const config = JSON.parse(readFileSync(join(out, "pawl.json"), "utf8"));
    expect(config).toMatchObject({ updates: 3, env: { name: "household" } });
  });

  it("says so if nothing was evaluated", async () => {
    const readme = readFileSync(join(await dryRun("whole"), "README.md"), "utf8");
    expect(readme).toContain("No evaluation was published with it");
    expect(readme).not.toContain("model-index");
  });

  it("may be an adapter alone, that names its base", async () => {
    const out = await dryRun("lora", "--adapter");
    const names = filesIn(out);
    expect(names).toContain("adapter_model.safetensors");
    expect(names).not.toContain("model.safetensors");
    const config = JSON.parse(readFileSync(join(out, "adapter_config.json"), "utf8"));
    expect(config.base_model_name_or_path).toBe("owner/base");
    expect(readFileSync(join(out, "README.md"), "utf8")).toContain("library_name: peft");
  });
});

const python = process.env.PAWL_PYTHON ?? "python3";
const absent = spawnSync(python, ["-c", "import peft, transformers, torch"]).status !== 0;
if (absent) console.warn(`pushed models are not loaded: ${python} has no transformers and PEFT`);

const LOAD = `import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, base, ids = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(base or folder)
if base:
    from peft import PeftModel
    model = PeftModel.from_pretrained(model, folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
tokens = torch.tensor([ids])
logprobs = model(tokens).logits[0, :-1].log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0]
print(json.dumps([[0, *logprobs.tolist()], len(tokenizer.encode("go to fridge 1"))]))
`;

describe.skipIf(absent)("transformers loads", () => {
  const load = (folder: string, base: string): [number[], number] =>
    JSON.parse(
      execFileSync(python, ["-c", LOAD, folder, base, JSON.stringify(IDS)], { encoding: "utf8" }),
    );
  const sameAs = (run: string, [logprobs, length]: [number[], number]): void => {
    const apart = logprobs.map((value, i) => Math.abs(value - scores.get(run)![i]!));
    expect(Math.max(...apart.slice(1))).toBeLessThan(1e-4);
    expect(length).toBeGreaterThan(2);
  };

  it("a whole model, with the log-probabilities of the one that was trained", async () => {
    sameAs("whole", load(await dryRun("whole"), ""));
  });

  it("a merged adapter, and an adapter alone on its base", async () => {
    sameAs("lora", load(await dryRun("lora"), ""));
    // The weights beneath the adapter are in the checkpoint.
    const checkpoint = join(at("lora"), "checkpoints", "000007");
    const base = at("base");
    execFileSync("cp", ["-r", checkpoint, base]);
    for (const name of ["adapter_config.json", "adapter_model.safetensors"])
      rmSync(join(base, name));
    sameAs("lora", load(await dryRun("lora", "--adapter"), base));
  });
});

describe("an upload to the stand-in of the hub", () => {
  let hub: UploadStandIn;
  const env = () => ({ HF_TOKEN: KEY, HF_ENDPOINT: hub.endpoint });
  afterAll(() => hub?.close());
  beforeAll(async () => {
    hub = await startUploadHub(KEY, ["me/there"]);
  });
  const pushed = (repo: string, ...more: readonly string[]) =>
    runCli(["push", at("whole"), repo, ...more], { env: env() });

  it("is the folder of the dry run, in one commit, and the key is nowhere in it", async () => {
    const { code, stdout, stderr } = await pushed("me/new", "--private", "--cards", at("eval"));
    expect(code).toBe(0);
    expect(stdout).toContain(`is now at ${hub.endpoint}/me/new`);
    expect(hub.made).toEqual([{ name: "me/new", visibility: "private" }]);
    expect(hub.commits).toEqual(["Upload whole with Pawl"]);
    const folder = await dryRun("whole", "--cards", at("eval"));
    const files = hub.repos.get("me/new")!;
    expect([...files.keys()].sort()).toEqual(filesIn(folder));
    for (const [name, bytes] of files) {
      expect(bytes.includes(KEY)).toBe(false);
      if (name !== "README.md") expect(bytes.equals(readFileSync(join(folder, name)))).toBe(true);
    }
    expect(stdout + stderr).not.toContain(KEY);
  });

  it("adds to a repository that exists", async () => {
    expect((await pushed("me/there")).code).toBe(0);
    expect(hub.repos.get("me/there")!.has("model.safetensors")).toBe(true);
  });

  it.each([
    ["/api/repos/create", 403, /could not be made: status 403. Does the key in HF_TOKEN/],
    ["/commit/", 500, /the upload to .* failed: status 500/],
    ["/store/", 503, /the upload to .* failed: status 503/],
  ])("that fails at %s says so, without the key", async (call, status, message) => {
    hub.fault = { call, status };
    const { code, stdout, stderr } = await pushed("me/failed");
    delete hub.fault;
    expect(stderr).toMatch(message);
    expect(stdout + stderr).not.toContain(KEY);
    expect(code).toBe(1);
    expect(hub.repos.get("me/failed")?.size ?? 0).toBe(0);
  });

  it("needs a key", async () => {
    const { code, stderr } = await runCli(["push", at("whole"), "me/x"], {
      env: { HF_ENDPOINT: hub.endpoint },
    });
    expect(stderr).toContain("HF_TOKEN is not set");
    expect(code).toBe(1);
  });
});

it.each([
  [["me/agent"], /pawl push needs a run and a name/],
  [[at("whole"), "agent"], /expected a name such as me\/house-agent, got "agent"/],
  [[at("whole"), "me/agent@main"], /expected a name such as/],
  [[at("whole"), "me/agent", "--dry-run"], /--dry-run: say where to write with --out/],
  [[at("whole"), "me/agent", "--out", "x"], /--out: it is only for --dry-run/],
  [[at("whole"), "me/a", "--dry-run", "--out", "recipes"], /--out: recipes is not empty/],
  [[at("whole"), "me/a", "--dry-run", "--out", at("n"), "--adapter"], /has no adapter/],
  [[at("whole"), "me/a", "--dry-run", "--out", at("n"), "--cards", "recipes"], /has no card.json/],
  [["recipes", "me/a", "--dry-run", "--out", at("n")], /recipes holds no model/],
])("refuses %j", async (args, message) => {
  const { code, stderr } = await runCli(["push", ...args]);
  expect(stderr).toMatch(message);
  expect(code).toBeGreaterThan(0);
  expect(readdirSync(parent)).not.toContain("n");
});
