/** What answers are held to, as our own server takes it: automata over bytes, and the tokens' bytes. */
import { deflateSync } from "node:zlib";
import { constraintAutomaton, constraintKey } from "@pawl/core/constraint/constraint.js";
import type { Automaton } from "@pawl/core/constraint/expression.js";
import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import type { Constraint } from "@pawl/core/text/constraint.js";

/** The constraints of one request, each sent once. */
export interface SentConstraints {
  /** The number of a constraint in the list. */
  numberOf(constraint: Constraint): number;
  /** What the request's body has of them; nothing without constraints. */
  body(): { readonly constraints?: readonly object[] };
}

/** Collects the constraints of a request. */
export function sentConstraints(): SentConstraints {
  const numbers = new Map<string, number>();
  const sent: object[] = [];
  return {
    numberOf(constraint) {
      const key = constraintKey(constraint);
      const known =
        numbers.get(key) ?? sent.push(sentAutomaton(constraintAutomaton(constraint))) - 1;
      numbers.set(key, known);
      return known;
    },
    body: () => (sent.length === 0 ? {} : { constraints: sent }),
  };
}

const written = new WeakMap<Automaton, object>();

function sentAutomaton(automaton: Automaton): object {
  const { classes, next, accepting } = automaton;
  const sent = written.get(automaton) ?? {
    classes: packed(classes),
    next: packed(next),
    accepting: packed(accepting),
  };
  written.set(automaton, sent);
  return sent;
}

/** A vocabulary as our own server takes it. */
export function sentVocabulary({ ids, starts, bytes, endIds }: Vocabulary): object {
  return { ids: packed(ids), starts: packed(starts), bytes: packed(bytes), end_ids: endIds };
}

function packed({ buffer, byteOffset, byteLength }: Uint8Array | Int32Array): string {
  return deflateSync(Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)).toString("base64");
}
