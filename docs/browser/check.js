/**
 * `node docs/browser/check.js FOLDER [UPDATES]`: opens the built page in Chromium, trains there, changes λ
 * meanwhile, downloads the run, and replays it in Node: its record must be what Node computes from it.
 * With 8 updates, the second evaluation is drawn with the last: it tells how long "better" takes.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBuilt, updatesAfter } from "./opened.js";

const [folder, updates = "2"] = process.argv.slice(2);
const { browser, address, told, close } = await openBuilt(
  folder,
  "node docs/browser/check.js FOLDER [UPDATES]",
);
const work = mkdtempSync(join(tmpdir(), "pawl-page-"));
try {
  const page = await browser.newPage({ acceptDownloads: true });
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.setDefaultTimeout(600_000);
  await page.goto(address);
  await page.locator(".said.world .badge").first().waitFor();
  told("the agent has acted, and said what it expected");
  await page.getByRole("button", { name: "Train it" }).click();
  told(`update ${await updatesAfter(page, 0)}`);
  told(`update ${await updatesAfter(page, Number(updates) - 1)}`);
  await page.getByLabel("Weight of its world model").selectOption("0.5");
  await page.getByText(/^λ 0\.5 from update \d+ \(before: adaptive\)$/).waitFor();
  told(`update ${await updatesAfter(page, await updatesAfter(page, 0))}, with another λ`);
  const save = page.getByRole("button", { name: "Download it" });
  // It may have ended by itself.
  const pause = page.getByRole("button", { name: "Pause training" });
  await Promise.race([pause.click().catch(() => undefined), save.waitFor()]);
  const [archive] = await Promise.all([page.waitForEvent("download"), save.click()]);
  const file = join(work, archive.suggestedFilename());
  await archive.saveAs(file);
  told(`the run is here, ${readFileSync(file).length} bytes`);
  if (faults.length > 0) throw new Error(`the page reported: ${faults.join("; ")}`);
  const unpacked = spawnSync("tar", ["-xf", file, "-C", work], { stdio: "inherit" });
  if (unpacked.status !== 0) throw new Error("tar cannot read the archive");
  const { resumes } = JSON.parse(readFileSync(join(work, "trained/manifest.json"), "utf8"));
  if (resumes?.[0].changed["paw.lambda"].to !== 0.5) throw new Error("the new λ is not recorded");
  for (const line of readFileSync(join(work, "trained/metrics.jsonl"), "utf8").trim().split("\n")) {
    const { update, ...metrics } = JSON.parse(line);
    const splits = Object.keys(metrics).filter((name) => /^eval\.\w+\.success$/.test(name));
    for (const name of splits)
      console.log(`after update ${update + 1}: ${name} ${(100 * metrics[name]).toFixed(1)} %`);
  }
  const program = fileURLToPath(new URL("../../dist/lib/main.js", import.meta.url));
  const replayed = spawnSync(process.execPath, [program, "replay", join(work, "trained")], {
    stdio: "inherit",
  });
  if (replayed.status !== 0) throw new Error("Node computes other numbers than the page did");
  told("replayed");
} finally {
  await close();
  rmSync(work, { recursive: true, force: true });
}
