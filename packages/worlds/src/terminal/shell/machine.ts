/** The machine that a shell seems to run on: files, a clock, random numbers, and what is left to spend. */
import type { Random } from "@pawl/core/random.js";
import { cloneFileSystem, type FileSystem } from "./inodes.js";

export interface Machine {
  readonly fs: FileSystem;
  readonly random: Random;
  /** Milliseconds since 1970. */
  time: number;
  /** The number of the next process. */
  process: number;
  /** What the present command may still do. */
  work: number;
  /** When the present command is stopped, in milliseconds since 1970. */
  deadline: number;
}

/** Why a command was ended from outside. */
export class Stopped {
  constructor(readonly reason: string) {}
}

/** Counts what is done, about a microsecond each. */
export function spend(machine: Machine, work: number): void {
  machine.work -= work;
  if (machine.work < 0) throw new Stopped("it took too long");
}

/** Lets time pass. */
export function passTime(machine: Machine, milliseconds: number): void {
  machine.time += milliseconds;
  if (machine.time > machine.deadline) {
    machine.time = machine.deadline;
    throw new Stopped("it took too long");
  }
  machine.fs.time = Math.floor(machine.time / 1000);
}

/** An independent copy. */
export const cloneMachine = (machine: Machine): Machine => ({
  ...machine,
  fs: cloneFileSystem(machine.fs),
  random: machine.random.clone(),
});
