/**
 * `node docs/browser/check.js FOLDER [UPDATES]`: opens the built page in Chromium, trains there, changes λ
 * meanwhile, downloads the run, and replays it in Node: its record must be what Node computes from it.
 */
import { spawnSync } from "node:child_process";
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [folder, updates = "2"] = process.argv.slice(2);
if (folder === undefined || !existsSync(join(folder, "desk.js"))) {
  process.stderr.write(
    "usage: node docs/browser/check.js FOLDER [UPDATES], after npm run docs:build\n",
  );
  process.exit(2);
}
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(executablePath)) {
  console.log("no browser: the page that trains is not checked");
  process.exit(0);
}

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const root = resolve(folder);
/** Plain files, as any host serves them: no header that isolates the page. */
const server = createServer((asked, reply) => {
  const { pathname } = new URL(asked.url, "http://page");
  const path = resolve(root, `.${pathname.replace(/\/$/, "/index.html")}`);
  if (!path.startsWith(root + sep) || !statSync(path, { throwIfNoEntry: false })?.isFile()) {
    reply.writeHead(404).end();
    return;
  }
  const type = TYPES[extname(path)] ?? (path.endsWith(".wasm") && "application/wasm");
  reply.writeHead(200, { "content-type": type || "application/octet-stream" });
  createReadStream(path).pipe(reply);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

/** Updates that a page tells of. */
const updatesOf = async (page) =>
  Number(/\d+/.exec(await page.getByText(/^update \d+ of/).textContent())[0]);

const began = performance.now();
const seconds = () => `${((performance.now() - began) / 1000).toFixed(0)} s`;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const work = mkdtempSync(join(tmpdir(), "pawl-page-"));
try {
  const page = await browser.newPage({ acceptDownloads: true });
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.setDefaultTimeout(600_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.locator(".said.world .badge").first().waitFor();
  console.log(`${seconds()}: the agent has acted, and said what it expected`);
  await page.getByRole("button", { name: "Train it" }).click();
  await page.locator("figure.chart").first().waitFor();
  console.log(`${seconds()}: the first success is drawn`);
  await page.getByText(new RegExp(`update ([${updates}-9]|[1-9]\\d) of`)).waitFor();
  console.log(`${seconds()}: update ${updates}`);
  await page.getByLabel("Weight of its world model").selectOption("0.5");
  await page.getByText(/^λ 0\.5 from update \d+ \(before: adaptive\)$/).waitFor();
  await page.getByRole("button", { name: "Pause training", disabled: false }).waitFor();
  const done = await updatesOf(page);
  while ((await updatesOf(page)) === done) await page.waitForTimeout(500);
  console.log(`${seconds()}: update ${await updatesOf(page)}, with another λ`);
  await page.getByRole("button", { name: "Pause training" }).click();
  const [archive] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download it" }).click(),
  ]);
  const file = join(work, archive.suggestedFilename());
  await archive.saveAs(file);
  console.log(`${seconds()}: the run is here, ${readFileSync(file).length} bytes`);
  if (faults.length > 0) throw new Error(`the page reported: ${faults.join("; ")}`);
  const unpacked = spawnSync("tar", ["-xf", file, "-C", work], { stdio: "inherit" });
  if (unpacked.status !== 0) throw new Error("tar cannot read the archive");
  const { resumes } = JSON.parse(readFileSync(join(work, "trained/manifest.json"), "utf8"));
  if (resumes?.[0].changed["paw.lambda"].to !== 0.5) throw new Error("the new λ is not recorded");
  const program = fileURLToPath(new URL("../../dist/lib/main.js", import.meta.url));
  const replayed = spawnSync(process.execPath, [program, "replay", join(work, "trained")], {
    stdio: "inherit",
  });
  if (replayed.status !== 0) throw new Error("Node computes other numbers than the page did");
  console.log(`${seconds()}: replayed`);
} finally {
  await browser.close();
  server.close();
  rmSync(work, { recursive: true, force: true });
}
