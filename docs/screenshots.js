/**
 * `node docs/screenshots.js FOLDER RUN…`: pictures of each page of `pawl ui` and of `pawl try` into
 * docs/images, from the runs of a folder; the first run named is opened, and all of them are compared.
 * FOLDER/tree is a run of `--advantage tree`. What `pawl try` has trained in FOLDER-try is shown; it is
 * trained there first if it was not. Those in docs/images are of `node docs/screenshots.js FOLDER
 * quick-1 quick-0 off-0 off-1`, after
 *
 *   pawl train --quick --seed 0 --out FOLDER/quick-0                     # and with seed 1
 *   pawl train --quick --seed 0 --paw.loss off --out FOLDER/off-0        # and with seed 1
 *   pawl train --quick --advantage tree --rollout.branch.points 1 --out FOLDER/tree
 *   pawl eval --checkpoint FOLDER/quick-0 --out FOLDER/eval
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [folder, first, ...others] = process.argv.slice(2);
if (first === undefined) {
  process.stderr.write("usage: node docs/screenshots.js FOLDER RUN…\n");
  process.exit(2);
}
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
/** Starts a command that serves a page; resolves with its process and address. */
async function served(...args) {
  const server = spawn(process.execPath, [here("../dist/lib/main.js"), ...args]);
  const address = await new Promise((resolve) => {
    server.stdout.on("data", (data) => resolve(/http:\S+/.exec(data.toString())[0]));
  });
  return { server, address };
}
const { server, address } = await served("ui", folder, "--play", "--port", "0");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1120, height: 760 } });
page.setDefaultTimeout(200_000);

const run = encodeURIComponent(first);
const runs = encodeURIComponent([first, ...others].map(encodeURIComponent).join(","));
const shoot = async (name, hash, ready, more = async () => undefined) => {
  await page.goto(`${address}#/${hash}`);
  await page.locator(ready).first().waitFor();
  await more();
  await page.waitForTimeout(500);
  await page.screenshot({ path: here(`images/ui-${name}.png`) });
};
await shoot("runs", "", "table.runs tbody tr");
await shoot("run", `run/${run}`, "figure.chart");
await shoot("compare", `compare?runs=${runs}`, "figure.chart");
await shoot("episodes", `run/${run}/episodes`, "table.episodes tbody tr");
await shoot("episode", `run/${run}/episodes`, "table.episodes tbody tr", async () => {
  await page.locator("table.episodes a").first().click();
  await page.getByRole("button", { name: "Ask the checkpoint" }).click();
  await page.locator(".expectation").first().waitFor();
  await page.getByRole("button", { name: "Ask the checkpoint" }).waitFor();
});
await shoot("tree", "run/tree/episodes?outcome=solved", "table.episodes tbody tr", async () => {
  await page.locator("table.episodes a").first().click();
  await page.locator("table.attempts").scrollIntoViewIfNeeded();
});
await shoot("play", `play?run=${run}&agent=${run}&seed=1`, "button", async () => {
  await page.getByRole("button", { name: "Start" }).click();
  await page.locator(".thoughts button").first().click();
  await page.getByText("You, step 1").waitFor();
  await page.locator(".thoughts button").first().waitFor();
});
await shoot("inside", `play?run=${run}&inside=${run}&seed=1`, "button", async () => {
  await page.getByRole("button", { name: "Start" }).click();
  await page.locator(".actions button").first().click();
  await page.getByText("You, step 1").waitFor();
});
await shoot("results", "results", "h1");
server.kill("SIGINT");

// Candidates with what each was expected to bring, in an evaluation that the site keeps.
const recorded = await served("ui", here("browser/runs"), "--port", "0");
await page.goto(`${recorded.address}#/run/choose-self/episodes`);
await page.locator("table.episodes a").first().click();
await page.locator("table.candidates").first().scrollIntoViewIfNeeded();
await page.waitForTimeout(500);
await page.screenshot({ path: here("images/ui-candidates.png") });
recorded.server.kill("SIGINT");

const tried = await served("try", `${folder}-try`);
await page.goto(tried.address);
await page.locator(".said.world .badge").first().waitFor();
const train = page.getByRole("button", { name: /^Train it/ });
if ((await train.textContent()) === "Train it") {
  await train.click();
  await page.getByText(/^update \d+ of \d+, done/).waitFor({ timeout: 1_800_000 });
}
// A step whose observation was not expected word for word says more.
await page.locator(".said .expectation").first().waitFor();
await page.getByRole("button", { name: "Pause", exact: true }).click();
await page.waitForTimeout(3000);
await page.screenshot({ path: here("images/ui-try.png") });
await browser.close();
tried.server.kill("SIGINT");
