/** A server of `pawl ui` for measurements, and pages of it in a browser. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

export const CLI = join("dist", "lib", "main.js");
const KEY = "bench-key-of-the-page";

/** The middle of some values. */
export const mid = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** A server that runs. */
export interface Page {
  readonly process: ChildProcess;
  readonly address: string;
  ask<T>(path: string): Promise<T>;
  stop(): Promise<void>;
}

/** Starts a server. */
export async function openPage(folder: string): Promise<Page> {
  const child = spawn(process.execPath, [CLI, "ui", folder, "--port", "0"], {
    env: { ...process.env, PAWL_UI_KEY: KEY },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout!.on("data", (data: Buffer) => resolve(/http:\S+/.exec(data.toString())![0]));
    child.on("exit", (code) => reject(new Error(`pawl ui ended with ${code}`)));
  });
  return {
    process: child,
    address,
    ask: async <T>(path: string) => {
      const answer = await fetch(`${address}${path}`);
      if (!answer.ok) throw new Error(await answer.text());
      return (path.startsWith("api/") ? await answer.json() : await answer.text()) as T;
    },
    async stop() {
      const ended = new Promise((resolve) => child.on("exit", resolve));
      child.kill("SIGINT");
      await ended;
    },
  };
}

/** Where Chromium is, if it is. */
export const browser = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find(existsSync);

/** How often a run is opened; the median counts. */
const OPENINGS = 5;

/** Notes in the page when its first chart was there, and its last. */
const NOTED = `new MutationObserver(() => {
  const charts = document.querySelectorAll("figure.chart canvas").length;
  if (charts === (globalThis.charts ?? 0)) return;
  globalThis.charts = charts;
  globalThis.lastChart = performance.now();
  globalThis.firstChart ??= globalThis.lastChart;
}).observe(document, { childList: true, subtree: true });`;

/** Until a run's charts are there, from the first byte of a server that has just started. */
export async function openCharts(folder: string, run: string): Promise<readonly [number, number]> {
  const { chromium } = await import("playwright-core");
  const first: number[] = [];
  const last: number[] = [];
  for (let n = 0; n < OPENINGS; n++) {
    const server = await openPage(folder);
    const started = await chromium.launch({ executablePath: browser!, args: ["--no-sandbox"] });
    try {
      const page = await started.newPage({ viewport: { width: 1440, height: 900 } });
      await page.addInitScript({ content: NOTED });
      await page.goto(`${server.address}#/run/${run}`);
      await page.waitForSelector("figure.chart canvas", { timeout: 120_000 });
      await wait(SETTLED_MS);
      const [from, one, all] = await page.evaluate<readonly [number, number, number]>(
        "[performance.getEntriesByType('navigation')[0].responseStart, firstChart, lastChart]",
      );
      first.push(Math.round(one - from));
      last.push(Math.round(all - from));
    } finally {
      await started.close();
      await server.stop();
    }
  }
  return [mid(first), mid(last)];
}

/** Afterwards nothing more is drawn. */
const SETTLED_MS = 1500;
