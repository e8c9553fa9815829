import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import { appendObservation, encodePrompt, encodeResponse } from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { createTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { beforeAll, describe, expect, it } from "vitest";
import { createDialogue, dialogueSequence } from "./dialogue.js";
import { wordF1 } from "./fidelity.js";
import { degenerationOf, repeats } from "./model.js";
import { protocolOptions } from "./protocol.js";
import { someTrajectories } from "./testing.js";
import { textsOf } from "./train.js";
import { succeeded, type Trajectory } from "./trajectory.js";

const protocol = protocolOptions.parse({});
let trajectories: readonly Trajectory[];
let tokenizer: Tokenizer;

beforeAll(async () => {
  trajectories = await someTrajectories();
  tokenizer = buildTokenizer(textsOf(trajectories, protocol));
});

/** A tokenizer without markers, with a chat template in ChatML. */
function chatting(): Tokenizer {
  const files = tokenizer.files;
  const json = files.tokenizer
    .replaceAll("<|see|>", "<|im_start|>")
    .replaceAll("<|do|>", "<|im_end|>");
  const chatTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  return createTokenizer({
    tokenizer: json,
    config: JSON.stringify({ eos_token: "<|im_end|>" }),
    chatTemplate,
  });
}

describe("a record's own system text", () => {
  const opening = { goal: "", context: " You are a house.\n\nmug 1 ", firstObservation: "" };
  const own = protocolOptions.parse({ system: "own" });

  it("is what a chat model reads, word for word; by default it is the initial state in ours", () => {
    const chat = chatting();
    const read = (given: typeof protocol) =>
      chat.decode(createDialogue(chat, given).opening(opening));
    const text = (content: string) => chat.decode(chat.encode(content, { plain: true }));
    expect(read(own)).toContain(text(opening.context));
    expect(read(own)).not.toContain(text("You are the environment"));
    expect(read(protocol)).toContain(text("You are the environment"));
    // A trajectory with a goal has no text of its own.
    const ours = { ...opening, goal: "find a mug" };
    expect(createDialogue(chat, own).opening(ours)).toEqual(
      createDialogue(chat, protocol).opening(ours),
    );
  });

  it("is refused where there is no system message, and without the initial state", () => {
    expect(() => createDialogue(tokenizer, own)).toThrow(/protocol.system: own needs a model with/);
    expect(() => protocolOptions.parse({ system: "own", context: false })).toThrow(
      /own contradicts context/,
    );
  });
});

describe("the compact dialogue", () => {
  it("is the stream that policies read, with the initial state as a note", () => {
    const style = promptStyle(housePrompt, { style: "compact", history: "all" });
    const bare = createDialogue(tokenizer, { ...protocol, context: false, marker: "" });
    const trajectory = trajectories.find(succeeded)!;
    const { goal, firstObservation, turns } = trajectory;
    const last = turns.length - 1;
    const prompt = encodePrompt(
      tokenizer,
      style,
      style.render({
        goal,
        firstObservation,
        observation: turns[last - 1]!.observation,
        steps: turns.slice(0, last),
        admissible: undefined,
        index: last,
      }),
    );
    const action = encodeResponse(tokenizer, style, turns[last]!.action);
    const whole = appendObservation(
      { ids: [...prompt.ids, ...action], spans: [] },
      tokenizer,
      style,
      turns[last]!.observation,
      true,
    );
    expect(dialogueSequence(bare, trajectory, 1000).ids).toEqual(whole.ids);
    const noted = createDialogue(tokenizer, protocol).opening(trajectory);
    expect(tokenizer.decode(noted)).toContain(`<|note|>${trajectory.context}<|see|>`);
  });

  it("cuts a trajectory before the first turn that does not fit", () => {
    const dialogue = createDialogue(tokenizer, protocol);
    const whole = dialogueSequence(dialogue, trajectories[0]!, 1000);
    const cut = dialogueSequence(dialogue, trajectories[0]!, whole.ids.length - 1);
    expect(cut.responses).toEqual(whole.responses.slice(0, -1));
    expect(whole.ids.slice(0, cut.ids.length)).toEqual(cut.ids);
    expect(dialogueSequence(dialogue, trajectories[0]!, 10).responses).toEqual([]);
  });
});

describe.each([
  ["compact", () => tokenizer],
  ["chat", chatting],
])("a response in the %s form", (name, make) => {
  it("is parsed as it was written", () => {
    const dialogue = createDialogue(make(), protocol);
    for (const turn of trajectories.flatMap(({ turns }) => turns)) {
      const ids = dialogue.response(turn);
      const { observation, done, success } = turn;
      expect(dialogue.read(ids)).toEqual({ observation, done, success, ended: true });
      expect(dialogue.stop.map(([id]) => id)).toContain(ids.at(-1));
      expect(dialogue.read(ids.slice(0, -1)).ended).toBe(false);
    }
  });

  it("follows prompts that continue one another", () => {
    const dialogue = createDialogue(make(), protocol);
    const { ids } = dialogueSequence(dialogue, trajectories[0]!, 2000);
    const text = make().decode(ids);
    expect(text).toContain(trajectories[0]!.goal);
    if (name === "chat") expect(text).toMatch(/<\|im_end\|>\n<\|im_start\|>user\n/);
  });
});

it("needs markers or a chat template", () => {
  const bare = createTokenizer({
    tokenizer: tokenizer.files.tokenizer.replaceAll("<|see|>", "<|other|>"),
  });
  expect(() => createDialogue(bare, protocol)).toThrow(/chat template/);
});

describe("degenerate output", () => {
  it("is classified by its kind", () => {
    const outcome = { observation: "a", done: false, success: false };
    expect(degenerationOf({ ...outcome, ended: true }, [1, 2])).toBeUndefined();
    expect(degenerationOf({ ...outcome, observation: "", ended: true }, [2])).toBe("empty");
    expect(degenerationOf({ ...outcome, ended: false }, [1, 5, 6, 5, 6, 5, 6])).toBe("loop");
    expect(degenerationOf({ ...outcome, ended: false }, [1, 2, 3, 4, 5])).toBe("endless");
    expect(repeats([7, 7])).toBe(false);
    expect(repeats([7, 7, 7])).toBe(true);
  });
});

it("counts common words", () => {
  expect(wordF1("a b c", "a b d")).toBeCloseTo(2 / 3);
  expect(wordF1("a a", "a")).toBeCloseTo(2 / 3);
  expect(wordF1("", "")).toBe(1);
  expect(wordF1("", "a")).toBe(0);
});
