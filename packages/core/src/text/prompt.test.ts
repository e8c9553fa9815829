import { searchPrompt } from "@pawl/worlds/search/search.js";
import { shopPrompt } from "@pawl/worlds/webshop/webshop.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { housePrompt } from "../envs/household/prompt.js";
import { type PromptView, promptOptions, promptStyle, promptText } from "./prompt.js";
import { markers } from "./prompt-compact.js";

const start: PromptView = {
  goal: "put a cool plum on the shelf",
  firstObservation: "A kitchen. You see fridge 1 and shelf 1.",
  observation: "A kitchen. You see fridge 1 and shelf 1.",
  steps: [],
  admissible: ["go to fridge 1", "go to shelf 1"],
  index: 0,
};

/** The view after some steps `do 1`, `do 2`, … answered by `saw 1`, `saw 2`, …. */
function later(count: number): PromptView {
  const steps = Array.from({ length: count }, (_, at) => ({
    action: `do ${at + 1}`,
    observation: `saw ${at + 1}`,
  }));
  return {
    ...start,
    steps,
    observation: steps.at(-1)?.observation ?? start.observation,
    index: count,
  };
}

describe("the full style", () => {
  it("reads well at the first step, which has no history", () => {
    expect(promptText(promptStyle(housePrompt).render(start))).toBe(
      [
        "You act in a simulated household. You move about, handle things and look around by short text commands, one at a time.",
        "",
        "Your task:",
        "put a cool plum on the shelf",
        "",
        "This is step 1. You now observe:",
        "A kitchen. You see fridge 1 and shelf 1.",
        "",
        "Actions you can take now:",
        "go to fridge 1",
        "go to shelf 1",
        "",
        "First reason step by step about the situation, between <think> and </think>. Then choose one of the actions listed above and write it, and nothing else, between <action> and </action>.",
      ].join("\n"),
    );
  });

  it("shows the last two pairs of observation and action, without reasoning", () => {
    const text = promptText(promptStyle(shopPrompt).render(later(4)));
    expect(text).toContain(
      [
        "You have taken 4 steps so far. The latest 2 observations and what you did then:",
        "",
        "Observation 3:",
        "saw 2",
        "Action 3:",
        "do 3",
        "Observation 4:",
        "saw 3",
        "Action 4:",
        "do 4",
        "",
        "This is step 5. You now observe:",
        "saw 4",
      ].join("\n"),
    );
    expect(text).not.toContain("do 2");
    expect(text).not.toContain("A kitchen");
  });

  it("begins the history with the first observation", () => {
    const text = promptText(promptStyle(housePrompt).render(later(1)));
    expect(text).toContain("taken 1 step so far. The latest observation and what you did then:");
    expect(text).toContain(
      "Observation 1:\nA kitchen. You see fridge 1 and shelf 1.\nAction 1:\ndo 1",
    );
  });

  it("leaves out the action list if the environment has none or the options say so", () => {
    const unlisted = promptText(
      promptStyle(housePrompt).render({ ...start, admissible: undefined }),
    );
    const unwanted = promptText(promptStyle(housePrompt, { admissible: false }).render(start));
    for (const text of [unlisted, unwanted]) {
      expect(text).not.toContain("go to shelf 1");
      expect(text).toContain("Then choose one action and write it");
    }
  });

  it("works without history", () => {
    const text = promptText(promptStyle(housePrompt, { history: 0 }).render(later(3)));
    expect(text).toContain("taken 3 steps so far.\n\nThis is step 4.");
    expect(text).not.toContain("do 3");
  });

  it("keeps the whole history of a search, in tags", () => {
    const view: PromptView = {
      goal: "Who wrote it?",
      firstObservation: "",
      observation: "Ann wrote it.",
      steps: [
        { action: "<search>it</search>", observation: "It is a book." },
        { action: "<search>it author</search>", observation: "Ann wrote it." },
      ],
      admissible: undefined,
      index: 2,
    };
    const pieces = promptStyle(searchPrompt).render(view);
    expect(promptText(pieces)).toContain(
      "\n<search>it</search>\n<information>It is a book.</information>\n<search>it author</search>\n<information>Ann wrote it.</information>\n",
    );
    expect(pieces.filter((piece) => piece.origin === "observation")).toEqual([
      { origin: "observation", text: "Ann wrote it." },
    ]);
    const short = promptText(promptStyle(searchPrompt, { history: 0 }).render(view));
    expect(short).not.toContain("It is a book.");
    expect(short).toContain("Ann wrote it.");
  });

  it("mentions earlier attempts if there is a memory", () => {
    const pieces = promptStyle(housePrompt).render({ ...start, memory: ["look in the fridge"] });
    expect(pieces.find((piece) => piece.origin === "memory")?.text).toBe("- look in the fridge");
  });
});

describe("the compact style", () => {
  const style = promptStyle(housePrompt, { style: "compact", history: "all" });

  it("is the contents after their markers", () => {
    expect(promptText(promptStyle(housePrompt, { style: "compact" }).render(later(3)))).toBe(
      "<|goal|>put a cool plum on the shelf<|see|>saw 1<|do|>do 2<|see|>saw 2<|do|>do 3<|see|>saw 3<|do|>",
    );
    expect(
      promptText(promptStyle(housePrompt, { style: "compact", admissible: true }).render(start)),
    ).toContain("<|can|>go to fridge 1\ngo to shelf 1<|see|>A kitchen.");
  });

  it("with the whole history makes an episode one stream", () => {
    for (let count = 0; count < 5; count++) {
      const next = later(count + 1);
      const step = next.steps[count];
      const continued = [
        promptText(style.render(later(count))),
        style.format(step?.action ?? ""),
        style.responseEnd,
        promptText(style.continuation(step?.observation ?? "", false)),
      ];
      expect(continued.join("")).toBe(promptText(style.render(next)));
    }
    expect(promptText(style.continuation("Done.", true))).toBe(`Done.${markers.end}`);
  });
});

describe("every style", () => {
  const prompts = { house: housePrompt, shop: shopPrompt, search: searchPrompt, neutral: {} };
  const styles = Object.entries(prompts).flatMap(([name, prompt]) =>
    (["full", "compact", "chat"] as const).map(
      (style) => [`${name}/${style}`, promptStyle(prompt, { style })] as const,
    ),
  );

  it.each(styles)("%s understands what it formats", (name, style) => {
    const words = fc
      .array(fc.stringMatching(/^[^\s<>|]{1,8}$/), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join(" "));
    fc.assert(
      fc.property(words, fc.option(words), (text, thought) => {
        const action = name.startsWith("search") ? `<search>${text}</search>` : text;
        const response = style.format(action, thought ?? undefined) + style.responseEnd;
        expect(style.parse(response)).toEqual({ action, wellFormed: true });
      }),
    );
  });

  it.each(styles)("%s puts every slot into a piece of its own origin", (_, style) => {
    const pieces = style.render({ ...later(3), memory: ["note"] });
    const text = (origin: string) =>
      pieces.filter((piece) => piece.origin === origin).map((piece) => piece.text);
    expect(text("task")).toEqual([start.goal]);
    expect(text("observation")).toEqual(["saw 3"]);
    expect(text("history")).toContain("do 3");
    expect(text("memory").join()).toContain("note");
    expect(pieces.every((piece) => piece.text !== "")).toBe(true);
    expect(text("template").join("")).not.toMatch(/saw|do \d|plum|note$/);
  });
});

describe("the options", () => {
  it.each([
    [{ style: "long" }, "style"],
    [{ history: -1 }, "history"],
    [{ history: "some" }, "history"],
    [{ histroy: 2 }, "histroy"],
  ])("refuse %j", (options, name) => {
    const result = promptOptions().safeParse(options);
    expect(result.error?.message).toContain(name);
  });
});

it("the limit of a prompt in tokens is 1 or more", () => {
  const fits = (maxTokens: number) =>
    promptOptions().safeParse({ style: "chat", maxTokens }).success;
  expect([0, 1, 2].map(fits)).toEqual([false, true, true]);
});
