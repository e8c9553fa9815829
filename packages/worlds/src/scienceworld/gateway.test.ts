import { type AddressInfo, createServer, type Socket } from "node:net";
import { dose } from "@pawl/core/dose-testing.js";
import { EnvError } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import {
  callRequest,
  connectGateway,
  constructRequest,
  type Gateway,
  readAnswer,
  releaseRequest,
} from "./gateway.js";

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** A gateway that answers as it is told: a stand-in, because a JVM does not misbehave on demand. */
async function gatewayTo(
  onData: (socket: Socket, text: string) => void,
  seconds = 30,
): Promise<Gateway> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("data", (data) => onData(socket, data.toString())).on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return connectGateway({ port: (server.address() as AddressInfo).port, seconds });
}

const ask = (gateway: Gateway, text = "look") => gateway.call({ id: "o0" }, "step", [text]);

describe("a gateway", () => {
  it("gives a long answer a connection of its own, which ends with it", async () => {
    const asking = new Set<Socket>();
    let closed = 0;
    const gateway = await gatewayTo((socket, text) => {
      asking.add(socket);
      socket.once("close", () => closed++);
      if (text.includes("join")) socket.write(`!ys${"word ".repeat(50_000)}\n`);
      else socket.write("!yi1\n");
    });
    expect(await ask(gateway)).toBe(1);
    const long = gateway.callApart({ id: "o0" }, "join");
    expect(gateway.busy).toBe(true);
    expect(await long).toHaveLength(250_000);
    expect(gateway.busy).toBe(false);
    expect(await ask(gateway)).toBe(1);
    expect([asking.size, closed]).toEqual([2, 1]);
  });

  it("is dead if a long answer does not come", async () => {
    const gateway = await gatewayTo(() => undefined, 0.2);
    await expect(gateway.callApart({ id: "o0" }, "join")).rejects.toThrow("took longer than 0.2 s");
    await expect(ask(gateway)).rejects.toThrow("took longer than 0.2 s");
    await expect(gateway.callApart({ id: "o0" }, "join")).rejects.toThrow(EnvError);
  });

  it("gives answers in the order of the requests", async () => {
    let asked = 0;
    const gateway = await gatewayTo((socket, text) => {
      for (const _ of text.matchAll(/^e$/gm)) socket.write(`!yi${asked++}\n`);
    });
    expect(await Promise.all([ask(gateway), ask(gateway), ask(gateway)])).toEqual([0, 1, 2]);
    expect(gateway.busy).toBe(false);
  });

  it("reads answers cut anywhere, also within a character", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", minLength: 1 }),
        fc.array(fc.nat(40), { maxLength: 5 }),
        async (text, cuts) => {
          const gateway = await gatewayTo(async (socket) => {
            const escaped = text.replace(
              /[\\\n\r]/g,
              (c) => ({ "\\": "\\\\", "\n": "\\n" })[c] ?? "\\r",
            );
            const bytes = Buffer.from(`!ys${escaped}\n`);
            const ends = [...cuts.filter((cut) => cut < bytes.length), bytes.length];
            let from = 0;
            for (const end of ends.sort((a, b) => a - b)) {
              socket.write(bytes.subarray(from, end));
              await new Promise(setImmediate);
              from = end;
            }
          });
          expect(await ask(gateway)).toBe(text);
          gateway.fail(new EnvError("done"));
        },
      ),
      { numRuns: 30 },
    );
  });

  it("says what Java threw", async () => {
    const gateway = await gatewayTo((socket, text) =>
      socket.write(text.includes("toString") ? "!ysjava.lang.Oops: no\n" : "!xro7\n"),
    );
    await expect(ask(gateway)).rejects.toThrow("step failed: java.lang.Oops: no");
  });

  it("is dead after a time-out, and says so to whoever asks again", async () => {
    const gateway = await gatewayTo(() => undefined, 0.05);
    await expect(ask(gateway)).rejects.toThrow("step took longer than 0.05 s");
    await expect(ask(gateway)).rejects.toThrow(EnvError);
  });

  it.each([
    [
      "garbage",
      (socket: Socket) => socket.write("HTTP/1.1 400 Bad Request\n"),
      "expected an answer",
    ],
    ["an end", (socket: Socket) => socket.destroy(), "process is gone"],
    ["half an answer and an end", (socket: Socket) => socket.end("!ysThis ro"), "process is gone"],
    ["too many answers", (socket: Socket) => socket.write("!yv\n!yv\n!yv\n"), "nobody asked for"],
  ])("is dead after %s", async (_, misbehave, reason) => {
    const gateway = await gatewayTo((socket) => misbehave(socket));
    await Promise.allSettled([ask(gateway)]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const died = await ask(gateway).then(
      () => undefined,
      (error: EnvError) => error,
    );
    expect(died).toBeInstanceOf(EnvError);
    expect(died?.message).toContain(reason);
  });

  it("survives no garbage, and never with an answer to another request", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (noise) => {
        const gateway = await gatewayTo((socket) =>
          socket.end(Buffer.concat([noise, Buffer.from("\n")])),
        );
        await ask(gateway).catch((error: unknown) => expect(error).toBeInstanceOf(EnvError));
      }),
      { numRuns: dose(50) },
    );
  });

  it("names a port at which nobody listens", async () => {
    await expect(connectGateway({ port: 1, seconds: 5 })).rejects.toThrow(
      /port 1 cannot be reached/,
    );
  });
});

describe("requests", () => {
  it("are lines with a letter for each argument's type", () => {
    expect(callRequest({ id: "o0" }, "load", ["boil", 3, "", false])).toBe(
      "c\no0\nload\nsboil\ni3\ns\nbfalse\ne\n",
    );
    expect(callRequest("z:java.lang.System", "setOut", [{ id: "o1" }, null])).toBe(
      "c\nz:java.lang.System\nsetOut\nro1\nn\ne\n",
    );
    expect(constructRequest("java.io.PrintStream", ["/dev/null"])).toBe(
      "i\njava.io.PrintStream\ns/dev/null\ne\n",
    );
    expect(releaseRequest({ id: "o2" })).toBe("m\nd\no2\ne\n");
  });

  it("keep any text on its line, and answers give it back", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const lines = callRequest({ id: "o0" }, "step", [text]).split("\n");
        expect(lines).toHaveLength(6);
        expect(lines[3]).not.toContain("\r");
        expect(readAnswer(`!y${lines[3]}`)).toEqual({ value: text });
      }),
    );
  });
});

describe("answers", () => {
  it.each([
    ["!yv", undefined],
    ["!y", undefined],
    ["!yn", null],
    ["!ysa\\nb\\\\n\\r", "a\nb\\n\r"],
    ["!ybtrue", true],
    ["!yi-7", -7],
    ["!yd0.8333333333333333", 0.8333333333333333],
    ["!yd1.0E-5", 1e-5],
    ["!ydNaN", Number.NaN],
    ["!ylo12", { id: "o12" }],
    ["!yro3", { id: "o3" }],
  ])("%s", (line, value) => expect(readAnswer(line)).toEqual({ value }));

  it("say what was thrown", () => {
    expect(readAnswer("!xsno such method")).toEqual({ thrown: "no such method" });
    expect(readAnswer("!xro4")).toEqual({ thrown: { id: "o4" } });
  });

  it.each([
    "",
    "hello",
    "HTTP/1.1 400 Bad Request",
    "!",
    "!z",
    "!yq1",
    "!yi",
    "!yi1x",
    "!ybmaybe",
    "!yr",
    "!yro1 o2",
  ])("%j is none", (line) => expect(() => readAnswer(line)).toThrow(EnvError));

  it("never fail in another way", () => {
    const letters = fc.constantFrom(..."!yxsibdrlnvLo0123.eE-\\ ");
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: letters })), (line) => {
        try {
          readAnswer(line);
        } catch (error) {
          expect(error).toBeInstanceOf(EnvError);
        }
      }),
      { numRuns: dose(2000) },
    );
  });
});
