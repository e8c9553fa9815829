import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTranscripts } from "@pawl/agents/imports/read-transcripts.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createRun, openRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { afterAll, describe, expect, it } from "vitest";
import { worldTexts } from "../../../tests/helpers/small-world.js";
import { trainRun } from "./run.js";
import { teacherEpisodes, transcriptSamples, transcriptSequences } from "./teacher-episodes.js";
import { tinyConfig } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-teacher-"));
afterAll(() => rmSync(folder, { recursive: true }));

const TASKS = 2;

function play(warmStart: object) {
  const config = tinyConfig({ warmStart });
  const opened = openEnvironment({
    ...config.env,
    families: ["pick"],
    name: String(config.env.name),
  });
  const environment = { ...opened, tasks: () => opened.tasks(config.split).slice(0, TASKS) };
  const style = promptStyle(environment.prompt, config.prompt);
  return teacherEpisodes({ environment, style }, config);
}

describe("the teacher's episodes", () => {
  it("are as many as asked for, with other random actions if a task is repeated", async () => {
    const episodes = await play({ episodes: TASKS + 1, epsilon: 0.5 });
    expect(episodes).toHaveLength(TASKS + 1);
    const [first, again] = [episodes[0]!, episodes[TASKS]!];
    expect(again.task).toEqual(first.task);
    expect(again.steps.map(({ action }) => action)).not.toEqual(first.steps.map((s) => s.action));
  });

  it("may be recorded ones, of the same world and the same prompts", async () => {
    const { env, prompt } = tinyConfig({});
    const played = await play({ episodes: 5, epsilon: 0.5 });
    const broken = { ...played[0]!, stop: "broken" as const, error: "gone" };
    const record = (name: string, config: Readonly<Record<string, unknown>>): string => {
      const path = join(folder, name);
      const run = createRun({ folder: path, kind: "rollout", seed: 0, config }, () => undefined);
      run.recordEpisodes([broken, ...played]);
      run.finish("done");
      return path;
    };
    const run = record("same", { env, prompt });
    expect(await play({ episodes: 4, runs: [run] })).toEqual(played.slice(0, 4));
    await expect(play({ episodes: 6, runs: [run] })).rejects.toThrow(/is 6, but .* hold 5/);
    const runs = [record("elsewhere", { env: { name: "webshop" }, prompt })];
    await expect(play({ episodes: 1, runs })).rejects.toThrow(/played in webshop; expected/);
    const others = [record("otherwise", { env, prompt: { ...prompt, history: 7 } })];
    await expect(play({ episodes: 1, runs: others })).rejects.toThrow(/"history":7.*; expected/);
  });
});

const place = mkdtempSync(join(tmpdir(), "pawl-transcripts-"));
const at = (name: string): string => join(place, name);
afterAll(() => rmSync(place, { recursive: true, force: true }));

const conversation = {
  messages: [
    { role: "system", content: "look" },
    { role: "user", content: "put two mugs in the drawer" },
    { role: "assistant", content: "go to fridge 1" },
    { role: "user", content: "The drawer 3 is closed." },
    { role: "assistant", content: "open fridge 1" },
    { role: "user", content: "You open the fridge 1. It is empty." },
  ],
};
const data = at("chat.jsonl");
writeFileSync(data, `${JSON.stringify(conversation)}\n`.repeat(6));

const tokenizer = buildTokenizer(worldTexts, { chat: true });
const style = promptStyle(undefined, { style: "chat" }, tokenizer);
const [transcript] = readTranscripts(data, () => undefined);

/** The text of the tokens of a kind that is learned. */
const learned = (
  observationWeight: number,
  kind: "weight" | "observationWeight",
  form = style,
): readonly string[] =>
  transcriptSequences(transcript!, { tokenizer, style: form }, { observationWeight }).flatMap(
    ({ ids, inputs }) => {
      const texts: string[] = [];
      let run: number[] = [];
      for (const [i, weight] of [...Array.from(inputs[kind]!), 0].entries()) {
        if (weight > 0 && i < ids.length) run.push(ids[i]!);
        else if (run.length > 0) {
          texts.push(tokenizer.decode(run));
          run = [];
        }
      }
      return texts;
    },
  );

describe("an imported conversation", () => {
  it("is one sequence, in which the assistant's messages are learned", () => {
    const sequences = transcriptSequences(
      transcript!,
      { tokenizer, style },
      {
        observationWeight: 0,
      },
    );
    expect(sequences).toHaveLength(1);
    expect(sequences[0]!.steps).toBe(2);
    const said = learned(0, "weight");
    expect(said).toHaveLength(2);
    expect(said[0]).toContain("go to fridge 1");
    expect(said[1]).toContain("open fridge 1");
    expect(Array.from(sequences[0]!.ids).at(-1)).toBe(tokenizer.endId);
  });

  it("has observations to learn too, where something is said after them", () => {
    expect(learned(0.5, "observationWeight")).toEqual(["The drawer 3 is closed.<|end|>"]);
    const literal = promptStyle(undefined, { style: "chat", observationEnd: false }, tokenizer);
    expect(learned(0.5, "observationWeight", literal)).toEqual(["The drawer 3 is closed."]);
  });

  it("is imitated only where it is the model's own", () => {
    const own = transcript!.own.map((is, i) => is && i > 3);
    const shared = { ...transcript!, own };
    const [only] = transcriptSequences(shared, { tokenizer, style }, { observationWeight: 0.5 });
    expect(only!.steps).toBe(1);
    expect([...new Set(Array.from(only!.inputs.weight!))].sort()).toEqual([0, 1]);
  });
});

describe("warmStart.data", () => {
  const config = (warmStart: object, changes: object = {}) =>
    tinyConfig({
      prompt: { style: "chat" },
      model: { start: "tiny", maxContext: 320 },
      warmStart: { episodes: 6, sft: { epochs: 4, batch: 2 }, data: [data], ...warmStart },
      updates: 0,
      evaluation: { every: 0 },
      ...changes,
    });

  it("is what a model learns from before RL", async () => {
    const losses: number[] = [];
    await trainRun(config({}), {
      folder: at("run"),
      onWarmStart: ({ loss }) => losses.push(loss),
      onProblem: (message) => expect(message).toBe(""),
    });
    expect(losses).toHaveLength(12);
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    expect(openRun(at("run"), () => undefined).manifest.status).toBe("done");
  });

  it.each<[object, object, RegExp]>([
    [{ episodes: 0 }, {}, /warmStart.data is given, but warmStart.episodes is 0/],
    [{ runs: ["x"] }, {}, /warmStart.data: contradicts warmStart.runs/],
    [{}, { prompt: { style: "full" } }, /prompt.style is full: set it to chat/],
    [{ episodes: 7 }, {}, /warmStart.episodes is 7, but the files .* hold 6 that can be used/],
    [{ data: [at("none.jsonl")] }, {}, /none.jsonl does not exist/],
  ])("refuses %j %j", async (warmStart, changes, message) => {
    const options = { folder: at(`refused-${Math.random()}`) };
    await expect(trainRun(config(warmStart, changes), options)).rejects.toThrow(message);
  });

  it("leaves out what is too long or unreadable, and says so", () => {
    const long = at("long.jsonl");
    const content = "go to fridge 1 ".repeat(300);
    const lines = [
      {
        messages: [
          { role: "user", content },
          { role: "assistant", content: "look" },
        ],
      },
      { messages: [{ role: "user", content }] },
      conversation,
    ];
    writeFileSync(long, lines.map((line) => JSON.stringify(line)).join("\n"));
    const problems: string[] = [];
    const engine = { capabilities: { maxContext: 320 } } as Pick<Engine, "capabilities">;
    const { warmStart } = config({ data: [long], episodes: 1 });
    const onProblem = (message: string) => void problems.push(message);
    expect(transcriptSamples({ tokenizer, style, engine }, warmStart, { onProblem })).toHaveLength(
      1,
    );
    const more = { ...warmStart, episodes: 2 };
    expect(() => transcriptSamples({ tokenizer, style, engine }, more, {})).toThrow(
      /hold 1 that can/,
    );
    expect(problems).toEqual([
      expect.stringMatching(/1 left out: no message of the assistant \(first: .*long.jsonl:2\)/),
      expect.stringMatching(/1 left out: longer than the model's context of 320 tokens/),
    ]);
  });
});
