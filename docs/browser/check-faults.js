/**
 * `node docs/browser/check-faults.js FOLDER`: the built page in Chromium where something is missing: no
 * WebAssembly, a part that does not load, a worker that is lost, a page that is frozen or loaded again.
 * Each time it must go on, or say at once what is missing.
 */
import { openBuilt, updatesAfter } from "./opened.js";

const refused = new Set();
/** The page's trainer ends without a word when it is told to, as one does for which memory is lacking. */
const END = 'new BroadcastChannel("check").onmessage = () => self.close();\n';
const { browser, address, told, close } = await openBuilt(
  process.argv[2],
  "node docs/browser/check-faults.js FOLDER",
  (name, bytes) =>
    refused.has(name)
      ? undefined
      : name === "trainer.js"
        ? Buffer.concat([Buffer.from(END), bytes])
        : bytes,
);
const opened = async (prepare = async () => undefined) => {
  const page = await browser.newPage();
  page.setDefaultTimeout(300_000);
  await prepare(page);
  await page.goto(address);
  return page;
};
const says = (page, text) => page.getByRole("alert").getByText(text).first().waitFor();
const button = (page, name) => page.getByRole("button", { name, exact: true });
try {
  const old = await opened((page) => page.addInitScript("delete globalThis.WebAssembly"));
  await says(old, "This browser has no WebAssembly with SIMD");
  await old.close();
  told("without WebAssembly: said");

  const page = await opened();
  await page.locator(".said.world .badge").first().waitFor();
  for (const name of ["trainer.js", "onnx.wasm"]) {
    refused.add(name);
    await button(page, "Train it").click();
    await says(page, "The training stopped: ");
    await button(page, "Train it").waitFor();
    refused.delete(name);
    told(`without ${name}: said, and it can be tried again`);
  }

  await button(page, "Train it").click();
  const before = await updatesAfter(page, 0);
  told(`update ${before}`);
  await page.evaluate(() => new BroadcastChannel("check").postMessage("end"));
  await says(page, "the browser ended its worker");
  told("a lost worker: said");
  await button(page, "Train it further").click();
  told(`it goes on: update ${await updatesAfter(page, await updatesAfter(page, before - 1))}`);

  const devtools = await page.context().newCDPSession(page);
  const state = (name) => devtools.send("Page.setWebLifecycleState", { state: name });
  await state("frozen");
  await new Promise((resolve) => setTimeout(resolve, 5000));
  await state("active");
  told(
    `frozen for a while, it goes on: update ${await updatesAfter(page, await updatesAfter(page, 0))}`,
  );

  await page.reload();
  await says(page, /The \d+ updates that this page had trained are gone/);
  await button(page, "Train it").waitFor();
  told("loaded again: said");
} finally {
  await close();
}
