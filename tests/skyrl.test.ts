/**
 * A real server of Tinker's plain protocol, SkyRL's, as an engine.
 *
 * Runs if PAWL_SKYRL is the address of one, and PAWL_SKYRL_MODEL the folder of the Llama checkpoint
 * that it serves in float32; docs/remote-engines.md explains how to start one. On a CPU it compiles
 * for minutes.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clipped, crossEntropy, toy } from "../src/engine/conformance-tools.js";
import { createEmbeddedEngine } from "../src/engine/embedded/embedded-engine.js";
import type { Engine } from "../src/engine/engine.js";
import { connectRemoteEngine } from "../src/engine/remote/remote-engine.js";

const { PAWL_SKYRL: url, PAWL_SKYRL_MODEL: folder } = process.env;
const absent = url === undefined || folder === undefined;
if (absent) console.warn("SkyRL is not tested: PAWL_SKYRL and PAWL_SKYRL_MODEL name none");
const MINUTES = 60_000;

describe.skipIf(absent)("SkyRL's server", () => {
  let skyrl: Engine;
  let embedded: Engine;
  const notices: string[] = [];
  const some = toy.slice(0, 4);
  beforeAll(async () => {
    const onNotice = (message: string) => notices.push(message);
    skyrl = await connectRemoteEngine({ url: url!, folder: folder!, loraRank: 8, onNotice });
    embedded = await createEmbeddedEngine({ model: { folder: folder! } });
  }, 10 * MINUTES);
  afterAll(async () => {
    await skyrl?.dispose();
    await embedded?.dispose();
  });

  /** Largest difference of log-probabilities. */
  const apart = (a: readonly ArrayLike<number>[], b: readonly ArrayLike<number>[]): number =>
    Math.max(...a.flatMap((x, i) => Array.from(x, (value, j) => Math.abs(value - b[i]![j]!))));

  it("is distinguished from ours", () => {
    expect(notices.join()).toContain("every update needs a second forward pass");
    expect(skyrl.capabilities.entropies).toBe(false);
  });

  it(
    "scores like the embedded engine before its adapters are trained",
    async () => {
      const [theirs, ours] = await Promise.all(
        [skyrl, embedded].map((engine) => engine.forward(some, {})),
      );
      const difference = apart(
        theirs!.map(({ logprobs }) => logprobs),
        ours!.map(({ logprobs }) => logprobs),
      );
      expect(difference).toBeLessThan(1e-4);
    },
    10 * MINUTES,
  );

  it(
    "learns our objective in two passes, and samples with the new weights",
    async () => {
      const inputs = some.map(({ ids }) => ({
        old: Array.from(ids, () => -3),
        advantage: Array.from(ids, () => 0.01),
        limit: Array.from(ids, () => 1),
      }));
      const policy = some.map((sequence, i) => ({ ...sequence, inputs: inputs[i]! }));
      const [theirs, ours] = await Promise.all(
        [skyrl, embedded].map((engine) => engine.forwardBackward(policy, clipped)),
      );
      expect(theirs!.loss).toBeCloseTo(ours!.loss, 4);
      await skyrl.optimStep({ learningRate: 1e-2 });
      const losses: number[] = [];
      for (let step = 0; step < 4; step++) {
        losses.push((await skyrl.forwardBackward(some, crossEntropy)).loss);
        await skyrl.optimStep({ learningRate: 1e-2 });
      }
      expect(losses.at(-1)).toBeLessThan(losses[0]!);

      const prompt = [3, 4, 5];
      const [sample] = await skyrl.sample([{ prompt, maxTokens: 4, temperature: 1, seed: 7 }]);
      const { tokens, logprobs } = sample![0]!;
      const ids = [...prompt, ...tokens];
      const targets = ids.map((_, i) => (i < prompt.length ? 0 : 1));
      const [scored] = await skyrl.forward([{ ids, targets }], {});
      expect(apart([logprobs], [scored!.logprobs.slice(-tokens.length)])).toBeLessThan(1e-3);
    },
    10 * MINUTES,
  );

  it(
    "restores what was saved",
    async () => {
      const checkpoint = join(mkdtempSync(join(tmpdir(), "pawl-skyrl-")), "checkpoint");
      const score = async () => (await skyrl.forward(some, {})).map(({ logprobs }) => logprobs);
      const before = await score();
      await skyrl.save(checkpoint);
      await skyrl.forwardBackward(some, crossEntropy);
      await skyrl.optimStep({ learningRate: 1e-2 });
      expect(apart(await score(), before)).toBeGreaterThan(1e-3);
      await skyrl.load(checkpoint);
      expect(apart(await score(), before)).toBeLessThan(1e-5);
      rmSync(dirname(checkpoint), { recursive: true });
    },
    10 * MINUTES,
  );
});
