/**
 * Sessions of `pawl serve model --out`. Every call that none continues is a transcript; an answer
 * that several repeat is imitated once.
 */
import { z } from "zod";
import type { ChatMessage } from "../chat.js";
import { checkOrder, readTools } from "./chat-record.js";
import { argumentsOf, recordOf, type Transcript, Unreadable } from "./transcript.js";

const message = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.string(),
  reasoning: z.string().optional(),
  calls: z.array(z.object({ id: z.string(), tool: z.string(), arguments: z.string() })).optional(),
  answers: z.string().optional(),
});

const session = z.looseObject({
  id: z.string(),
  calls: z.array(
    z.looseObject({
      index: z.int(),
      parent: z.int().nullable(),
      messages: z.array(message),
      tools: z.unknown().optional(),
      answer: message,
      stop: z.string(),
    }),
  ),
});

/** Whether a record is a session. */
export function isSessionRecord(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && "object" in value && value.object === "session"
  );
}

/** Reads a session; nobody has said what it was worth. Answers that were cut off are not imitated. */
export function sessionTranscripts(value: unknown, where: string): readonly Transcript[] {
  const { id, calls } = recordOf(session, value);
  const at = new Map(calls.map((call) => [call.index, call]));
  const continued = new Set(calls.flatMap(({ parent }) => parent ?? []));
  const taken = new Set<number>();
  return calls.flatMap((leaf) => {
    if (continued.has(leaf.index)) return [];
    const messages = [...leaf.messages, leaf.answer] as readonly ChatMessage[];
    checkOrder(messages);
    for (const { arguments: values } of messages.flatMap(({ calls: made = [] }) => made))
      argumentsOf(values);
    const own = messages.map(() => false);
    let call: typeof leaf | undefined = leaf;
    for (let steps = 0; call !== undefined; steps++) {
      if (steps > calls.length) throw new Unreadable("calls whose parents are no tree");
      own[call.messages.length] = !taken.has(call.index) && call.stop !== "length";
      taken.add(call.index);
      call = call.parent === null ? undefined : at.get(call.parent);
    }
    return [
      {
        ...{ where, task: id, split: "train", type: "any", policy: "imported" },
        ...{ tools: readTools(leaf.tools), messages, own, return: 0, success: false },
      },
    ];
  });
}
