/** Reads transcripts from files: verifiers' `traces.jsonl`, sessions, chat JSON Lines, or a list in JSON. */
import { existsSync, statSync } from "node:fs";
import { UserError } from "@pawl/core/errors.js";
import { openLines } from "@pawl/worlds/retrieval/corpus.js";
import { chatTranscript } from "./chat-record.js";
import { isSessionRecord, sessionTranscripts } from "./session-transcripts.js";
import { type Transcript, Unreadable } from "./transcript.js";
import { isVerifiersRecord, verifiersTranscripts } from "./verifiers-record.js";

/** Called with every record that cannot be read. */
export type OnUnreadable = (kind: string, where: string) => void;

/** The transcripts of a file, in order; what cannot be read is reported and left out. */
export function readTranscripts(path: string, onUnreadable: OnUnreadable): readonly Transcript[] {
  if (!existsSync(path))
    throw new UserError(
      `${path} does not exist: expected traces.jsonl of verifiers, sessions of pawl serve model, or chat messages as JSON Lines`,
    );
  const transcripts: Transcript[] = [];
  eachRecord(path, onUnreadable, (value, where) => {
    try {
      if (isVerifiersRecord(value)) transcripts.push(...verifiersTranscripts(value, where));
      else if (isSessionRecord(value)) transcripts.push(...sessionTranscripts(value, where));
      else transcripts.push(chatTranscript(value, where));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      onUnreadable(error.message, where);
    }
  });
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
  if (isVerifiersRecord(first) || isSessionRecord(first)) return true;
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
