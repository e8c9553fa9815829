/**
 * Programs that run side by side and ask one engine: their requests are sampled together, when all
 * of them wait for an answer. So the same programs make the same batches, and a run can be repeated
 * to the last bit. Who is still busy, with a slow tool say, is waited for as long as the last
 * answers took, and then left to the next batch.
 */
import type { Sample, SampleRequest } from "../engine/engine.js";
import type { Sampler } from "./chat.js";

/** The shortest wait for programs that are still busy. */
const PATIENCE_MS = 250;

/** One program's place. */
interface Seat extends Sampler {
  /** Nobody waits for this program any more. */
  leave(): void;
}

/** Where programs take their places. */
export interface Lockstep {
  /** Takes a place; those that run together take theirs before any of them asks. */
  join(): Seat;
}

interface Row {
  readonly request: SampleRequest;
  answer(sample: Sample): void;
  fail(error: unknown): void;
}

type SampleTogether = (
  requests: readonly SampleRequest[],
) => Promise<readonly (readonly Sample[])[]>;

/** Programs that wait for nobody: what puts their requests together is behind the function. */
export function createSeats(sample: SampleTogether): Lockstep {
  const seat: Seat = {
    sample: async (request, signal) => {
      signal?.throwIfAborted();
      const [samples] = await unlessAborted(sample([request]), signal);
      return samples![0]!;
    },
    leave: () => undefined,
  };
  return { join: () => seat };
}

function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Programs that ask this function together. */
export function createLockstep(sample: SampleTogether): Lockstep {
  // In the order in which places were taken.
  const seats = new Set<Set<Row>>();
  let patience = PATIENCE_MS;
  let sampling = false;
  let timer: NodeJS.Timeout | undefined;
  let next: NodeJS.Immediate | undefined;

  const rowsNow = (): readonly Row[] => [...seats].flatMap((rows) => [...rows]);

  const flush = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const rows = rowsNow();
    if (sampling || rows.length === 0) return;
    sampling = true;
    for (const seat of seats) seat.clear();
    const started = performance.now();
    try {
      const samples = await sample(rows.map(({ request }) => request));
      rows.forEach((row, at) => {
        row.answer(samples[at]![0]!);
      });
    } catch (error) {
      for (const row of rows) row.fail(error);
    }
    patience = Math.max(PATIENCE_MS, performance.now() - started);
    sampling = false;
    look();
  };

  /** Samples if everybody waits, and soon if somebody does. */
  const look = (): void => {
    if (sampling || next !== undefined) return;
    // Parallel calls of one program come one after another.
    next = setImmediate(() => {
      next = undefined;
      if ([...seats].every((rows) => rows.size > 0)) void flush();
      else if (rowsNow().length > 0) timer ??= setTimeout(() => void flush(), patience);
    });
  };

  return {
    join() {
      const rows = new Set<Row>();
      seats.add(rows);
      return {
        sample: (request, signal) =>
          new Promise((resolve, reject) => {
            signal?.throwIfAborted();
            const stop = (): void => row.fail(signal!.reason);
            const end = (): void => {
              rows.delete(row);
              signal?.removeEventListener("abort", stop);
              look();
            };
            const row: Row = {
              request,
              answer(sampled) {
                end();
                resolve(sampled);
              },
              fail(error) {
                end();
                reject(error);
              },
            };
            signal?.addEventListener("abort", stop, { once: true });
            rows.add(row);
            look();
          }),
        leave() {
          seats.delete(rows);
          look();
        },
      };
    },
  };
}
