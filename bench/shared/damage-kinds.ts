/** The runs that `damage` damages: tiny ones of every command that trains and resumes. */
import { join } from "node:path";
import { pawlHere, type TinyRun, tinyRuns } from "./tiny-runs.js";

/** A kind of run: how it is made, read and made longer. */
export interface RunToDamage {
  /** Makes the run in a folder of that name; another seed is another run with the same settings. */
  make(folder: string, name: string, seed: number): Promise<void>;
  resume(run: string): readonly string[];
  /** Episodes that an update records at once. */
  readonly appended: number;
  /** Whether `pawl replay` can recompute it. */
  readonly isReplayed: boolean;
}

const made = ({ command, prepare }: TinyRun, longer: readonly string[]) => ({
  async make(folder: string, name: string, seed: number) {
    const args = await prepare(folder, name, seed);
    await pawlHere([...command, ...args, "--out", join(folder, name)]);
  },
  resume: (run: string) => [...command, "--resume", run, ...longer],
});

/** By the name that `--kind` takes. */
export const runsToDamage: Readonly<Record<string, RunToDamage>> = {
  train: { ...made(tinyRuns.train, ["--updates", "4"]), appended: 6, isReplayed: true },
  overlap: { ...made(tinyRuns.overlap, ["--updates", "4"]), appended: 6, isReplayed: true },
  rwml: { ...made(tinyRuns.rwml, ["--updates", "4"]), appended: 16, isReplayed: false },
  wm: { ...made(tinyRuns.wm, ["--epochs", "3"]), appended: 0, isReplayed: false },
};
