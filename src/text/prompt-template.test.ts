import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type PromptView, promptOptions, promptStyle, promptText } from "./prompt.js";
import { parseTemplate } from "./prompt-template.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-template-"));
afterAll(() => rmSync(folder, { recursive: true }));

const paper = `[system]
You are an agent. Write {{action}} or {"json": 1}.

[step]
Task: {task_description}. {step_count} taken, the last {history_length}: {action_history}
Step {current_step}: {current_observation}
Can: [{admissible_actions}]

[history]
[{number}: '{observation}' -> '{action}']

[first]
Task: {task_description}
See: {current_observation}
Go on.

[turn]
See: {current_observation} (end)
`;

const view: PromptView = {
  goal: "Find it",
  firstObservation: "dark",
  observation: "light",
  steps: [
    { action: "wait", observation: "dusk" },
    { action: "lamp on", observation: "light" },
  ],
  admissible: ["look", "go"],
  index: 2,
};

describe("a template", () => {
  it("fills its slots in the full style, each with its origin", () => {
    const pieces = promptStyle({}, { style: "full", template: paper }).render(view);
    expect(promptText(pieces)).toBe(
      `[system]\nYou are an agent. Write {action} or {"json": 1}.\n\n[user]\nTask: Find it. 2 taken, the last 2: [1: 'dark' -> 'wait'][2: 'dusk' -> 'lamp on']\nStep 3: light\nCan: [look\ngo]`,
    );
    const origins = (text: string) =>
      pieces.filter((piece) => piece.text === text).map((piece) => piece.origin);
    expect(origins("Find it")).toEqual(["task"]);
    expect(origins("light")).toEqual(["observation"]);
    expect(origins("lamp on")).toEqual(["history"]);
    expect(origins("look\ngo")).toEqual(["actions"]);
  });

  it("words the messages of a conversation, which it leaves continuing", () => {
    const style = promptStyle({}, { style: "chat", template: paper });
    expect(style.continuing).toBe(true);
    expect(promptText(style.render(view))).toBe(
      `[system]\nYou are an agent. Write {action} or {"json": 1}.\n\n[user]\nTask: Find it\nSee: dark\nGo on.\n\n[assistant]\nwait\n\n[user]\nSee: dusk (end)\n\n[assistant]\nlamp on\n\n[user]\nSee: light (end)`,
    );
    const listing = `${paper}Can: {available_actions}\n`;
    const listed = promptStyle({}, { style: "chat", template: listing });
    expect(listed.continuing).toBe(false);
    expect(promptText(listed.render(view))).toMatch(/See: light \(end\)\nCan: look\ngo$/);
  });

  it("of a search shows what was found between the paper's tags", () => {
    const style = promptStyle({}, { template: "History: {memory_context}\n", history: "all" });
    expect(promptText(style.render(view))).toBe(
      "History: \nwait\n<information>dusk</information>\nlamp on\n<information>light</information>",
    );
  });

  it("may be an environment's own", () => {
    const style = promptStyle({ template: "Do {task_description}!\n" });
    expect(promptText(style.render(view))).toBe("Do Find it!");
  });

  it("is read from a file, and recorded as its text", () => {
    const file = join(folder, "paper.txt");
    writeFileSync(file, "Do {task_description}");
    const { template } = promptOptions().parse({ template: file });
    expect(template).toBe("Do {task_description}\n");
    expect(promptOptions().parse({ template }).template).toBe(template);
    expect(() => promptOptions().parse({ template: join(folder, "none.txt") })).toThrow(
      /prompt\.template: cannot read .*none\.txt/,
    );
  });

  it.each([
    [
      "Do it\n{task_descripton}",
      /line 2: there is no slot \{task_descripton\} in \[step\]\. Did you mean "?task_description/,
    ],
    [
      "[system]\nFor {task_description}",
      /no slot \{task_description\} in \[system\].*It has no slots/,
    ],
    ["[sistem]\nx", /line 1: there is no section \[sistem\]\. Did you mean "?system/],
    ["[first]\nx\n[first]\ny", /line 3: the section \[first\] is there twice/],
    ["[turn]\nno slot", /\[turn\] should have \{current_observation\} once/],
    ["[turn]\n{admissible_actions} {current_observation}", /\[turn\] should have/],
  ])("like %j is refused by name", (text, message) => {
    expect(() => parseTemplate(`${text}\n`)).toThrow(message);
  });

  it.each([
    [{ style: "compact", template: "x\n" }, /prompt\.template has no meaning in the style compact/],
    [{ style: "compact", answer: "tags" }, /prompt\.answer has no meaning/],
    [{ style: "full", maxTokens: 100 }, /prompt\.maxTokens has no meaning in the style full/],
    [{ style: "full", toolCalls: "json" }, /prompt\.toolCalls has no meaning/],
    [{ style: "chat", maxTokens: 100, history: 2 }, /maxTokens contradicts prompt\.history/],
    [{ style: "full", template: "[first]\nx\n" }, /needs a section \[step\]/],
    [{ style: "chat", template: "[step]\nx\n" }, /needs a section \[first\]/],
  ] as const)("and settings like %j are refused", (options, message) => {
    expect(() => promptStyle({}, options)).toThrow(message);
  });
});

describe("an environment's own words", () => {
  it("are used in each style; without any they are neutral", () => {
    const own = { instructions: "You guess numbers.", advice: "Think of a number" };
    const text = (prompt: object, style: "full" | "chat") =>
      promptText(promptStyle(prompt, { style }).render(view));
    expect(text(own, "full")).toMatch(
      /^You guess numbers\.\n\nYour task:[\s\S]*Think of a number,/,
    );
    expect(text(own, "chat")).toMatch(/^\[system\]\nYou guess numbers\. Answer with one action/);
    for (const style of ["full", "chat"] as const) {
      expect(text({}, style)).toContain("You act in an environment");
      expect(text({}, style)).not.toContain("household");
    }
  });

  it("may include reading and writing answers", () => {
    const prompt = {
      answer: "Shout.",
      parse: (response: string) => ({ action: response.toLowerCase(), wellFormed: true }),
      format: (action: string) => action.toUpperCase(),
    };
    for (const style of ["full", "chat", "compact"] as const) {
      const own = promptStyle(prompt, { style });
      expect(own.parse(own.format("look"))).toEqual({ action: "look", wellFormed: true });
      expect(own.format("look")).toBe("LOOK");
    }
    expect(promptText(promptStyle(prompt).render(view))).toMatch(/\n\nShout\.$/);
  });

  it("a conversation reads an action alone, after a thought, or in tags if asked for", () => {
    const line = promptStyle({}, { style: "chat" });
    expect(line.parse("go north")).toEqual({ action: "go north", wellFormed: true });
    expect(line.parse("<think>why\nnot</think>\ngo north")).toEqual({
      action: "go north",
      wellFormed: true,
    });
    expect(line.parse("I go north.\nOr south.").wellFormed).toBe(false);
    expect(line.parse("<think>never closed\ngo").wellFormed).toBe(false);
    expect(line.parse("").wellFormed).toBe(false);
    const tags = promptStyle({}, { style: "chat", answer: "tags" });
    expect(tags.parse("go north").wellFormed).toBe(false);
    expect(tags.parse("<think>x</think><action>go</action>")).toEqual({
      action: "go",
      wellFormed: true,
    });
    expect(promptText(tags.render(view))).toContain("between <action> and </action>");
  });
});
