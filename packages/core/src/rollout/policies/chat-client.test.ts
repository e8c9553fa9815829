import { afterEach, describe, expect, it } from "vitest";
import {
  type Behaviour,
  fails,
  says,
  startChatServer,
} from "../../../../../tests/helpers/chat-server.js";
import { type ChatRuntime, chatClientOptions, createChatClient, limiter } from "./chat-client.js";

const secret = "sk-very-secret-0123456789";
const messages = [{ role: "user", content: "look" }] as const;

type Server = Awaited<ReturnType<typeof startChatServer>>;
const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** A server with these behaviours, a client for it, and the delays the client asked for. */
async function setUp(behaviours: readonly Behaviour[], options: object = {}) {
  const server = await startChatServer(...behaviours);
  servers.push(server);
  const waits: number[] = [];
  const runtime: ChatRuntime = {
    environment: { OPENAI_API_KEY: secret },
    now: () => Date.UTC(2026, 0, 1),
    wait: async (ms, signal) => {
      waits.push(ms);
      signal?.throwIfAborted();
    },
  };
  const settings = chatClientOptions.parse({
    baseUrl: server.baseUrl,
    model: "tiny",
    retries: 3,
    backoffMs: 100,
    ...options,
  });
  return { server, waits, ask: createChatClient(settings, runtime) };
}

/** The message of the error that a promise is rejected with. */
async function failure(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    (value) => new Error(`it answered ${JSON.stringify(value)}`),
    (reason: Error) => reason,
  );
  return `${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
}

describe("a good server", () => {
  it("sends what the protocol requires and returns the answer", async () => {
    const { server, ask } = await setUp([says("hello")], {
      extra: { top_p: 0.9, max_tokens: null },
    });
    expect(await ask(messages, 2 ** 32 - 1)).toBe("hello");
    const request = server.received[0];
    expect(request?.url).toBe("/v1/chat/completions");
    expect(request?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(request?.body).toEqual({
      model: "tiny",
      messages,
      temperature: 0.4,
      seed: 2 ** 31 - 1,
      top_p: 0.9,
    });
  });

  it("works with a local server that needs no key, and with an empty answer", async () => {
    const { server, ask } = await setUp([says(null)], { apiKeyVariable: "UNSET" });
    expect(await ask(messages, 1)).toBe("");
    expect(server.received[0]?.headers).not.toHaveProperty("authorization");
  });

  it("sends no more concurrent requests than allowed", async () => {
    let open = 0;
    let most = 0;
    const slow: Behaviour = (response, request) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        says(String(request.body.seed))(response, request);
      }, 5);
    };
    const { ask } = await setUp([slow], { concurrency: 2 });
    const seeds = [1, 2, 3, 4, 5, 6];
    expect(await Promise.all(seeds.map((seed) => ask(messages, seed)))).toEqual(seeds.map(String));
    expect(most).toBe(2);
  });
});

describe("a failing server is retried", () => {
  const reset: Behaviour = (response) => response.destroy();
  it.each<readonly [string, Behaviour]>([
    ["500", fails(500, "oh no")],
    ["503", fails(503)],
    ["408", fails(408)],
    ["429", fails(429, "slow down")],
    ["a lost connection", reset],
    ["garbage", fails(200, "<html>gateway</html>")],
    ["no choices", fails(200, '{"choices": []}')],
    ["no message", fails(200, '{"choices": [{"text": "x"}]}')],
  ])("after %s", async (_, behaviour) => {
    const { server, waits, ask } = await setUp([behaviour, behaviour, says("at last")]);
    expect(await ask(messages, 5)).toBe("at last");
    expect(server.received).toHaveLength(3);
    expect(waits).toHaveLength(2);
    expect(waits[0]).toBeGreaterThanOrEqual(50);
    expect(waits[0]).toBeLessThan(150);
    expect(waits[1]).toBeGreaterThanOrEqual(100);
    expect(waits[1]).toBeLessThan(300);
  });

  it("with delays that differ between seeds and are the same for the same seed", async () => {
    const waitsFor = async (seed: number) => {
      const { waits, ask } = await setUp([fails(500), fails(500), says("x")]);
      await ask(messages, seed);
      return waits;
    };
    expect(await waitsFor(1)).toEqual(await waitsFor(1));
    expect(await waitsFor(1)).not.toEqual(await waitsFor(2));
  });

  it("after the delay it asks for, in seconds or as a date", async () => {
    const { waits, ask } = await setUp([
      fails(429, "", { "retry-after": "7" }),
      fails(503, "", { "retry-after": "Thu, 01 Jan 2026 00:00:20 GMT" }),
      says("x"),
    ]);
    await ask(messages, 1);
    expect(waits).toEqual([7000, 20_000]);
  });

  it("when it hangs before or during an answer", async () => {
    const silent: Behaviour = () => undefined;
    const halfway: Behaviour = (response) => {
      response.write('{"choices": [');
    };
    const { ask, server } = await setUp([silent, halfway, says("x")], { timeoutMs: 500 });
    expect(await ask(messages, 1)).toBe("x");
    expect(server.received).toHaveLength(3);
    const hanging = await setUp([silent], { timeoutMs: 30, retries: 1 });
    expect(await failure(hanging.ask(messages, 1))).toMatch(
      /failed 2 times, most recently with no answer within 30 ms/,
    );
  });
});

describe("errors", () => {
  it.each([400, 401, 404, 422])(
    "%i is final and names address, status and body",
    async (status) => {
      const { server, ask } = await setUp([
        fails(status, `{"error": "wrong model"} ${"x".repeat(999)}`),
      ]);
      const message = await failure(ask(messages, 1));
      expect(message).toContain(`POST ${server.baseUrl}/chat/completions (model tiny) failed with`);
      expect(message).toContain(`status ${status}: {"error": "wrong model"} xxx`);
      expect(message).not.toContain("x".repeat(200));
      expect(server.received).toHaveLength(1);
    },
  );

  it("of a server that keeps failing give the number of attempts and the last error", async () => {
    const { server, ask } = await setUp([fails(500, "first"), fails(502, "")]);
    expect(await failure(ask(messages, 1))).toMatch(
      /failed 4 times, most recently with status 502: \(empty body\)/,
    );
    expect(server.received).toHaveLength(4);
    const garbage = await setUp([fails(200, "<html>")], { retries: 0 });
    expect(await failure(garbage.ask(messages, 1))).toMatch(
      /failed 1 time, most recently with status 200, but not JSON: <html>/,
    );
  });

  it("of a server whose answer never ends come at a limit, without a retry", async () => {
    let sent = 0;
    const endless: Behaviour = (response) => {
      const piece = " ".repeat(2 ** 20);
      const more = (): void => {
        while (!response.destroyed && response.write(piece)) sent++;
      };
      response.on("drain", more);
      more();
    };
    const { server, ask } = await setUp([endless]);
    expect(await failure(ask(messages, 0))).toContain("an answer of more than 16777216 bytes");
    expect(server.received).toHaveLength(1);
    expect(sent).toBeLessThan(64);
  });

  it("never contain the key, even if the server echoes it", async () => {
    const echo: Behaviour = (response, request) =>
      fails(401, `bad ${request.headers.authorization}`)(response, request);
    const { ask } = await setUp([echo]);
    const message = await failure(ask(messages, 1));
    expect(message).toContain("bad Bearer [key]");
    expect(message).not.toContain(secret);
    expect(JSON.stringify(ask)).toBeUndefined();
  });

  it("say which variable to set, and what is wrong with a key or an address", async () => {
    const { ask, server } = await setUp([fails(401, "who?")], { apiKeyVariable: "MY_KEY" });
    expect(await failure(ask(messages, 1))).toContain("No key was sent: set MY_KEY.");
    const settings = chatClientOptions.parse({ baseUrl: server.baseUrl, model: "tiny" });
    const runtime = {
      environment: { OPENAI_API_KEY: `${secret}\n${secret}` },
    } as unknown as ChatRuntime;
    expect(() => createChatClient(settings, runtime)).toThrow(/key in OPENAI_API_KEY contains/);
    expect(() => createChatClient(settings, runtime)).not.toThrow(secret);
    const baseUrl = "http://me:password@localhost/v1";
    expect(() => createChatClient({ ...settings, baseUrl })).toThrow(
      /must not contain a user name/,
    );
    expect(chatClientOptions.safeParse({ baseUrl: "localhost:80", model: "m" }).success).toBe(
      false,
    );
  });

  it("report redirects, unreachable servers and delays that are too long", async () => {
    const moved = await setUp([fails(308, "", { location: "https://elsewhere.test/v1" })]);
    expect(await failure(moved.ask(messages, 1))).toContain("Moved to https://elsewhere.test/v1");
    const patient = await setUp([fails(429, "", { "retry-after": "3600" })]);
    expect(await failure(patient.ask(messages, 1))).toContain("asks to retry in 3600 s");
    const gone = await setUp([says("x")], { retries: 1 });
    await gone.server.close();
    expect(await failure(gone.ask(messages, 1))).toMatch(
      /failed 2 times, most recently with ECONNREFUSED/,
    );
  });
});

describe("an abort", () => {
  it("ends a request in flight with the given reason", async () => {
    const { ask, server } = await setUp([() => undefined]);
    const controller = new AbortController();
    const arrived = server.nextRequest();
    const asked = ask(messages, 1, controller.signal);
    await arrived;
    controller.abort(new Error("the user left"));
    await expect(asked).rejects.toThrow("the user left");
    expect(server.received).toHaveLength(1);
    await expect(ask(messages, 1, controller.signal)).rejects.toThrow("the user left");
    expect(server.received).toHaveLength(1);
  });

  it("ends the delay before a retry", async () => {
    const { server } = await setUp([fails(500)]);
    const settings = chatClientOptions.parse({
      baseUrl: server.baseUrl,
      model: "tiny",
      backoffMs: 60_000,
    });
    const controller = new AbortController();
    const arrived = server.nextRequest();
    const asked = createChatClient(settings)(messages, 1, controller.signal);
    await arrived;
    // The answer is on its way; give the client time to read it and start the delay.
    await new Promise((resolve) => setTimeout(resolve, 50));
    controller.abort(new Error("the user left"));
    await expect(asked).rejects.toThrow("the user left");
    expect(server.received).toHaveLength(1);
  });
});

/** Work that ends on request. */
function manual() {
  let end: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end };
}

it("runs this many at a time and the others in order", async () => {
  const limit = limiter(2);
  const log: string[] = [];
  const works = ["a", "b", "c", "d"].map((name) => ({ name, ...manual() }));
  const results = works.map(({ name, done }) =>
    limit(async () => {
      log.push(`+${name}`);
      await done;
      log.push(`-${name}`);
      return name;
    }),
  );
  await Promise.resolve();
  expect(log).toEqual(["+a", "+b"]);
  works[1]?.end();
  await results[1];
  works[0]?.end();
  await results[0];
  works[2]?.end();
  works[3]?.end();
  expect(await Promise.all(results)).toEqual(["a", "b", "c", "d"]);
  expect(log.indexOf("+c")).toBeGreaterThan(log.indexOf("-b"));
  expect(log.indexOf("+d")).toBeGreaterThan(log.indexOf("-a"));
});

it("frees a slot after a failure and removes aborted work from the queue", async () => {
  const limit = limiter(1);
  const first = manual();
  const running = limit(() => first.done);
  const controller = new AbortController();
  const waiting = limit(async () => "never", controller.signal);
  const failing = limit(async () => {
    throw new Error("broken");
  });
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(limit(async () => 1, controller.signal)).rejects.toThrow("enough");
  first.end();
  await running;
  await expect(failing).rejects.toThrow("broken");
  expect(await limit(async () => "room")).toBe("room");
});
