import type { Sampler } from "@pawl/core/rollout/scheduler.js";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { Heard } from "../chat.js";
import { hermes, scripted, scriptedSession, tools, user } from "../testing.js";
import { startEndpoint, type TestEndpoint } from "./testing.js";

const open: TestEndpoint[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((endpoint) => endpoint.close()));
});

const bodies: Readonly<Record<string, object>> = {
  "chat/completions": { messages: [{ role: "user", content: "go on" }] },
  responses: { input: "go on" },
  messages: { messages: [{ role: "user", content: "go on" }], max_tokens: 64 },
};

/** Says "go ", and the rest when it is let go; or fails then. */
function slow(fails = false) {
  let letGo: () => void = () => undefined;
  let isAborted = false;
  const sampler: Sampler = {
    async sample(request, signal, hear) {
      hear?.(hermes.encode("go on ", { plain: true }));
      await new Promise<void>((resolve, reject) => {
        letGo = resolve;
        signal!.addEventListener("abort", () => {
          isAborted = true;
          reject(signal!.reason);
        });
      });
      if (fails) throw new Error("the engine is gone");
      return scripted(hermes, ["go on enough"]).sample(request);
    },
  };
  return { sampler, letGo: () => letGo(), isAborted: () => isAborted };
}

async function ask(path: string, sampler: Sampler, signal?: AbortSignal) {
  const endpoint = await startEndpoint(sampler);
  open.push(endpoint);
  const reply = await fetch(`${endpoint.url}/sessions/a/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "policy", stream: true, ...bodies[path] }),
    ...(signal !== undefined && { signal }),
  });
  expect(reply.status).toBe(200);
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  const until = async (isEnough: (text: string) => boolean): Promise<string> => {
    let text = "";
    while (!isEnough(text)) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
    }
    return text;
  };
  return { endpoint, until };
}

describe.each(Object.keys(bodies))("a stream of %s", (path) => {
  it("begins before the last token is sampled, and ends with the rest", async () => {
    const { sampler, letGo } = slow();
    const { until } = await ask(path, sampler);
    const first = await until((text) => text.includes('"go'));
    expect(first).not.toContain("enough");
    letGo();
    expect(await until(() => false)).toContain("enough");
  });

  it("that its client leaves is not sampled any further, nor recorded", async () => {
    const { sampler, isAborted } = slow();
    const leaving = new AbortController();
    const { endpoint, until } = await ask(path, sampler, leaving.signal);
    await until((text) => text.includes('"go'));
    leaving.abort();
    while (!isAborted()) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await endpoint.call("GET", "/sessions/a"))[1].calls).toEqual([]);
  });

  it("says if the engine fails in its midst", async () => {
    const { sampler, letGo } = slow(true);
    const { endpoint, until } = await ask(path, sampler);
    await until((text) => text.includes('"go'));
    letGo();
    expect(await until(() => false)).toMatch(/"message":"the server failed; see its output"/);
    expect(endpoint.faults).toHaveLength(1);
  });
});

describe("what is heard of an answer", () => {
  const pieces = fc.constantFrom(
    ...[
      "go ",
      " on",
      "<think>",
      "</think>",
      "\n",
      "<",
      "enough",
      "<tool_call>",
      "</tool_call>",
      "é",
    ],
    '{"name": "look", "arguments": {"place": "shelf"}}',
  );

  it("is the answer, whatever it is and however it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(pieces, { maxLength: 8 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 9 }),
        async (parts, isOffered, size) => {
          const said = scripted(hermes, [parts.join("")]);
          const sampler: Sampler = {
            async sample(request, _, hear) {
              const sample = await said.sample(request);
              for (let at = 0; at < sample.tokens.length; at += size)
                hear?.(sample.tokens.slice(at, at + size));
              return sample;
            },
          };
          const { session } = scriptedSession([], { sampler });
          const heard: Heard[] = [];
          const request = { messages: [user("go on")], ...(isOffered && { tools }) };
          const answer = await session.ask(request, undefined, (part) => heard.push(part));
          const joined = (name: "text" | "reasoning"): string =>
            heard
              .map((part) => (part as Partial<Record<typeof name, string>>)[name] ?? "")
              .join("");
          expect(heard[0]).toEqual({ prompt: answer.promptTokens });
          // A thought that was not opened, or ends twice, was heard as text before it was known as one.
          const thoughts = parts.filter((part) => part === "</think>").length;
          const isPlain = thoughts === 0 || (thoughts === 1 && /^\s*<think>/.test(parts.join("")));
          if (!isPlain) return;
          expect(joined("text").trim()).toBe(answer.text.trim());
          expect(joined("reasoning").trim()).toBe((answer.reasoning ?? "").trim());
        },
      ),
      { numRuns: 300 },
    );
  });
});
