import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { recordEpisodes, recordExpert, spokenEpisode } from "@pawl/pawl/exports/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sessionRecord } from "../endpoint/session-record.js";
import { repeated, results, scriptedSession, tools, user } from "../testing.js";
import { isTranscriptFile, readTranscripts } from "./read-transcripts.js";
import { transcriptEpisode } from "./transcript.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-imports-"));
const at = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function read(records: readonly unknown[], name = "chat.jsonl") {
  const path = at(name);
  writeFileSync(path, records.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const problems: [string, string][] = [];
  const transcripts = readTranscripts(path, (kind, where) => problems.push([kind, where]));
  return { transcripts, problems, path };
}

const call = (id: string, name: string, args: string) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

describe("chat JSON", () => {
  it("has messages with calls, in OpenAI's form", () => {
    const { transcripts, problems, path } = read([
      {
        id: "t1",
        tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } } }],
        messages: [
          { role: "system", content: "Rules." },
          { role: "user", content: [{ type: "text", text: "Find it." }] },
          { role: "assistant", content: null, tool_calls: [call("c1", "look", '{"at":"box"}')] },
          { role: "tool", tool_call_id: "c1", content: "A key." },
          { role: "assistant", content: "It is a key.", reasoning_content: "Easy." },
        ],
        return: 1,
      },
    ]);
    expect(problems).toEqual([]);
    expect(isTranscriptFile(path)).toBe(true);
    expect(transcripts).toMatchObject([
      { task: "t1", return: 1, success: true, own: [false, false, true, false, true] },
    ]);
    expect(transcripts[0]!.messages[2]!.calls).toEqual([
      { id: "c1", tool: "look", arguments: '{"at":"box"}' },
    ]);
    expect(transcripts[0]!.messages[4]).toMatchObject({
      content: "It is a key.",
      reasoning: "Easy.",
    });
    const episode = transcriptEpisode(transcripts[0]!, 0);
    expect(episode).toMatchObject({ goal: "Find it.", initialContext: "Rules.", success: true });
    // The last answer was answered by nothing.
    expect(episode.steps).toMatchObject([
      { action: '{"tool":"look","arguments":{"at":"box"}}', observation: "A key." },
    ]);
  });

  it("has ShareGPT's turns, with the system's text beside them", () => {
    const { transcripts } = read([
      {
        system: "Rules.",
        conversations: [
          { from: "human", value: "Go." },
          { from: "gpt", value: "<think>\nHm.\n</think>\n\ngo" },
          { from: "observation", value: "Done." },
        ],
        success: true,
      },
    ]);
    expect(transcripts[0]!.messages).toEqual([
      { role: "system", content: "Rules." },
      { role: "user", content: "Go." },
      { role: "assistant", content: "go", reasoning: "Hm." },
      { role: "user", content: "Done." },
    ]);
  });

  it.each<[unknown, string]>([
    [{ messages: [{ role: "user", content: "Hi" }] }, "no message of the assistant"],
    [{ messages: [{ role: "assistant", content: "Hi" }] }, "the assistant speaks first"],
    [{ messages: [{ role: "oracle", content: "Hi" }] }, 'unknown role "oracle"'],
    [{ text: "Hi" }, "neither messages nor conversations"],
    [
      {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", tool_calls: [call("c", "look", "{not")] },
        ],
      },
      "a tool call whose arguments are not JSON",
    ],
    [
      {
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: {} }] },
          { role: "assistant", content: "Hi" },
        ],
      },
      'a message with a part of type "image_url"',
    ],
  ])("names what cannot be read: %#", (record, problem) => {
    const { transcripts, problems, path } = read([record]);
    expect(transcripts).toEqual([]);
    expect(problems).toEqual([[problem, `${path}:1`]]);
  });
});

describe("verifiers' traces", () => {
  const node = (parent: number | null, role: string, content: string, sampled = false) => ({
    parent,
    message: { role, content },
    sampled,
  });
  const line = (nodes: readonly unknown[], more: object = {}) => ({
    env: { id: "gsm8k" },
    task: { type: "T", data: { id: "q7", name: "math" }, key: "k" },
    ok: true,
    traces: [{ nodes, rewards: { a: { score: 0.5, weight: 2 }, b: null }, ...more }],
  });

  it("are paths of a graph, whose shared beginning is imitated once", () => {
    const { transcripts, problems } = read(
      [
        line([
          node(null, "user", "2 + 2?"),
          node(0, "assistant", "Think.", true),
          node(1, "user", "Go on."),
          node(2, "assistant", "4", true),
          node(1, "user", "Sum up."),
          node(4, "assistant", "Four.", true),
        ]),
      ],
      "traces.jsonl",
    );
    expect(problems).toEqual([]);
    expect(transcripts.map(({ messages }) => messages.map(({ content }) => content))).toEqual([
      ["2 + 2?", "Think.", "Go on.", "4"],
      ["2 + 2?", "Think.", "Sum up.", "Four."],
    ]);
    expect(transcripts.map(({ own }) => own)).toEqual([
      [false, true, false, true],
      [false, false, false, true],
    ]);
    expect(transcripts[0]).toMatchObject({ env: "gsm8k", task: "q7", type: "math", return: 1 });
  });

  it.each<[unknown, string]>([
    [{ ...line([]), ok: false }, "the episode failed"],
    [
      line([node(null, "user", "a"), node(0, "assistant", "b")], { rewards: { a: null } }),
      "the trace was not scored",
    ],
    [line([node(3, "user", "a"), node(0, "assistant", "b")]), "nodes whose parents are no graph"],
  ])("are refused if they failed or are no graph: %#", (record, problem) => {
    const { transcripts, problems } = read([record], "traces.jsonl");
    expect(transcripts).toEqual([]);
    expect(problems.map(([kind]) => kind)).toEqual([problem]);
  });
});

describe("our own exports come back", () => {
  beforeAll(async () => {
    recordEpisodes(at("spoken"), [spokenEpisode]);
    await recordExpert(at("desk"), "desk", 4);
  });

  it.each(["jsonl", "verifiers", "sharegpt"])("as %s", async (format) => {
    const out = at(`${format}.jsonl`);
    await runCli(["export", at("spoken"), "--to", format, "--out", out]);
    const transcripts = readTranscripts(out, (kind) => expect(kind).toBe(""));
    const imitated = transcripts.flatMap(({ messages, own }) => messages.filter((_, i) => own[i]));
    expect(imitated.map(({ content, reasoning }) => [content, reasoning])).toEqual([
      ["open door", "Hm."],
      ["go in", undefined],
      ["take key", undefined],
    ]);
    expect(transcripts[0]).toMatchObject({ task: "train/3", return: 1, success: true });
  });

  it("as a data set for world models", async () => {
    const out = at("desk.jsonl");
    await runCli(["export", at("desk"), "--to", "verifiers", "--out", out]);
    const { code, stderr } = await runCli(["wm", "data", "--from", out, "--out", at("data")]);
    expect([code, stderr]).toEqual([0, ""]);
    const direct = await runCli(["wm", "data", "--from", at("desk"), "--out", at("direct")]);
    expect(direct.code).toBe(0);
    const turns = async (path: string) => {
      const { stdout } = await runCli([
        ...["wm", "data", "--from", path, "--out", at(`again-${Math.random()}`), "--json"],
      ]);
      const { train, test } = JSON.parse(stdout);
      return [train.desk?.turns ?? 0, test.desk?.turns ?? 0];
    };
    expect(await turns(at("data"))).toEqual(await turns(at("direct")));
  });
});

it("a session of serve model has a transcript for each of its ends", async () => {
  const called = '<tool_call>{"name": "look", "arguments": {"place": "shelf"}}</tool_call>';
  const { session } = scriptedSession([called, "enough", "go on", "all…"]);
  const asked = [user("go")];
  const look = await session.ask({ messages: asked, tools });
  const seen = [...asked, repeated(look), ...results(look, "seen")];
  await session.ask({ messages: seen, tools });
  await session.ask({ messages: seen, tools });
  await session.ask({ messages: [user("on")] });
  const record = sessionRecord({ id: "s", created: 0, session });
  const { transcripts, problems, path } = read([record], "sessions.jsonl");
  expect(problems).toEqual([]);
  expect(isTranscriptFile(path)).toBe(true);
  expect(transcripts.map(({ messages }) => messages.at(-1)!.content)).toEqual([
    "enough",
    "go on",
    "all",
  ]);
  // What both continue is imitated once; what was cut off is not.
  expect(transcripts.map(({ own }) => own)).toEqual([
    [false, true, false, true],
    [false, false, false, true],
    [false, false],
  ]);
  expect(transcripts[0]!.tools).toEqual(tools);
});
