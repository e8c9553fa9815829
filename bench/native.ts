/**
 * A prototype of a small native engine (`native/`, C++, AVX-512) beside the embedded engine and
 * PyTorch, in one run.
 *
 *   PAWL_PYTHON=/path/to/python npm run bench -- native [--parts check,products,large,small,sample,laptop]
 *
 * Compiles it with g++ first; it is no part of the package. `check` compares its log-probabilities and gradients with
 * the engine's, and those of what it sampled; `products` are matrix products, in GFLOP/s; `large` and `small` are
 * training steps of the models of `engine.ts`, `sample` is its sampling; `laptop` is the default run's
 * work, without PyTorch. Repetitions are interleaved, ratios are of medians, and above 1 the
 * prototype is faster.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Engine } from "@pawl/core/engine/engine.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { difference } from "./native/difference.js";
import { productsOf } from "./native/products.js";
import { interleave, machine, type Peer, startPeer, startProgram, THREADS } from "./peer/side.js";
import {
  episodeLengths,
  learnOnce,
  million,
  peerModel,
  play,
  reference,
  rollOut,
  sampleOnce,
  tiny,
  trainOnce,
} from "./peer/work.js";

const PARTS = ["check", "products", "large", "small", "sample", "laptop"] as const;
const SOURCE = new URL("native/native.cpp", import.meta.url).pathname;

/** Compiles the prototype into a folder. */
function compile(folder: string): string {
  const program = join(folder, "native");
  const flags = readFileSync("/proc/cpuinfo", "utf8");
  if (!/\bavx512vl\b/.test(flags))
    throw new Error("the prototype needs a processor with AVX-512 (F, BW, DQ, VL), under Linux");
  const options = ["-O3", "-std=c++17", "-march=native", "-mprefer-vector-width=512", "-pthread"];
  const { error, status, stderr } = spawnSync("g++", [...options, "-w", SOURCE, "-o", program], {
    encoding: "utf8",
  });
  if (error) throw new Error("g++ is missing; install it (Debian: apt install g++)");
  if (status !== 0) throw new Error(`g++ could not compile ${SOURCE}:\n${stderr}`);
  return program;
}

const ask = async (peer: Peer, command: object) => (await peer.ask({ ...command })).seconds!;
const round = (x: number, digits = 2) => Number(x.toFixed(digits));

/** Opens the model on both other sides, and the engine. */
async function opened<T>(
  config: ModelConfig,
  peers: readonly Peer[],
  work: (engine: Engine) => Promise<T>,
): Promise<T> {
  for (const peer of peers) await peer.ask(peerModel(config));
  const engine = await createEmbeddedEngine({ model: { config }, threads: THREADS });
  try {
    return await work(engine);
  } finally {
    await engine.dispose();
  }
}

export async function main(args: readonly string[]): Promise<object> {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      parts: { type: "string", default: PARTS.join(",") },
      repetitions: { type: "string", default: "7" },
    },
  });
  const parts = new Set(options.parts.split(","));
  const unknown = [...parts].filter((part) => !PARTS.some((known) => known === part));
  if (unknown.length > 0) throw new Error(`--parts: expected ${PARTS}, not ${unknown}`);
  const repetitions = Number(options.repetitions);
  const load = loadavg()[0]!;
  const folder = mkdtempSync(join(tmpdir(), "pawl-native-"));
  const native = startProgram([compile(folder)], "the native prototype ended");
  const withTorch = ["products", "large", "small", "sample"].some((part) => parts.has(part));
  const torch = withTorch ? startPeer("peer.py") : undefined;
  const result: Record<string, unknown> = {};
  const training = async (config: ModelConfig, batch: number, length: number, name: string) => {
    const step = { do: "train", batch, length };
    await opened(config, [native, torch!], async (engine) => {
      const sides = {
        native: () => ask(native, step),
        ours: () => trainOnce(engine, config, batch, length),
        torch: () => ask(torch!, step),
      };
      const eager = await interleave(sides, repetitions);
      await torch!.ask(peerModel(config, true));
      const compiled = await interleave(sides, repetitions);
      result[name] = {
        tokens_per_s: Math.round((batch * length) / eager.native),
        to_ours: round(eager.ours / eager.native),
        to_eager: round(eager.torch / eager.native),
        to_compiled: round(compiled.torch / compiled.native),
      };
    });
  };
  try {
    if (parts.has("check")) result.check = await difference(native, folder);
    if (parts.has("products")) result.products = await productsOf(native, torch!);
    if (parts.has("large")) await training(reference, 32, 256, "train_4m");
    if (parts.has("small")) await training(million, 64, 128, "train_1m");
    if (parts.has("sample"))
      await opened(reference, [native, torch!], async (engine) => {
        const sample = (prompts: number, count: number) => {
          const command = { do: "sample", prompts, count, prompt: 128, new: 32 };
          return {
            native: () => ask(native, command),
            ours: () => sampleOnce(engine, reference, prompts, count),
            torch: () => ask(torch!, command),
          };
        };
        const distinct = await interleave(sample(64, 1), repetitions);
        const grouped = await interleave(sample(8, 8), repetitions);
        for (const [name, { native, ours, torch }] of Object.entries({ distinct, grouped }))
          result[`sample_${name}`] = {
            seconds: round(native, 3),
            to_ours: round(ours / native),
            to_eager: round(torch / native),
          };
      });
    if (parts.has("laptop"))
      await opened(tiny, [native], async (engine) => {
        const steps = Array.from({ length: 10 }, () => episodeLengths(8));
        const update = episodeLengths(128);
        const targets = (lengths: readonly number[]) => lengths.map((length) => length - 1);
        const learn = async (batches: readonly (readonly number[])[]) => {
          let seconds = 0;
          for (const lengths of batches) seconds += await learnOnce(engine, tiny, lengths);
          return seconds;
        };
        const train = (lengths: readonly number[], each: number) =>
          ask(native, { do: "train", lengths: targets(lengths), each });
        const sides = await interleave(
          {
            warm: () => learn(steps),
            warmNative: () => train(steps.flat(), 8),
            update: () => learn([update]),
            updateNative: () => train(update, 128),
            rollout: () => rollOut(engine),
            rolloutNative: () => ask(native, { do: "rollout", ...play }),
          },
          repetitions,
        );
        result.laptop = {
          warm_start_step_s: round(sides.warmNative / steps.length, 4),
          warm_start_to_ours: round(sides.warm / sides.warmNative),
          update_s: round(sides.updateNative, 3),
          update_to_ours: round(sides.update / sides.updateNative),
          rollout_s: round(sides.rolloutNative, 3),
          rollout_to_ours: round(sides.rollout / sides.rolloutNative),
        };
      });
  } finally {
    torch?.close();
    native.close();
    rmSync(folder, { recursive: true });
  }
  return { ...result, machine: machine(), load: round(load, 1), repetitions };
}
