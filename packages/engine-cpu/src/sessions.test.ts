import { EngineError } from "@pawl/core/engine/engine.js";
import { logprob, neg } from "@pawl/core/objectives/expression.js";
import { trainedSpecs } from "@pawl/models/weights/lora.js";
import { expect, it } from "vitest";
import { flatTensors } from "./flat-tensors.js";
import { addInput, createGraph, emit } from "./graph.js";
import { initialWeights, presetConfig } from "./init.js";
import { createMoments, createWeightLearner } from "./learner.js";
import { createModelWeights } from "./model-weights.js";
import { reduce } from "./operators.js";
import { finishProgram } from "./program.js";
import { createReplica, type Replica } from "./replica.js";
import { createSessions, floats } from "./sessions.js";

it("reports that memory ran out, and keeps working", async () => {
  const sessions = createSessions(1);
  const compiled = await sessions.get("outer", () => {
    const graph = createGraph();
    const column = addInput(graph, "column", "float32", ["n", 1]);
    const row = addInput(graph, "row", "float32", [1, "n"]);
    const product = emit({ op: "MatMul", inputs: [column, row], shape: ["n", "n"] });
    return finishProgram(graph, new Map([["sum", reduce("ReduceSum", product, [0, 1], false)]]));
  });
  const sum = async (n: number) => {
    const ones = new Float32Array(n).fill(1);
    return compiled.run({ column: floats(ones, [n, 1]), row: floats(ones, [1, n]) });
  };
  // 256 TiB, which is more than a process can address.
  const failed = sum(2 ** 23);
  await expect(failed).rejects.toThrow(EngineError);
  await expect(failed).rejects.toThrow(/out of memory while computing: use shorter sequences/);
  expect((await sum(8)).get("sum")![0]).toBe(64);
  await sessions.dispose();
});

it("leaves weights and gradients unchanged when a replica fails", async () => {
  const small = { hiddenSize: 32, layers: 1, headSize: 8, mlpSize: 48 };
  const config = { ...presetConfig("tiny", 16), ...small };
  const specs = trainedSpecs(config, false);
  const parameters = flatTensors(specs);
  for (const [name, data] of initialWeights(config, 1)) parameters.tensors.get(name)?.set(data);
  const sessions = createSessions(1);
  const replica = createReplica({ config, replicas: 1 }, sessions);
  let failing = false;
  const breaking: Replica = {
    ...replica,
    run: (job) =>
      failing ? Promise.reject(new EngineError("out of memory while computing")) : replica.run(job),
  };
  const learner = createWeightLearner({
    config,
    weights: createModelWeights(config, parameters, sessions),
    moments: createMoments(specs),
    sessions,
    replicas: [replica, breaking],
  });
  const sequences = Array.from({ length: 6 }, (_, i) => ({ ids: [i, 1, 2, 3, i], inputs: {} }));
  const objective = { loss: neg(logprob), metrics: {} };
  const copies = (arrays: ReadonlyMap<string, Float32Array>) =>
    [...arrays].map(([name, array]) => [name, array.slice()]);
  await learner.forwardBackward(sequences, objective);
  const before = [copies(parameters.tensors), copies(learner.gradients)];
  failing = true;
  await expect(learner.forwardBackward(sequences, objective)).rejects.toThrow(/out of memory/);
  expect([copies(parameters.tensors), copies(learner.gradients)]).toEqual(before);
  failing = false;
  await learner.forwardBackward(sequences, objective);
  const [name, once] = before[1]![1] as [string, Float32Array];
  const twice = learner.gradients.get(name)!;
  expect(twice.every((value, i) => Math.abs(value - 2 * once[i]!) < 1e-4)).toBe(true);
  await sessions.dispose();
});

it("keeps one large graph, because each keeps the memory it needed", async () => {
  const sessions = createSessions(1);
  const built: string[] = [];
  const get = (key: string, isLarge: boolean) =>
    sessions.get(key, () => {
      built.push(key);
      const graph = createGraph();
      const x = addInput(graph, "x", "float32", ["n"]);
      const y = emit({ op: "Neg", inputs: [x], shape: x.shape });
      return { ...finishProgram(graph, new Map([["y", y]])), isLarge };
    });
  await get("small", false);
  for (const key of ["a", "a", "b", "a"]) await get(key, true);
  await get("small", false);
  expect(built).toEqual(["small", "a", "b", "a"]);
  await sessions.dispose();
});
