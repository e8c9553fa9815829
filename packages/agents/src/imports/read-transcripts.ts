/**
 * Reads transcripts from files: verifiers' `traces.jsonl`, sessions, OpenTelemetry's spans, chat JSON
 * Lines, or a list in JSON.
 */
import { existsSync, statSync } from "node:fs";
import { UserError } from "@pawl/core/errors.js";
import { openLines } from "@pawl/worlds/retrieval/corpus.js";
import { z } from "zod";
import type { ChatMessage } from "../chat.js";
import { chatTranscript, checkOrder, readTools } from "./chat-record.js";
import {
  isTelemetryRecord,
  type TracedCall,
  tracedCalls,
  tracedTranscripts,
} from "./telemetry-record.js";
import { argumentsOf, recordOf, type Transcript, Unreadable } from "./transcript.js";
import { isVerifiersRecord, verifiersTranscripts } from "./verifiers-record.js";

/** Called with every record that cannot be read. */
export type OnUnreadable = (kind: string, where: string) => void;

/** The transcripts of a file, in order; what cannot be read is reported and left out. */
export function readTranscripts(path: string, onUnreadable: OnUnreadable): readonly Transcript[] {
  if (!existsSync(path))
    throw new UserError(
      `${path} does not exist: expected traces.jsonl of verifiers, sessions of pawl serve model, OpenTelemetry's spans, or chat messages as JSON Lines`,
    );
  const transcripts: Transcript[] = [];
  // Exporters write spans as they end, so that a trace's are in several records.
  const traced: TracedCall[] = [];
  eachRecord(path, onUnreadable, (value, where) => {
    try {
      if (isVerifiersRecord(value)) transcripts.push(...verifiersTranscripts(value, where));
      else if (isSessionRecord(value)) transcripts.push(...sessionTranscripts(value, where));
      else if (isTelemetryRecord(value)) traced.push(...tracedCalls(value, where, onUnreadable));
      else transcripts.push(chatTranscript(value, where));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      onUnreadable(error.message, where);
    }
  });
  transcripts.push(...tracedTranscripts(traced, onUnreadable));
  return transcripts;
}

/**
 * Whether a file holds what only this reader knows: traces of verifiers, or messages with tools. The
 * first record decides.
 */
export function isTranscriptFile(path: string): boolean {
  // Folders are data sets; what does not exist is named by whoever reads it.
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  let first: unknown;
  try {
    const take = (value: unknown): void => {
      first ??= value;
    };
    eachRecord(path, () => undefined, take, 1);
  } catch {
    return false;
  }
  if ([isVerifiersRecord, isSessionRecord, isTelemetryRecord].some((is) => is(first))) return true;
  const { messages } = (first ?? {}) as { readonly messages?: unknown };
  if (!Array.isArray(messages)) return false;
  return messages.some(
    (one: { readonly role?: unknown; readonly tool_calls?: unknown } | null) =>
      one?.role === "tool" || Array.isArray(one?.tool_calls),
  );
}

/** Records are judged as they are read: traces have tokens, and all of them may not fit in memory. */
function eachRecord(
  path: string,
  onUnreadable: OnUnreadable,
  onRecord: (value: unknown, where: string) => void,
  most = Number.POSITIVE_INFINITY,
): void {
  const file = openLines(path);
  const start = file.text(0, Math.min(file.size, 64)).trimStart();
  if (start.startsWith("[")) {
    let list: unknown[];
    try {
      list = JSON.parse(file.text(0, file.size)) as unknown[];
    } catch (error) {
      throw new UserError(`${path} is not JSON: ${(error as Error).message}`, { cause: error });
    }
    for (const [at, value] of list.entries()) onRecord(value, `${path}, record ${at + 1}`);
    return;
  }
  let count = 0;
  file.each(({ text, number }) => {
    if (count++ >= most) return;
    const where = `${path}:${number}`;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      onUnreadable("not JSON", where);
      return;
    }
    onRecord(value, where);
  });
}

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
