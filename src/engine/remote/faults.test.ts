/** How the client handles a failing network and server. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { entropy, mul, type Objective } from "../../objectives/expression.js";
import { crossEntropy, toy } from "../conformance-tools-testing.js";
import type { Engine } from "../engine.js";
import { shardCheckpoint } from "../weights/shards-testing.js";
import { testModel, writeTestModel } from "./model-testing.js";
import { connectRemoteEngine } from "./remote-engine.js";
import type { RemoteOptions } from "./remote-model.js";
import {
  type Fault,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "./server-testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-faults-"));
const start = join(folder, "start");
const open: { close(): Promise<void> }[] = [];

beforeAll(() => writeTestModel(start));
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function serve(options: Partial<TestServerOptions> = {}): Promise<TestServer> {
  const server = await startTestServer({
    model: testModel,
    folder: join(folder, "checkpoints"),
    extensions: true,
    ...options,
  });
  open.push(server);
  return server;
}

function connect(url: string, options: Partial<RemoteOptions> = {}): Promise<Engine> {
  // Long, because a busy machine is slow; tests of giving up set a shorter one.
  const quick = { backoffMs: 1, giveUpAfterMs: 30_000, environment: {} };
  return connectRemoteEngine({ url, ...quick, ...options });
}

/** The norm of the gradient that some calls accumulate. */
async function normAfter(engine: Engine): Promise<number> {
  await engine.forwardBackward(toy, crossEntropy);
  await engine.optimStep({ learningRate: 1e-2 });
  await engine.forwardBackward(toy, crossEntropy);
  return (await engine.discardGradients()).gradNorm;
}

describe("on a bad network", () => {
  const faults: Readonly<Record<string, (path: string, before: number) => Fault | undefined>> = {
    "polls that end without a result": () => undefined,
    "connections dropped before anything was done": (path, before) =>
      before === 0 && path !== "session_heartbeat" ? "drop" : undefined,
    "answers that are lost": (path, before) =>
      before % 2 === 0 && !["create_session"].includes(path) ? "drop answer" : undefined,
    "a proxy that is overloaded": (path, before) =>
      before < 2 && path === "forward_backward" ? { status: 503, error: "busy" } : undefined,
  };
  it("nothing is done twice and nothing is lost", async () => {
    const calm = await connect((await serve()).url);
    const expected = await normAfter(calm);
    await calm.dispose();
    for (const [name, fault] of Object.entries(faults)) {
      const server = await serve({ fault, pollMs: name.startsWith("polls") ? 1 : 1000 });
      const engine = await connect(server.url);
      expect(await normAfter(engine), name).toBe(expected);
      expect(server.counts.get("retrieve_future")!, name).toBeGreaterThan(4);
      await engine.dispose();
    }
  });

  it("a plain server's call that may have arrived is not repeated", async () => {
    const fault = (path: string, before: number) =>
      path === "optim_step" && before === 0 ? ("drop answer" as const) : undefined;
    const server = await serve({ extensions: false, fault });
    const engine = await connect(server.url, { folder: start });
    await engine.forwardBackward(toy, crossEntropy);
    await expect(engine.optimStep({ learningRate: 1e-3 })).rejects.toThrow(
      /during optim_step .* unknown whether it was executed/,
    );
    expect(server.counts.get("optim_step")).toBe(1);
    await engine.dispose();
  });
});

describe("a server that goes away", () => {
  it("is waited for, then named in an error", async () => {
    const server = await serve();
    const engine = await connect(server.url, { giveUpAfterMs: 100 });
    await open.pop()!.close();
    await expect(engine.forward([{ ids: [1, 2] }])).rejects.toThrow(
      /server at http:\/\/127.0.0.1:\d+ does not answer: forward failed \d+ times .* ECONNREFUSED/,
    );
    await engine.dispose();
  });

  it("and comes back without the model is reported as restarted", async () => {
    const server = await serve();
    const engine = await connect(server.url);
    await engine.forwardBackward(toy, crossEntropy);
    await open.pop()!.close();
    const port = Number(new URL(server.url).port);
    const waiting = engine.optimStep({ learningRate: 1e-3 });
    const refused = expect(waiting).rejects.toThrow(
      /404: unknown model_id .*restarted.* resume from the last one/,
    );
    await serve({ port });
    await refused;
    await engine.dispose();
  });

  it("may be unreachable for a moment", async () => {
    const away = new Set([3, 4, 5]);
    let calls = 0;
    const server = await serve({
      fault: (path) => (path === "forward" && away.has(++calls) ? "drop" : undefined),
    });
    const engine = await connect(server.url);
    for (let i = 0; i < 4; i++)
      expect((await engine.forward([{ ids: [1, 2] }]))[0]!.logprobs[1]).toBeLessThan(0);
    expect(server.counts.get("forward")).toBe(7);
    await engine.dispose();
  });

  it("that never existed is named, with the command to start one", async () => {
    await expect(connect("http://127.0.0.1:9", { connectMs: 100 })).rejects.toThrow(
      /127.0.0.1:9 does not answer.*pawl serve engine/,
    );
    await expect(connect("127.0.0.1:9")).rejects.toThrow(/expected one like http:/);
    await expect(connect("http://me:secret@127.0.0.1:9")).rejects.toThrow(
      /must not contain a user name/,
    );
  });
});

describe("keys", () => {
  const key = "tml-very-secret";
  it("come from the environment, and a missing one is asked for", async () => {
    const server = await serve({ key });
    await expect(connect(server.url)).rejects.toThrow(/401.*No key was sent: set PAWL_API_KEY/);
    for (const name of ["PAWL_API_KEY", "TINKER_API_KEY"]) {
      const engine = await connect(server.url, { environment: { [name]: key } });
      await engine.dispose();
    }
    expect(server.requests.every(({ body }) => !body.includes(key))).toBe(true);
  });

  it("are in no error, even if the server sends them back", async () => {
    const fault = (path: string) =>
      path === "create_model" ? { status: 400, error: `bad key ${key}` } : undefined;
    const server = await serve({ key, fault });
    const failed = connect(server.url, { environment: { PAWL_API_KEY: key } });
    await expect(failed).rejects.toThrow("bad key [key]");
    await expect(connect(server.url, { environment: { PAWL_API_KEY: "a b" } })).rejects.toThrow(
      /contains blanks/,
    );
  });
});

describe("what a server lacks is rejected by name", () => {
  it("a server that divides by the sum of the weights", async () => {
    const server = await serve({ extensions: false, normalises: true });
    await expect(connect(server.url, { folder: start })).rejects.toThrow(
      /does not sum weighted log-probabilities.*divides by the sum of the weights/,
    );
  });

  it("values, entropies, discarded gradients, long stop sequences, other models", async () => {
    const server = await serve({ extensions: false });
    await expect(connect(server.url)).rejects.toThrow(/vocabulary and context.*config.json/);
    await expect(connect(server.url, { folder: start, valueHead: true })).rejects.toThrow(
      /no value head/,
    );
    await expect(connect(server.url, { model: "other" })).rejects.toThrow(
      /no model "other"; it has: test-model/,
    );
    const engine = await connect(server.url, { folder: start });
    expect(engine.capabilities).toMatchObject({ values: false, entropies: false });
    await expect(engine.forward([{ ids: [1, 2] }], { values: true })).rejects.toThrow(/value head/);
    await expect(engine.forward([{ ids: [1, 2] }], { entropies: true })).rejects.toThrow(
      /not compute entropies/,
    );
    await expect(engine.discardGradients()).rejects.toThrow(/gradients.every to 0/);
    const sharp: Objective = { loss: mul(entropy, -0.01), metrics: {} };
    await expect(engine.forwardBackward([{ ids: [1, 2], inputs: {} }], sharp)).rejects.toThrow(
      /reads entropy, which the engine server/,
    );
    const stop = [[1, 2]];
    await expect(engine.sample([{ prompt: [1], maxTokens: 2, seed: 0, stop }])).rejects.toThrow(
      /only stops at single tokens/,
    );
    await engine.dispose();
  });
});

describe("checkpoints", () => {
  it("are pointers to the server's; unreferenced ones are deleted there", async () => {
    const kept = join(folder, "kept");
    const server = await serve({ folder: kept });
    const engine = await connect(server.url, { folder: start });
    const run = join(folder, "my run");
    for (const name of ["1", "2", "3"]) {
      await engine.save(join(run, "checkpoints", name));
      rmSync(join(run, "checkpoints", String(Number(name) - 2)), { recursive: true, force: true });
    }
    expect(readdirSync(join(run, "checkpoints", "3"))).toEqual(["remote.json"]);
    const pointer = JSON.parse(
      readFileSync(join(run, "checkpoints", "3", "remote.json"), "utf8"),
    ) as { path: string };
    expect(pointer.path).toMatch(/^my_run\/[0-9a-f-]+$/);
    expect(existsSync(join(kept, pointer.path, "optimizer.safetensors"))).toBe(true);
    // The third save was made while a pointer to the first existed; the fourth finds it gone.
    expect(readdirSync(join(kept, "my_run"))).toHaveLength(3);
    await engine.save(join(run, "checkpoints", "4"));
    expect(readdirSync(join(kept, "my_run"))).toHaveLength(3);
    await engine.load(join(run, "checkpoints", "3"));
    await engine.dispose();
  });

  it("from elsewhere are uploaded once", async () => {
    const server = await serve({ folder: join(folder, "sent") });
    const uploads = () =>
      [...server.counts.keys()].filter((path) => path.endsWith("model.safetensors"));
    for (let i = 0; i < 2; i++) {
      const engine = await connect(server.url, { folder: start });
      await engine.load(start);
      await engine.dispose();
    }
    expect(uploads()).toHaveLength(1);
    expect(server.counts.get(uploads()[0]!)).toBe(1);
  });

  it("in several files are uploaded with their index", async () => {
    const sharded = join(folder, "sharded");
    await writeTestModel(sharded);
    await shardCheckpoint(sharded);
    const sent = join(folder, "sent-shards");
    const server = await serve({ folder: sent });
    const [whole, cut] = [
      await connect(server.url, { folder: start }),
      await connect(server.url, { folder: sharded }),
    ];
    expect((await cut.forward(toy))[0]!.logprobs).toEqual((await whole.forward(toy))[0]!.logprobs);
    const uploads = readdirSync(join(sent, "uploads")).map((name) =>
      readdirSync(join(sent, "uploads", name)),
    );
    expect(uploads.flat().filter((name) => name.startsWith("model-"))).toHaveLength(3);
    await whole.dispose();
    await cut.dispose();
    rmSync(join(sharded, "model-00002-of-00003.safetensors"));
    await expect(connect(server.url, { folder: sharded })).rejects.toThrow(
      /has no model-00002-of-00003.safetensors: expected a checkpoint/,
    );
  });
});
