/** The wire format of sequences and numbers, described in docs/engine-protocol.md. */

import { deflateSync } from "node:zlib";
import { constraintAutomaton, constraintKey } from "@pawl/core/constraint/constraint.js";
import type { Automaton } from "@pawl/core/constraint/expression.js";
import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import { EngineError, type TargetSequence } from "@pawl/core/engine/engine.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { z } from "zod";

/** The constraints of one request, each sent once. */
interface SentConstraints {
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

const tensor = z.union([
  z.object({ data: z.array(z.number().nullable()) }),
  z.object({ base64: z.string() }),
  z.array(z.number().nullable()),
]);

/** Numbers as a server sends them: a tensor, or a plain list. */
export const tensorSchema = tensor;

/** A tensor in either form. */
export type WireTensor =
  | { readonly data: readonly number[]; readonly dtype: string; readonly shape: readonly [number] }
  | { readonly base64: string; readonly dtype: string; readonly shape: readonly [number] };

/** Turns numbers into tensors: base64 if the server supports it, with integers in 32 bits. */
export function tensorOf(
  values: ArrayLike<number>,
  dtype: "float32" | "int64",
  binary: boolean,
): WireTensor {
  const shape = [values.length] as const;
  if (!binary) {
    const numbers = dtype === "float32" ? Float32Array.from(values) : values;
    return { data: Array.from(numbers), dtype, shape };
  }
  const whole = dtype === "int64";
  const { buffer } = whole ? Int32Array.from(values) : Float32Array.from(values);
  return {
    base64: Buffer.from(buffer).toString("base64"),
    dtype: whole ? "int32" : dtype,
    shape,
  };
}

/** The numbers of a tensor from a server; null, JSON's stand-in for NaN, becomes NaN. */
export function numbersOf(sent: z.output<typeof tensor>): Float32Array {
  if ("base64" in sent) {
    const bytes = Buffer.from(sent.base64, "base64");
    if (bytes.length % 4 !== 0)
      throw new EngineError(
        `the engine server sent ${bytes.length} bytes as numbers of 4 bytes each; its answer is damaged`,
      );
    // Copied, because floats must start at a multiple of four bytes.
    return new Float32Array(Uint8Array.from(bytes).buffer);
  }
  const values = "data" in sent ? sent.data : sent;
  return Float32Array.from(values, (value) => value ?? Number.NaN);
}

/** A sequence in the protocol's form. */
export interface Datum {
  readonly model_input: {
    readonly chunks: readonly [
      { readonly type: "encoded_text"; readonly tokens: readonly number[] },
    ];
  };
  readonly loss_fn_inputs: Readonly<Record<string, WireTensor>>;
}

/** A datum with the given arrays, each with one entry per token, of which the first is dropped. */
export function datumOf(
  { ids }: TargetSequence,
  inputs: Readonly<Record<string, ArrayLike<number>>>,
  binary: boolean,
): Datum {
  const all = Array.from(ids);
  const shifted = (values: ArrayLike<number>) => Array.from(values).slice(1);
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: all.slice(0, -1) }] },
    loss_fn_inputs: {
      target_tokens: tensorOf(shifted(all), "int64", binary),
      ...Object.fromEntries(
        Object.entries(inputs).map(([name, values]) => [
          name,
          tensorOf(shifted(values), "float32", binary),
        ]),
      ),
    },
  };
}

/** 1 for targets; the first token is never one. */
export function maskOf({ ids, targets }: TargetSequence): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (let i = 1; i < ids.length; i++) mask[i] = targets === undefined || targets[i] ? 1 : 0;
  return mask;
}

/** A server's array in the engine's form: one entry per token, 0 if it is not a target. */
export function perToken(
  sent: z.output<typeof tensor> | undefined,
  mask: Uint8Array,
  what: string,
): Float32Array {
  if (sent === undefined)
    throw new EngineError(`the engine server did not send the requested ${what}`);
  const values = numbersOf(sent);
  if (values.length !== mask.length - 1)
    throw new EngineError(
      `the engine server sent ${values.length} ${what} for a sequence of ${mask.length} tokens; expected ${mask.length - 1}`,
    );
  return Float32Array.from(mask, (isTarget, i) => (isTarget ? values[i - 1]! : 0));
}
