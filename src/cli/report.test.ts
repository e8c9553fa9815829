import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { EVIL, episode, risingMetrics } from "../report/testing.js";
import { createRun } from "../runs/run-folder.js";
import { trainRun } from "../train/run.js";
import { tinyConfig } from "../train/testing.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-report-"));
const fail = (message: string): never => {
  throw new Error(message);
};

/** A run folder without the training. */
function record(name: string, seed: number, loss: string, slope: number): string {
  const run = createRun(
    {
      folder: join(folder, name),
      kind: "train",
      seed,
      config: tinyConfig({ seed, paw: { loss } }),
    },
    fail,
  );
  for (const line of risingMetrics(6, slope)) run.recordMetrics(line);
  run.recordEpisodes([
    episode(0, 0, { goal: EVIL, step: { observation: EVIL } }),
    episode(9, 0, { success: true, return: 10 }),
  ]);
  run.finish("done");
  return run.folder;
}

let runs: readonly string[];
beforeAll(() => {
  runs = [
    record("cmae-1", 1, "cmae", 0.1),
    record("cmae-2", 2, "cmae", 0.12),
    record("off-1", 1, "off", 0.05),
  ];
});

describe("pawl report", () => {
  it("writes one file that says how to get predictions", async () => {
    const out = join(folder, "report.html");
    const { code, stdout } = await runCli(["report", ...runs, "--out", out]);
    expect(stdout).toBe(`wrote ${out}\n`);
    expect(code).toBe(0);
    const page = readFileSync(out, "utf8");
    expect(page).toContain("3 runs in 2 groups");
    expect(page).toContain("66.0 ± 8.5 %");
    expect(page).toContain("<code>--predictions</code>");
  });

  it.each([
    ["wm-train", { data: ["data/house"] }, { update: 0, "wm.loss": 2, "wm.exactMatch": 0.5 }],
    ["rwml", { env: { name: "household" } }, { update: 0, "heldOut.reward": 0.25 }],
  ])("draws the curves of %s", async (kind, config, line) => {
    const run = createRun({ folder: join(folder, kind), kind, seed: 0, config }, fail);
    run.recordMetrics(line);
    run.recordMetrics({ ...line, update: 1 });
    run.finish("done");
    const out = join(folder, `${kind}.html`);
    expect((await runCli(["report", run.folder, "--predictions", "--out", out])).code).toBe(0);
    const page = readFileSync(out, "utf8");
    const drawn = Object.keys(line).length - 1;
    expect(page.match(/<figure class="chart"/g)).toHaveLength(drawn);
    expect(page).toContain(kind === "rwml" ? "household" : "data/house");
    expect(page).not.toContain("What the model expects to see");
  });

  it("asks a trained run for predictions", async () => {
    const run = join(folder, "trained");
    await trainRun(tinyConfig({ updates: 1, evaluation: { every: 0 } }), { folder: run });
    const out = join(folder, "predictions.html");
    const { code } = await runCli(["report", run, "--predictions", "--out", out]);
    expect(code).toBe(0);
    const page = readFileSync(out, "utf8");
    expect(page).toMatch(/<span class="weights">before RL<\/span>/);
    expect(page).toMatch(/<span class="weights">latest<\/span>/);
    expect(page.match(/title="p /g)!.length).toBeGreaterThan(10);
  }, 240_000);

  it("rejects what it cannot report", async () => {
    expect((await runCli(["report"])).stderr).toContain("pawl report needs a run folder");
    expect((await runCli(["report", "nowhere"])).stderr).toContain("is not a run folder");
    const rollout = join(folder, "rollout");
    await runCli(["rollout", "--groups", "1", "--group-size", "1", "--out", rollout]);
    const refused = await runCli(["report", rollout]);
    expect(refused.stderr).toContain("expected a run of pawl train, pawl wm train or pawl rwml");
    expect(refused.code).toBe(1);
  });
});

const browser = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

describe.skipIf(browser === undefined)("the report in Chromium (skipped if there is none)", () => {
  /** The page after its scripts have run, and what was written to the console. */
  function open(file: string): { dom: string; console: readonly string[] } {
    const flags = [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
    ];
    const { stdout, stderr } = spawnSync(
      browser!,
      [
        ...flags,
        "--enable-logging=stderr",
        `--user-data-dir=${mkdtempSync(join(tmpdir(), "pawl-chromium-"))}`,
        "--dump-dom",
        `file://${file}`,
      ],
      { encoding: "utf8", timeout: 50_000, maxBuffer: 2 ** 26 },
    );
    return { dom: stdout, console: stderr.split("\n").filter((line) => /CONSOLE/.test(line)) };
  }

  it("shows charts, tables and the read-out, without an error", async () => {
    const out = join(folder, "browser.html");
    await runCli(["report", ...runs, "--out", out]);
    // What a pointer over the first chart would do, from a script of the test itself.
    const probe = `<script>
      const svg = document.querySelector("svg"), area = svg.getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent("pointermove", { clientX: area.right, clientY: area.top }));
      console.log("width " + document.documentElement.scrollWidth + " of " + innerWidth);
    </script>`;
    writeFileSync(
      out,
      readFileSync(out, "utf8").replace("</body>", () => `${probe}</body>`),
    );
    const page = open(out);
    expect(page.dom.match(/<figure class="chart"/g)).toHaveLength(3);
    expect(page.dom.match(/<table>/g)).toHaveLength(3);
    const readout = /<div class="readout"[^>]*>(.*?)<\/div><\/div>/.exec(page.dom)![1]!;
    expect(readout).toContain("after update 6");
    expect(readout).toContain("66 % ± 8.5 % (n 2)");
    expect(readout).toContain("30 %");
    expect(page.dom).toContain("&lt;/script&gt;&lt;script&gt;throw");
    // Only the probe's own line: no error, and no injected text that became a script.
    expect(page.console).toHaveLength(1);
    const [, width, window] = /width (\d+) of (\d+)/.exec(page.console[0]!)!;
    expect(Number(width)).toBeLessThanOrEqual(Number(window));
  }, 240_000);

  it("would notice an error", () => {
    const file = join(folder, "error.html");
    writeFileSync(file, "<script>throw new Error('seen')</script>");
    expect(open(file).console.join()).toContain("seen");
  }, 240_000);
});
