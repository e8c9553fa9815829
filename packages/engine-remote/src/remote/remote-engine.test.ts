/** The client against a real HTTP server of the protocol, with and without our extensions. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import { roadChecks } from "@pawl/core/engine/conformance-testing.js";
import {
  clipped,
  close,
  crossEntropy,
  scores,
  toy,
} from "@pawl/core/engine/conformance-tools-testing.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testModel as model, writeTestModel } from "./model-testing.js";
import { connectRemoteEngine } from "./remote-engine.js";
import { startTestServer, type TestServer } from "./server-testing.js";
import { numbersOf } from "./wire.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-remote-"));
const start = join(folder, "start");

beforeAll(() => writeTestModel(start));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a remote engine on our own server conforms", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ model, folder: join(folder, "ours"), extensions: true });
  });
  afterAll(() => server.close());
  for (const { name, run } of roadChecks)
    it(name, async () => {
      await run(() => connectRemoteEngine({ url: server.url }));
      expect(server.counts.get("create_model")).toBeGreaterThan(0);
    });
});

describe("a remote engine on a plain server conforms, as far as such a server can", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ model, folder: join(folder, "plain"), extensions: false });
  });
  afterAll(() => server.close());
  /**
   * The others discard gradients, need entropies, stop at two tokens, or check truncated
   * log-probabilities.
   */
  const plain = /depend on its seed|of the whole|reference does not change|saved and loaded/;
  for (const { name, run } of roadChecks.filter((check) => plain.test(check.name)))
    it(name, async () => {
      await run(() => connectRemoteEngine({ url: server.url, folder: start }));
      expect(server.counts.get("create_model")).toBeGreaterThan(0);
    });
});

describe("a plain server", () => {
  const serve = (options: object) =>
    startTestServer({ model, folder: join(folder, "rules"), extensions: false, ...options });

  it("is never asked to load into a model that has been used, and no number is used twice", async () => {
    const servers = [{}, { without: "forward" }, { samplingSessions: true }];
    for (const options of servers.slice(0, dose(3, 1))) {
      const server = await serve(options);
      const engine = await connectRemoteEngine({ url: server.url, folder: start });
      const prompt = Array.from(toy[0]!.ids).slice(0, 3);
      const before = await scores(engine, prompt);
      const checkpoint = join(folder, `rules-${Object.keys(options)[0] ?? "plain"}`);
      await engine.save(checkpoint);
      await engine.snapshotReference();
      const learnOnce = async () => {
        await engine.forwardBackward(toy, crossEntropy);
        await engine.optimStep({ learningRate: 1e-2 });
      };
      await learnOnce();
      await learnOnce();
      const draw = { prompt, maxTokens: 2, seed: 1 };
      await engine.sample([draw, { ...draw, seed: 2 }]);
      expect(await scores(engine, prompt)).not.toEqual(before);
      await engine.load(checkpoint);
      expect(await scores(engine, prompt)).toEqual(before);
      await engine.snapshotReference();
      // The models of the probe, of the policy before and after loading, and of two references.
      expect(server.counts.get("create_model")).toBe(5);
      expect(server.counts.get("unload_model")).toBe(3);
      await learnOnce();
      const [reference] = await engine.forward([{ ids: prompt }], { weights: "reference" });
      close(Array.from(reference!.logprobs), before, 1e-6);
      await engine.dispose();
      await server.close();
    }
  });

  it("that collects gradients in a forward pass is rejected", async () => {
    const server = await serve({ without: "forward", ignoresForwardOnly: true });
    await expect(connectRemoteEngine({ url: server.url, folder: start })).rejects.toThrow(
      /has no call for a forward pass.* collects gradients although forward_only is set/,
    );
    await server.close();
  });

  it("that loads with or without the optimiser is told which", async () => {
    const server = await serve({});
    const engine = await connectRemoteEngine({ url: server.url, folder: start });
    for (const optimizer of [true, false]) {
      const into = join(folder, `optimizer-${optimizer}`);
      await engine.save(into, { optimizer });
      await engine.load(into);
      const { body } = server.requests.filter(({ path }) => path === "load_weights").at(-1)!;
      expect(JSON.parse(body)).toMatchObject({ seq_id: 1, optimizer });
    }
    await engine.dispose();
    await server.close();
  });
});

/** A few updates with an objective that has kinks; returns scores of the resulting weights. */
async function learnt(engine: Engine) {
  const sequences = toy.map(({ ids }, i) => ({
    ids,
    inputs: {
      old: Array.from({ length: ids.length }, (_, j) => -3.4 - (j % 4) * 0.2),
      advantage: Array.from({ length: ids.length }, (_, j) => (i - 4) * 0.5 + j * 0.01),
      limit: Array.from({ length: ids.length }, () => 0.9),
    },
  }));
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { loss, metrics } = await engine.forwardBackward(sequences, clipped);
    losses.push(loss, metrics.ratio!);
    await engine.optimStep({ learningRate: 1e-3 });
  }
  return { losses, after: await scores(engine, Array.from(toy[1]!.ids)) };
}

describe("temperatures", () => {
  const ids = [1, 2, 3, 4];
  const withServer = async (
    options: object,
    work: (engine: Engine, server: TestServer) => unknown,
  ) => {
    const server = await startTestServer({
      model,
      folder: join(folder, "temperatures"),
      extensions: true,
      ...options,
    });
    const engine = await connectRemoteEngine({ url: server.url, folder: start });
    await work(engine, server);
    await engine.dispose();
    await server.close();
  };
  const sent = ({ requests }: TestServer, path: string) => {
    const { body } = requests.filter((request) => request.path === path).at(-1)!;
    const { data } = JSON.parse(body)[`${path}_input`];
    return data.map(({ loss_fn_inputs: inputs }: { readonly loss_fn_inputs: object }) =>
      "temperatures" in inputs ? Array.from(numbersOf(inputs.temperatures as never)) : undefined,
    );
  };

  it("are sent only if they are not 1, and only for targets", () =>
    withServer({}, async (engine, server) => {
      expect(engine.capabilities.temperatures).toBe(true);
      const cool = { ids, targets: [0, 1, 0, 1], temperatures: [9, 0.5, 9, 1] };
      await engine.forward([cool, { ids, temperatures: [1, 1, 1, 1] }, { ids }]);
      expect(sent(server, "forward")).toEqual([[0.5, 1, 1], undefined, undefined]);
      const inputs = { weight: [0, 1, 1, 1] };
      await engine.forwardBackward([{ ...cool, inputs }], crossEntropy);
      expect(sent(server, "forward_backward")).toEqual([[0.5, 1, 1]]);
      for (const bad of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
        await expect(engine.forward([{ ids, temperatures: [1, 1, bad, 1] }])).rejects.toThrow(
          `temperatures: token 2 of sequence 0 has ${bad}; expected a finite number above 0`,
        );
      await expect(engine.forward([{ ids, temperatures: [1] }])).rejects.toThrow(
        /4 tokens but 1 temperatures/,
      );
    }));

  it("other than 1 are rejected if the server does not support them", async () => {
    for (const options of [{ without: "temperatures" }, { extensions: false }])
      await withServer(options, async (engine) => {
        expect(engine.capabilities.temperatures).toBe(false);
        const refused = /only at temperature 1, but sequence 0 has others; set temperature to 1/;
        const cool = { ids, temperatures: [1, 1, 0.7, 1], inputs: { weight: [0, 1, 1, 1] } };
        await expect(engine.forward([cool])).rejects.toThrow(refused);
        await expect(engine.forwardBackward([cool], crossEntropy)).rejects.toThrow(refused);
        const [one] = await engine.forward([{ ids, temperatures: [0, 1, 1, 1] }]);
        expect(one!.logprobs[1]).toBeLessThan(0);
      });
  });

  it("leave out what a plain server does not return for a tempered sample", () =>
    withServer({ extensions: false }, async (engine) => {
      const draw = { prompt: ids, maxTokens: 3, seed: 1 };
      const [warm, cool, greedy] = await engine.sample([
        draw,
        { ...draw, temperature: 0.7 },
        { ...draw, temperature: 0 },
      ]);
      expect(warm![0]!.sampledLogprobs).toEqual(warm![0]!.logprobs);
      expect(cool![0]!.sampledLogprobs).toBeUndefined();
      expect(greedy![0]!.sampledLogprobs).toEqual([0, 0, 0]);
    }));
});

describe("an objective gives the same update", () => {
  it("fused on our own server, in two passes on a plain one, and embedded", async () => {
    const notices: string[] = [];
    const embedded = await createEmbeddedEngine(model);
    const expected = await learnt(embedded);
    await embedded.dispose();
    for (const extensions of [true, false]) {
      const server = await startTestServer({ model, folder: join(folder, "same"), extensions });
      const engine = await connectRemoteEngine({
        url: server.url,
        folder: start,
        onNotice: (message) => notices.push(message),
      });
      expect(engine.capabilities.fusedObjective).toBe(extensions);
      const { losses, after } = await learnt(engine);
      close(losses, expected.losses, 1e-4);
      close(after, expected.after, 1e-4);
      expect(server.counts.get("forward") ?? 0).toBe(extensions ? 1 : 5);
      await engine.dispose();
      await server.close();
    }
    expect(notices).toEqual([expect.stringMatching(/does not support objectives.*second forward/)]);
  });
});
