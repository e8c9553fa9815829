/**
 * Reads the numbers and strings at the beginning of a GGUF file, in order.
 *
 * Nothing that a file announces is believed before its bytes are there: a length is compared with
 * the rest of the file and with a limit before anything is allocated for it.
 */
import { readSync } from "node:fs";
import { EngineError } from "@pawl/core/engine/engine.js";

/** Bytes read at once. */
const WINDOW = 1 << 20;
/** The longest string: chat templates have some 10,000 bytes. */
const MAX_STRING = 16 * 2 ** 20;
/** Metadata and tensor table together: the largest vocabularies need some 20 MB. */
const MAX_HEADER = 256 * 2 ** 20;

/** A position in an open file. */
export class GgufBytes {
  #window = Buffer.alloc(0);
  #start = 0;
  #at = 0;

  constructor(
    readonly file: string,
    private readonly descriptor: number,
    /** Bytes of the whole file. */
    readonly size: number,
  ) {}

  /** The position in the file. */
  get position(): number {
    return this.#start + this.#at;
  }

  /** An error about this file, with the position reached. */
  error(problem: string): EngineError {
    return new EngineError(`${this.file}: ${problem} (at byte ${this.position})`);
  }

  /** Rejects a count of items that cannot fit into the rest of the file, or of its header. */
  checkCount(count: number, itemBytes: number, what: string): void {
    const left = Math.min(this.size, MAX_HEADER) - this.position;
    if (count * itemBytes > left)
      throw this.error(
        `it announces ${count} ${what}, but only ${left} bytes can follow; the file is truncated or not a GGUF file`,
      );
  }

  u8(): number {
    return this.#take(1).readUInt8();
  }
  i8(): number {
    return this.#take(1).readInt8();
  }
  u16(): number {
    return this.#take(2).readUInt16LE();
  }
  i16(): number {
    return this.#take(2).readInt16LE();
  }
  u32(): number {
    return this.#take(4).readUInt32LE();
  }
  i32(): number {
    return this.#take(4).readInt32LE();
  }
  f32(): number {
    return this.#take(4).readFloatLE();
  }
  f64(): number {
    return this.#take(8).readDoubleLE();
  }
  u64(): number {
    return this.#safe(this.#take(8).readBigUInt64LE());
  }
  i64(): number {
    return this.#safe(this.#take(8).readBigInt64LE());
  }

  /** A string: its length, then its bytes. */
  string(what: string): string {
    const length = this.u64();
    if (length > MAX_STRING)
      throw this.error(`${what} has ${length} bytes; expected at most ${MAX_STRING}`);
    return this.#take(length).toString("utf8");
  }

  #safe(value: bigint): number {
    if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER)
      throw this.error(`the number ${value} is out of range; expected less than 2^53`);
    return Number(value);
  }

  /** The next bytes, valid until the next call. */
  #take(count: number): Buffer {
    if (this.#at + count > this.#window.length) this.#refill(count);
    const bytes = this.#window.subarray(this.#at, this.#at + count);
    this.#at += count;
    return bytes;
  }

  #refill(count: number): void {
    const { position } = this;
    if (position + count > this.size)
      throw this.error(`truncated: ${count} bytes are needed, ${this.size - position} are left`);
    if (position + count > MAX_HEADER)
      throw this.error(`the metadata is too long; expected at most ${MAX_HEADER} bytes`);
    const window = Buffer.alloc(Math.min(Math.max(count, WINDOW), this.size - position));
    let done = 0;
    while (done < window.length) {
      const read = readSync(this.descriptor, window, done, window.length - done, position + done);
      if (read === 0) throw this.error("the file became shorter while it was read");
      done += read;
    }
    this.#window = window;
    this.#start = position;
    this.#at = 0;
  }
}
