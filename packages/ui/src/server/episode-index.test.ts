import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resumeRun } from "@pawl/core/runs/run-folder.js";
import { episodesPath } from "@pawl/core/runs/small-file.js";
import { beforeEach, describe, expect, it } from "vitest";
import { filterEpisodes, parseFilter } from "./episode-filter.js";
import { INDEX_FILE, openEpisodeIndex } from "./episode-index.js";
import { playedEpisode, startRun } from "./testing.js";

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "pawl-index-")), "run");
});

const names = (index: ReturnType<typeof openEpisodeIndex>): string[] =>
  index.entries.map(({ group, attempt }) => `${group}.${attempt}`);

describe("the index of episodes", () => {
  it("grows with the record, and is read from its file by the next one", async () => {
    const run = startRun(folder);
    run.recordEpisodes([playedEpisode(0, 0), playedEpisode(0, 1)]);
    const index = openEpisodeIndex(folder);
    await index.refresh();
    expect(names(index)).toEqual(["0.0", "0.1"]);
    const written = readFileSync(join(folder, INDEX_FILE));
    run.recordEpisodes([playedEpisode(1, 0)]);
    await index.refresh();
    expect(names(index)).toEqual(["0.0", "0.1", "1.0"]);
    // The file is behind the record, and the next index continues from it.
    expect(readFileSync(join(folder, INDEX_FILE))).toEqual(written);
    const next = openEpisodeIndex(folder);
    await next.refresh();
    expect(next.entries).toEqual(index.entries);
    expect(filterEpisodes(next, { text: "shelf 1" }).matching).toBe(1);
    run.finish("done");
  });

  it("is rebuilt when a resumed run has rewritten its record", async () => {
    const run = startRun(folder);
    for (const group of [0, 1, 2]) run.recordEpisodes([playedEpisode(group, 0)]);
    run.finish("interrupted");
    const index = openEpisodeIndex(folder);
    await index.refresh();
    const keep = { episode: ({ group }: { group: number }) => group < 1, metrics: () => true };
    const again = resumeRun(folder, { keep, updates: 1 }, () => undefined);
    for (const group of [1, 2, 3])
      again.recordEpisodes([playedEpisode(group, 5, { goal: "Something else." })]);
    again.finish("done");
    await index.refresh();
    expect(names(index)).toEqual(["0.0", "1.5", "2.5", "3.5"]);
    expect(index.generation).toBe(1);
    expect(filterEpisodes(index, { text: "else" }).matching).toBe(3);
    // Also by an index that knows only the old file.
    const other = openEpisodeIndex(folder);
    await other.refresh();
    expect(names(other)).toEqual(names(index));
  });

  it("leaves out a torn end, and takes it once it is whole", async () => {
    const run = startRun(folder);
    run.recordEpisodes([playedEpisode(0, 0)]);
    run.recordEpisodes([playedEpisode(1, 0)]);
    run.finish("done");
    const path = episodesPath(folder);
    const whole = readFileSync(path);
    truncateSync(path, whole.length - 5);
    const index = openEpisodeIndex(folder);
    await index.refresh();
    expect(names(index)).toEqual(["0.0"]);
    expect(index.problems).toEqual([]);
    // Nobody waits for the rest.
    const page = filterEpisodes(index, {});
    expect(page.progress).toBe(1);
    expect(page.rest).toBeGreaterThan(0);
    writeFileSync(path, whole);
    await index.refresh();
    expect(names(index)).toEqual(["0.0", "1.0"]);
    expect(filterEpisodes(index, {})).toMatchObject({ progress: 1, rest: 0 });
  });

  it("says what is damaged, and shows the rest", async () => {
    const run = startRun(folder);
    for (const group of [0, 1, 2]) run.recordEpisodes([playedEpisode(group, 0)]);
    run.finish("done");
    const path = episodesPath(folder);
    const bytes = readFileSync(path);
    const middle = Math.floor(bytes.length / 2);
    bytes.writeUInt8(bytes[middle]! ^ 0xff, middle);
    writeFileSync(path, bytes);
    appendFileSync(path, "not a record, and long enough to look at");
    const index = openEpisodeIndex(folder);
    await index.refresh();
    expect(names(index)).toEqual(["0.0", "2.0"]);
    expect(index.problems.join()).toMatch(/is damaged; .* found other bytes/);
  });

  it("does without a damaged file of its own", async () => {
    const run = startRun(folder);
    run.recordEpisodes([playedEpisode(0, 0)]);
    run.finish("done");
    writeFileSync(join(folder, INDEX_FILE), '{"version":1,"rows":');
    const index = openEpisodeIndex(folder);
    await index.refresh();
    expect(names(index)).toEqual(["0.0"]);
  });

  it("is empty for a run without a record, and makes no file", async () => {
    startRun(folder).finish("done");
    const index = openEpisodeIndex(folder);
    await index.refresh();
    expect(index.entries).toEqual([]);
    expect(existsSync(join(folder, INDEX_FILE))).toBe(false);
  });
});

describe("a filter", () => {
  async function indexed() {
    const run = startRun(folder);
    run.recordEpisodes([
      playedEpisode(0, 0, { return: -1 }),
      playedEpisode(0, 1, { goal: "Wärme den Becher." }),
      playedEpisode(1, 0, { stop: "broken", steps: [] }),
      playedEpisode(1, 1, { step: { valid: false, observation: "Nothing happens." } }),
      playedEpisode(2, 0, { stop: "step-limit", score: 0.5 }),
    ]);
    run.finish("done");
    const index = openEpisodeIndex(folder);
    await index.refresh();
    return index;
  }

  it.each([
    [{}, ["2.0", "1.1", "1.0", "0.1", "0.0"]],
    [{ sort: "oldest" }, ["0.0", "0.1", "1.0", "1.1", "2.0"]],
    [{ sort: "worst" }, ["0.0", "2.0", "1.0", "1.1", "0.1"]],
    [{ sort: "shortest" }, ["1.0", "2.0", "1.1", "0.1", "0.0"]],
    [{ outcome: "solved" }, ["1.1", "0.1"]],
    [{ outcome: "failed" }, ["2.0", "0.0"]],
    [{ outcome: "broken" }, ["1.0"]],
    [{ type: "heat" }, ["1.1", "1.0"]],
    [{ stop: "step-limit" }, ["2.0"]],
    [{ invalid: "true" }, ["1.1"]],
    [{ invalid: "false", outcome: "solved" }, ["0.1"]],
    [{ minReturn: "0", maxReturn: "0" }, ["2.0", "1.0"]],
    [{ minSteps: "1", toGroup: "0" }, ["0.1", "0.0"]],
    [{ fromGroup: "2" }, ["2.0"]],
    [{ text: "nothing HAPPEN" }, ["1.1"]],
    [{ text: "wärme" }, ["0.1"]],
    [{ text: "nothing cup shelf" }, ["1.1"]],
    [{ text: "nowhere" }, []],
    [{ from: "3" }, ["0.1", "0.0"]],
  ])("%j passes %j", async (query, expected) => {
    const { rows } = filterEpisodes(await indexed(), parseFilter(query as Record<string, string>));
    expect(rows.map(({ group, attempt }) => `${group}.${attempt}`)).toEqual(expected);
  });

  it("is refused if it has a condition that there is not", () => {
    expect(() => parseFilter({ colour: "red" })).toThrow(/colour/);
    expect(() => parseFilter({ minSteps: "many" })).toThrow(/minSteps/);
    expect(() => parseFilter({ stop: "tired" })).toThrow(/stop/);
  });
});
