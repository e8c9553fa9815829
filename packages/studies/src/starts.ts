/** The starts that are found in the folders of a comparison: which are the same, and whose are they. */
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import type { FinishedJob } from "./finished-job.js";
import { referenceOf } from "./matrix.js";
import { type JobResult, readResult, startFolders } from "./result-file.js";
import { startNameOf } from "./start-parts.js";
import { startWeights } from "./start-weights.js";

/** A start, and the comparison's folder that it is in. */
export interface RecordedStart extends JobResult {
  readonly out: string;
}

/** The starts that have been made in a comparison's folder. */
export function startsIn(out: string): readonly RecordedStart[] {
  return startFolders(out).flatMap((folder) => {
    const result = readResult(folder);
    if (result === undefined) return [];
    const weights = startWeights(folder);
    return [{ ...result, ...(weights !== undefined && { weights }), out }];
  });
}

/** Each start once. Two whose weights were not recorded count as different, unless one is a copy. */
export function differentStarts(starts: readonly RecordedStart[]): readonly RecordedStart[] {
  return starts.filter((start, i) => !starts.slice(0, i).some((before) => isSame(before, start)));
}

/** What the starts of a comparison mean for its intervals. */
export function aboutStarts(starts: readonly RecordedStart[]): string {
  const several = starts.filter((a) => starts.some((b) => a !== b && nameOf(a) === nameOf(b)));
  if (several.length === 0)
    return "A start is trained once for all seeds, so intervals do not contain its chance.";
  if (several.some(({ weights }) => weights === undefined))
    return "The folders have starts of their own, and it was not recorded whether they are the same.";
  return "Seeds began with different starts, so intervals contain some of their chance.";
}

/** Whose start it is, where there are several of its name. */
export const ownerOf = (start: RecordedStart, starts: readonly RecordedStart[]): string =>
  starts.some((other) => other !== start && nameOf(other) === nameOf(start))
    ? ` in ${start.out}`
    : "";

/** Refuses to pair runs by seed that are known to have begun with different weights. */
export function checkStarts(jobs: readonly FinishedJob[], starts: readonly RecordedStart[]): void {
  const plain = new Map(
    jobs.flatMap((job) =>
      referenceOf(job) === undefined ? [[`${job.setting}/${job.arm}/${job.seed}`, job]] : [],
    ),
  );
  for (const job of jobs) {
    const reference = plain.get(`${job.setting}/${referenceOf(job)}/${job.seed}`);
    // An arm with a start of its own is compared with another one on purpose.
    if (reference === undefined || startNameOf(job.arm) !== "") continue;
    const [own, other] = [job, reference].map(
      ({ folder, setting }) =>
        starts.find(
          ({ out, setting: of, start = "" }) =>
            of === setting && start === "" && folder.startsWith(join(out, setting, "/")),
        )?.weights,
    );
    if (own !== undefined && other !== undefined && own !== other)
      throw new UserError(
        `${job.folder} and ${reference.folder} cannot be paired by seed, because they began with different weights. Give both comparisons the same --start, or both arms to each of them.`,
      );
  }
}

const nameOf = ({ setting, start = "" }: RecordedStart): string => `${setting}/${start}`;

function isSame(a: RecordedStart, b: RecordedStart): boolean {
  if (nameOf(a) !== nameOf(b)) return false;
  return a.weights !== undefined && b.weights !== undefined
    ? a.weights === b.weights
    : a.finishedAt === b.finishedAt;
}
