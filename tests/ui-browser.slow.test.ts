/**
 * `pawl ui` in a real browser: a run is started and watched, runs are compared, an episode is opened,
 * a world is played. Skipped without Chromium.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { createPlay, type Play } from "@pawl/ui/server/play.js";
import { createUiServer } from "@pawl/ui/server/server.js";
import { HOSTILE, playedEpisode, startRun } from "@pawl/ui/server/testing.js";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const executablePath = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find(existsSync);
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const world = { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["pick"] };
/** A busy machine is given time. */
const patience = 200_000;

describe.skipIf(executablePath === undefined)(
  "pawl ui in Chromium (skipped if there is none)",
  () => {
    const root = mkdtempSync(join(tmpdir(), "pawl-ui-browser-"));
    let server: Server;
    let play: Play;
    let browser: Browser;
    let page: Page;
    let address: string;
    const errors: string[] = [];

    beforeAll(async () => {
      const config = (seed: number, loss: string) => ({
        seed,
        env: world,
        updates: 10,
        paw: { loss },
      });
      for (const [seed, loss] of [
        [1, "cmae"],
        [2, "cmae"],
        [1, "off"],
      ] as const) {
        const run = startRun(join(root, `${loss}-${seed}`), { seed, config: config(seed, loss) });
        for (let update = 0; update < 10; update++)
          run.recordMetrics({
            update,
            "train.success": (update + seed) / 20,
            "eval.valid_seen.success": update / 10,
            "seconds.learn": 2,
          });
        run.recordEpisodes([
          playedEpisode(0, 0),
          playedEpisode(0, 1, { goal: HOSTILE, step: { observation: HOSTILE + "y".repeat(9000) } }),
        ]);
        run.finish("done");
      }
      // What agents, trees and choices have, with as little room as possible for it.
      const rare = startRun(join(root, "rare"), { config: { groups: 1 } });
      const call = '{"tool":"find","arguments":{"item":"cup"}}';
      const candidate = { votes: 2, refused: 0.25, predicted: "p".repeat(200), score: 1 };
      const candidates = [
        { ...candidate, action: "take cup", chosen: true as const },
        { ...candidate, action: "a".repeat(200), truth: { observation: "no", valid: false } },
      ];
      rare.recordEpisodes([
        playedEpisode(0, 0, {
          ...{ given: { item: "cup" }, result: { sold: true }, why: "right" },
          step: { action: call, response: call, candidates },
        }),
        playedEpisode(0, 1, { branch: { from: 0, step: 1 } }),
      ]);
      rare.finish("done");
      play = createPlay({
        defaultWorld: "household",
        root,
        env: world,
      });
      server = createUiServer({ folder: root, key: "browser-key", play: play.handle });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/browser-key/`;
      browser = await chromium.launch({ executablePath: executablePath!, args: ["--no-sandbox"] });
      page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      page.setDefaultTimeout(patience);
      page.on("console", (message) => {
        if (message.type() === "error") errors.push(message.text());
      });
      page.on("pageerror", (error) => errors.push(error.message));
    });
    afterAll(async () => {
      await browser?.close();
      server?.closeAllConnections();
      server?.close();
      await play?.close();
    });

    const go = async (hash: string, heading: string): Promise<void> => {
      await page.goto(`${address}#/${hash}`);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    };
    /** Serious faults of accessibility, by rule and element. */
    const faults = async (of: Page = page): Promise<readonly string[]> => {
      // Not as an element: the page's policy rightly refuses scripts of others.
      await of.evaluate(readFileSync(axe, "utf8"));
      return of.evaluate(async () => {
        const { axe } = globalThis as unknown as {
          axe: {
            run(): Promise<{
              violations: { id: string; impact: string; nodes: { target: string[] }[] }[];
            }>;
          };
        };
        const { violations } = await axe.run();
        return violations
          .filter(({ impact }) => impact === "serious" || impact === "critical")
          .map(
            ({ id, nodes }) =>
              `${id}: ${nodes
                .map(({ target }) => target.join(" "))
                .slice(0, 3)
                .join(", ")}`,
          );
      });
    };

    it("watches a run from its start to its end", async () => {
      await go("", "Runs");
      // A real training, in a process of its own.
      const config = join(root, "tiny.json");
      const { plugins: _, ...settings } = tinyConfig({
        updates: 4,
        evaluation: { every: 0 },
      }) as Record<string, unknown>;
      writeFileSync(config, JSON.stringify(settings));
      const child = spawn(
        process.execPath,
        ["dist/lib/main.js", "train", "--config", config, "--out", join(root, "live")],
        { stdio: "ignore" },
      );
      const ended = new Promise((resolve) => child.on("exit", resolve));
      await page.getByRole("link", { name: "live", exact: true }).click();
      await page.getByRole("heading", { level: 1, name: "live" }).waitFor();
      await page.getByText("4 of 4").waitFor();
      expect(await ended).toBe(0);
      await page.locator("h1 .badge.done").waitFor();
      await page.locator("figure.chart").first().waitFor();
      expect(await page.locator(".commands code").allTextContents()).toEqual([
        expect.stringMatching(/^pawl train --resume .*live --updates 8$/),
        expect.stringMatching(/^pawl report /),
        expect.stringMatching(/^pawl eval --checkpoint /),
      ]);
      expect(await faults()).toEqual([]);
      // The arrow keys read a chart.
      const plot = page.locator(".plot").first();
      await plot.focus();
      await plot.press("Home");
      expect(await page.locator(".readout").first().textContent()).toMatch(/^update 1/);
    });

    it.runIf(isWhole)("compares groups over seeds", async () => {
      await go("", "Runs");
      for (const name of ["cmae-1", "cmae-2", "off-1"])
        await page.getByLabel(`Select ${name} to compare`).check();
      await page.getByRole("link", { name: "Compare 3" }).click();
      await page.getByRole("heading", { level: 1, name: "Compare" }).waitFor();
      const key = page.locator("ul.key li");
      await key.first().waitFor();
      expect(await key.allTextContents()).toEqual([
        "paw.loss cmae seeds 1, 2",
        "paw.loss off seed 1",
      ]);
      await page.getByLabel(/^Last value of/).selectOption("train.success");
      expect(await page.getByRole("region", { name: "Paired differences" }).textContent()).toMatch(
        /0\.5.*0\.55.*\+0 \(n 1\)/,
      );
      expect(await page.getByLabel("X axis").locator("option").allTextContents()).toEqual([
        "updates",
        "million tokens",
        "minutes",
      ]);
      await page.getByLabel("X axis").selectOption("seconds");
      await page.getByText("minutes 0.3333").first().waitFor();
      expect(page.url()).toContain("axis=seconds");
      expect(await faults()).toEqual([]);
    });

    it("opens an episode that is hostile, and shows all of it", async () => {
      await go("run/cmae-1/episodes", "cmae-1");
      await page.getByLabel("Outcome").selectOption("solved");
      await page.getByText("1 episode of 2").waitFor();
      expect(await faults()).toEqual([]);
      await page.getByRole("link", { name: "0.1" }).click();
      await page.getByRole("heading", { level: 1, name: "Episode 0.1" }).waitFor();
      const text = (await page.locator(".said.goal").textContent())!;
      expect(text).toContain("</script><script>");
      expect(text).toContain("U+202E");
      expect(text).toContain("U+0007");
      expect(text).not.toContain("\u202e");
      expect(await page.title()).not.toBe("taken");
      const observation = page.locator(".observation").first();
      expect((await observation.textContent())!.length).toBeLessThan(5000);
      await observation.getByRole("button", { name: "Show more" }).click();
      // Not by a condition inside the page: its policy rightly refuses to evaluate strings.
      await expect
        .poll(async () => (await observation.textContent())!.length, { timeout: patience })
        .toBeGreaterThan(9000);
      await page.getByText("Other attempts at this step").first().click();
      await page.locator(".others li").nth(1).waitFor();
      expect(await faults()).toEqual([]);
    });

    it("asks the checkpoint what it expected", async () => {
      const folder = join(root, "trained");
      await trainRun(tinyConfig({ updates: 1, evaluation: { every: 0 } }), { folder });
      await go("run/trained/episodes", "trained");
      await page.locator("table.episodes a").first().click();
      await page.getByRole("button", { name: "Ask the checkpoint" }).click();
      await page.locator(".expectation").first().waitFor();
      await page.getByLabel("Colour the agent by").selectOption("entropy");
      await page.locator(".token.observation[class*=low]").first().waitFor();
      expect(page.url()).toContain("colour=entropy");
      await page.getByText("trained on by the world model").waitFor();
      await page
        .getByText(/selected for the world model|not selected/)
        .first()
        .waitFor();
    });

    it("plays a world by hand", async () => {
      await go("play", "Play");
      await page.getByRole("button", { name: "Start" }).click();
      const actions = page.locator(".actions button");
      await actions.first().waitFor();
      const before = await actions.allTextContents();
      await actions.first().press("Enter");
      await page.getByText("You, step 1").waitFor();
      // The keyboard goes on with what can be done next.
      await page.locator(".actions button:focus").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("step 0 of").waitFor();
      expect(await actions.allTextContents()).toEqual(before);
      expect(await faults()).toEqual([]);
    });

    it("says when a run that is watched is gone, and what to do where there is nothing", async () => {
      startRun(join(root, "short")).finish("done");
      await go("run/short", "short");
      await page.getByText("This run recorded no metrics.").waitFor();
      rmSync(join(root, "short"), { recursive: true });
      await page.getByText("The run can no longer be read").waitFor();
      await go("results", "Results");
      await page.getByText("pawl wm eval fidelity").waitFor();
      expect(await faults()).toEqual([]);
    });

    it.runIf(isWhole)("shows what the evaluations of a world model wrote", async () => {
      const data = join(root, "data");
      const model = join(root, "world-model");
      const room = ["--env.rooms", "1", "--env.receptacles", "4", "--env.objects", "3"];
      const short = ["--max-tokens", "8", "--out"];
      for (const args of [
        ["wm", "data", ...room, "--mix", "expert:6", "--step-limit", "4", "--out", data],
        ["wm", "train", "--data", data, "--epochs", "1", "--evaluation.every", "0", "--out", model],
        [
          ...["wm", "eval", "consistency", ...room, "--model", model, "--policies", "expert"],
          ...["--tasks", "2", "--step-limit", "3", ...short, join(root, "consistency.json")],
        ],
        [
          ...["wm", "eval", "fidelity", "--model", model, "--data", data, "--part", "all"],
          ...["--mistakes", "1", ...short, join(root, "fidelity.json")],
        ],
      ])
        expect(await runCli(args)).toMatchObject({ code: 0 });
      await go("", "Runs");
      await go("results", "Results");
      const row = page.getByLabel("Consistency, ").locator("tbody tr");
      await row.waitFor();
      const [tasks, real, , , , never, median] = await row.locator("td").allInnerTexts();
      expect(tasks).toBe("2");
      expect(real).toMatch(/^0 %\s+0 % to /);
      // A model after one epoch is wrong at once.
      expect([never, median]).toEqual(["0 %", "1"]);
      await page.getByRole("heading", { name: "Mistakes" }).waitFor();
      expect(await faults()).toEqual([]);
    });

    it("fits a phone, in the dark", async () => {
      const phone = await browser.newPage({
        viewport: { width: 375, height: 700 },
        colorScheme: "dark",
      });
      phone.setDefaultTimeout(patience);
      for (const [hash, ready] of [
        ["", "table.runs"],
        ["run/cmae-1", "figure.chart"],
        ["run/cmae-1/episodes", "table.episodes"],
        ["compare?runs=cmae-1,off-1", "figure.chart"],
        ["play", ".empty"],
        ["results", "h1"],
      ] as const) {
        await phone.goto(`${address}#/${hash}`);
        await phone.locator(ready).first().waitFor();
        const [wide, window] = await phone.evaluate<[number, number]>(
          "[document.documentElement.scrollWidth, innerWidth]",
        );
        expect([hash, wide]).toEqual([hash, window]);
      }
      for (const [run, episode] of [
        ["cmae-1", "0.1"],
        ["rare", "0.0"],
        ["rare", "0.1"],
      ] as const) {
        await phone.goto(`${address}#/run/${run}/episodes`);
        await phone.getByRole("link", { name: episode, exact: true }).click();
        await phone.getByRole("heading", { level: 1, name: `Episode ${episode}` }).waitFor();
        const [wide, window] = await phone.evaluate<[number, number]>(
          "[document.documentElement.scrollWidth, innerWidth]",
        );
        expect([run, episode, wide]).toEqual([run, episode, window]);
        expect(await faults(phone)).toEqual([]);
      }
      await phone.getByText("Branches off attempt 0 here").waitFor();
      await phone.getByRole("link", { name: "attempt 0" }).first().click();
      await phone.getByText("attempt 1 branches off here").waitFor();
      expect(await phone.locator(".call").first().textContent()).toBe("finditemcup");
      expect(await phone.locator(".candidates td").first().textContent()).toBe("2");
      await phone.close();
    });

    it("lets an agent act in pawl try, trains it, and ends both together", async () => {
      const folder = join(root, "try");
      const child = spawn(process.execPath, ["dist/lib/main.js", "try", folder], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      const ended = new Promise((resolve) => child.on("exit", resolve));
      const [printed] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
      await page.goto(/http:\S+/.exec(printed)![0]);
      await page.locator(".said.world .badge").first().waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      expect(await faults()).toEqual([]);
      await page.getByRole("button", { name: "Train it" }).click();
      await page.locator("figure.chart").waitFor();
      await page.getByText(/^after update \d/).waitFor();
      await page.getByRole("button", { name: "Step" }).click();
      await page.getByRole("button", { name: "Go on" }).waitFor();
      expect(await faults()).toEqual([]);
      await page.goto("about:blank");
      child.kill("SIGINT");
      expect(await ended).toBe(0);
      await expect
        .poll(() => readManifest(join(folder, "trained")).status, { timeout: patience })
        .toBe("interrupted");
    });

    it("never wrote an error to the console", () => {
      // Asking for a run that is gone is answered with 404, which browsers note.
      expect(errors.filter((text) => !/404/.test(text))).toEqual([]);
    });
  },
);
