/** Adapters of the embedded engine against transformers and PEFT: log-probabilities and gradients. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { learn, toy } from "../src/engine/conformance-tools-testing.js";
import { flatTensors } from "../src/engine/embedded/flat-tensors.js";
import { createMoments, createWeightLearner } from "../src/engine/embedded/learner.js";
import { createModelWeights } from "../src/engine/embedded/model-weights.js";
import { createReplica } from "../src/engine/embedded/replica.js";
import { createSessions } from "../src/engine/embedded/sessions.js";
import { inProcess, testModel } from "../src/engine/remote/model-testing.js";
import { readAdapter } from "../src/engine/weights/adapter.js";
import { openCheckpoint } from "../src/engine/weights/checkpoint.js";
import { type LoraOptions, trainedSpecs } from "../src/engine/weights/lora.js";
import { input, logprob, mul } from "../src/objectives/expression.js";

const python = process.env.PAWL_PYTHON ?? "python3";
const absent = spawnSync(python, ["-c", "import peft, transformers"]).status !== 0;
if (absent) console.warn(`adapters are not compared with PEFT: ${python} does not have it`);

const folder = mkdtempSync(join(tmpdir(), "pawl-peft-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SCRIPT = `import json, sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
folder, ids, weight = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
model = PeftModel.from_pretrained(model, folder, is_trainable=True).double()
tokens = torch.tensor([ids])
logprobs = model(tokens).logits[0, :-1].log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0]
(logprobs * torch.tensor(weight[1:]).double()).sum().backward()
gradients = {name.replace(".default.", "."): p.grad.flatten().tolist() for name, p in model.named_parameters() if p.grad is not None}
print(json.dumps({"logprobs": [0, *logprobs.tolist()], "gradients": gradients}))
`;

it.skipIf(absent).each([
  [
    "all projections",
    ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
  ],
  ["two of them", ["v_proj", "up_proj"]],
] as const)("adapters of %s are PEFT's, to the gradient", async (name, targets) => {
  const lora: LoraOptions = { rank: 3, alpha: 7, targets };
  const saved = join(folder, name);
  const engine = await inProcess({ ...testModel, lora });
  await learn(engine, toy, 4);
  await engine.save(saved, { optimizer: false });
  const ids = Array.from({ length: 40 }, (_, i) => (7 * i + i * i) % 37);
  const weight = ids.map((_, i) => 0.5 + 0.25 * (i % 4));
  const [scored] = await engine.forward([{ ids }]);
  await engine.dispose();

  const args = ["-c", SCRIPT, saved, JSON.stringify(ids), JSON.stringify(weight)];
  const theirs = JSON.parse(execFileSync(python, args, { encoding: "utf8" })) as {
    readonly logprobs: readonly number[];
    readonly gradients: Readonly<Record<string, readonly number[]>>;
  };
  const apart = theirs.logprobs.map((x, i) => Math.abs(x - scored!.logprobs[i]!));
  expect(Math.max(...apart)).toBeLessThan(1e-4);

  const { config, tensors, adapter, read } = await openCheckpoint(saved);
  const base = new Map<string, Float32Array>();
  for (const tensor of tensors) base.set(tensor.name, await read(tensor.name, { plain: true }));
  const specs = trainedSpecs(config, false, lora);
  const trained = flatTensors(specs);
  for (const [tensor, data] of await readAdapter(adapter!, config, lora))
    trained.tensors.get(tensor)!.set(data);
  const sessions = createSessions(1);
  const learner = createWeightLearner({
    config,
    lora,
    weights: createModelWeights(config, trained, sessions, { frozen: { base, lora } }),
    moments: createMoments(specs),
    sessions,
    replicas: [createReplica({ config, replicas: 1, lora }, sessions)],
  });
  const objective = { loss: mul(logprob, input("weight")), metrics: {} };
  await learner.forwardBackward([{ ids, inputs: { weight } }], objective);
  const ours = learner.gradients;
  expect([...ours.keys()].sort()).toEqual(Object.keys(theirs.gradients).sort());
  for (const [tensor, expected] of Object.entries(theirs.gradients)) {
    const size = Math.hypot(...expected);
    const error = Math.hypot(...expected.map((x, i) => x - ours.get(tensor)![i]!));
    expect(size, tensor).toBeGreaterThan(0);
    expect(error / size, tensor).toBeLessThan(1e-3);
  }
  await sessions.dispose();
});
