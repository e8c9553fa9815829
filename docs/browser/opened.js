/** The built page in Chromium, from plain files as any host serves them: no header isolates it. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, resolve, sep } from "node:path";
import { chromium } from "playwright-core";

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
};

/**
 * Opens the page of a folder for a check, or ends the process if there is none or no Chromium.
 * `served` may change what the server answers for a name; nothing is a missing file.
 */
export async function openBuilt(folder, usage, served = (_, bytes) => bytes) {
  if (folder === undefined || !existsSync(join(folder, "desk.js"))) {
    process.stderr.write(`usage: ${usage}, after npm run docs:build\n`);
    process.exit(2);
  }
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) {
    console.log("no browser: the page that trains is not checked");
    process.exit(0);
  }
  const root = resolve(folder);
  const server = createServer((asked, reply) => {
    const { pathname } = new URL(asked.url, "http://page");
    const path = resolve(root, `.${pathname.replace(/\/$/, "/index.html")}`);
    const isFile =
      path.startsWith(root + sep) && statSync(path, { throwIfNoEntry: false })?.isFile();
    const bytes = isFile ? served(pathname.slice(1), readFileSync(path)) : undefined;
    if (bytes === undefined) return reply.writeHead(404).end();
    const type = TYPES[extname(path)] ?? "application/octet-stream";
    reply.writeHead(200, { "content-type": type }).end(bytes);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const began = performance.now();
  return {
    browser,
    address: `http://127.0.0.1:${server.address().port}/`,
    told: (what) => console.log(`${((performance.now() - began) / 1000).toFixed(0)} s: ${what}`),
    async close() {
      await browser.close();
      server.close();
    },
  };
}

/** Updates that the page tells of; waits for more than `before`. */
export async function updatesAfter(page, before) {
  for (;;) {
    const text = await page.getByText(/^update \d+ of/).textContent();
    const updates = Number(/\d+/.exec(text)[0]);
    if (updates > before) return updates;
    await page.waitForTimeout(250);
  }
}
