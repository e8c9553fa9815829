/** Stating what an action is expected to bring before it is taken: the form, and who shows it. */
import { isRemote } from "@pawl/core/envs/env.js";
import type { Policy, Situation } from "@pawl/core/rollout/policy.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import { registerPromptStyle } from "@pawl/core/text/prompt.js";
import { compactStyle } from "@pawl/core/text/prompt-compact.js";

/** The compact style with a statement before the action: `The drawer 1 is open now. open drawer 1`. */
export const STATING = "stating";
const END = ". ";

/** Adds the style to those that `prompt.style` can name. */
export const registerStating = (): void =>
  registerPromptStyle({
    name: STATING,
    title: "a statement, then the action, for small models",
    create(slots) {
      const plain = compactStyle({}, slots);
      return {
        ...plain,
        name: STATING,
        // The history shows what was stated, too.
        render: (view) =>
          plain.render({
            ...view,
            steps: view.steps.map((step) => ({ ...step, action: step.response ?? step.action })),
          }),
        parse(response) {
          const { statement } = statedIn(response);
          return plain.parse(response.slice(statement === "" ? 0 : statement.length + END.length));
        },
        format: (action, thought = "") => (thought === "" ? action : `${thought}${END}${action}`),
      };
    },
  });

/** What a response states: what stands in `<think>`, or before the last full stop. */
export function statedIn(response: string): { readonly statement: string } {
  const thought = /^<think>(.*)<\/think>/s.exec(response)?.[1];
  const end = response.lastIndexOf(END);
  return { statement: thought ?? (end < 0 ? "" : response.slice(0, end)) };
}

/** How an observation begins: up to its first full stop, colon or comma. */
export const openingOf = (observation: string): string =>
  (/^[^.:,\n]*/.exec(observation.trim())?.[0] ?? "").trim();

/** What is stated before an action, in hindsight. */
export const STATEMENTS = {
  /** Nothing. */
  act: () => "",
  /** How the world really answers. */
  foretell({ env }: Situation, action: string): string {
    if (isRemote(env)) throw new Error("expected a world in this process, whose copy can be asked");
    return openingOf(env.clone().step(action).observation);
  },
  /** How the last answer began: as many words, and nothing of what follows. */
  recall: ({ observation }: Situation) => openingOf(observation),
} as const;
export type Statement = keyof typeof STATEMENTS;

/** A teacher who states something before each of its actions. */
export function statingTeacher(teacher: Policy, style: PromptStyle, statement: Statement): Policy {
  return {
    ...teacher,
    async act(situations, signal) {
      const replies = await teacher.act(situations, signal);
      return replies.map((reply, i) => {
        const { action } = style.parse(reply.response);
        const stated = STATEMENTS[statement](situations[i]!, action);
        return { ...reply, response: style.format(action, stated) };
      });
    },
  };
}
