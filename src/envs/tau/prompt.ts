/** What the agent is told: who it is, how to act, and the domain's policy from the data folder. */
import type { EnvPrompt } from "../../text/env-prompt.js";
import type { DomainFiles } from "./files.js";

const INSTRUCTIONS =
  "You are a customer service agent. You help the user as the policy below says, and never against it. At each turn you call one tool: `respond` says something to the user, the others look things up or change them. Before a change, tell the user what will happen and wait for a yes.";
const SOLO_INSTRUCTIONS =
  "You are a customer service agent. You work on the ticket below alone, as the policy says, and never against it. At each turn you call one tool, those of the user's device included. Call `done` when the case is solved or cannot be.";

/** The words of a domain. */
export function tauPrompt(files: DomainFiles, edition: 1 | 2, solo: boolean): EnvPrompt {
  const policy = edition === 1 ? files.text("wiki.md") : tau2Policy(files, solo);
  const instructions = solo ? SOLO_INSTRUCTIONS : INSTRUCTIONS;
  return {
    instructions: `<instructions>\n${instructions}\n</instructions>\n<policy>\n${policy}\n</policy>`,
    advice: "First reason step by step about what the user needs and what the policy allows",
    history: "all",
  };
}

function tau2Policy(files: DomainFiles, solo: boolean): string {
  if (!files.has("main_policy.md"))
    return solo ? files.text("policy_solo.md") : files.text("policy.md");
  const main = files.text(solo ? "main_policy_solo.md" : "main_policy.md");
  const support = solo
    ? files.text("tech_support_manual_solo.md", "tech_support_workflow_solo.md")
    : files.text("tech_support_manual.md");
  return `<main_policy>\n${main}\n</main_policy>\n<tech_support_policy>\n${support}\n</tech_support_policy>`;
}
