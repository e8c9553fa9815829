/** What worlds and models write reaches the terminal as text only. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { expect, it } from "vitest";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import { createLive } from "./live.js";

const EVIL = "\u001b]0;owned\u0007\u001b[8mhidden\u009b2J\rtricked\u202e";
const folder = join(mkdtempSync(join(tmpdir(), "pawl-hostile-")), EVIL.replaceAll("/", ""));

const step = {
  prompt: [{ origin: "task", text: EVIL }],
  response: EVIL,
  action: EVIL,
  observation: EVIL,
  valid: false,
  wellFormed: true,
  reward: 1,
} as unknown as Episode["steps"][number];
const episode: Episode = {
  task: { id: EVIL, type: EVIL, split: "train", index: 0 } as unknown as Episode["task"],
  group: 0,
  attempt: 0,
  seed: 0,
  policy: EVIL,
  goal: EVIL,
  firstObservation: EVIL,
  steps: [step],
  return: 1,
  success: false,
  stop: "broken",
  error: EVIL,
};

/** A terminal with colours. */
function terminal() {
  const stream = () => Object.assign(new PassThrough(), { isTTY: true, columns: 500, rows: 30 });
  const [stdout, stderr] = [stream(), stream()];
  const colors = createColours(true);
  const written = () => [stdout, stderr].map((one) => String(one.read() ?? "")).join("");
  return { io: { stdin: Readable.from([]), stdout, stderr, env: {}, colors }, written };
}

/** Everything that a terminal would act on, except our own colours and the live view's redrawing. */
const actsOn = (text: string) =>
  ["1", "2", "22", "31", "32", "33", "36", "39"]
    .map((code) => `\u001b[${code}m`)
    .concat("\u001b[?25l", "\u001b[?25h", "\r\u001b[J")
    .reduce((rest, own) => rest.replaceAll(own, ""), text)
    .match(/(?!\n)[\p{Cc}\u202a-\u202e]/gu);

it.each([[], ["0.0"], ["broken", "--full"], ["--json"], ["no-such-one"]])(
  "pawl show RUN %j shows hostile text as it is",
  async (...args) => {
    const out = mkdtempSync(join(tmpdir(), "pawl-hostile-"));
    const run = createRun(
      { folder: join(out, EVIL), kind: "rollout", seed: 0, config: {} },
      () => 0,
    );
    run.recordEpisodes([episode]);
    run.finish("failed", { error: EVIL });
    const { io, written } = terminal();
    await main(["show", run.folder, ...args], io, new AbortController().signal);
    const text = written();
    expect(text).toContain("owned");
    expect(actsOn(text)).toBeNull();
  },
);

it("the live view and errors show it as it is, too", async () => {
  const { io, written } = terminal();
  const live = createLive(io);
  live.draw(() => [io.colors.green(EVIL)]);
  live.end([]);
  await main(["show", folder], io, new AbortController().signal);
  await main([EVIL], io, new AbortController().signal);
  const text = written().replaceAll("\u001b[1A", "");
  expect(text.match(/owned/g)!.length).toBeGreaterThan(2);
  expect(actsOn(text)).toBeNull();
});

it("no command writes past the one place that does this", () => {
  const direct = readdirSync("packages/pawl/src/cli")
    .filter((name) => name.endsWith(".ts") && !/\.test\.ts$|^(io|live)\.ts$/.test(name))
    .filter((name) =>
      /\b(stdout|stderr)\.write\(|console\.(log|error|warn)/.test(
        readFileSync(join("packages/pawl/src/cli", name), "utf8"),
      ),
    );
  expect(direct).toEqual([]);
});
