/** The documentation site in a real browser; skipped without Chromium or `npm run docs:build`. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const site = join("docs", ".vitepress", "dist");
const browser = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

describe.skipIf(browser === undefined || !existsSync(site))(
  "the built site (skipped without it or Chromium)",
  () => {
    const types: Readonly<Record<string, string>> = {
      ".html": "text/html",
      ".js": "text/javascript",
      ".css": "text/css",
      ".svg": "image/svg+xml",
    };
    const missing: string[] = [];
    const server = createServer((request, response) => {
      const path = join(site, new URL(request.url!, "http://localhost").pathname);
      const file = path.endsWith("/") ? join(path, "index.html") : path;
      if (!existsSync(file)) {
        missing.push(request.url!);
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, {
        "content-type": types[extname(file)] ?? "application/octet-stream",
      });
      response.end(readFileSync(file));
    });
    let address = "";
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });
    afterAll(() => server.close());

    /** The page after its scripts have run, and its console output. */
    async function open(page: string): Promise<{ dom: string; console: readonly string[] }> {
      const flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
      ];
      const child = spawn(browser!, [
        ...flags,
        "--enable-logging=stderr",
        "--virtual-time-budget=5000",
        `--user-data-dir=${mkdtempSync(join(tmpdir(), "pawl-chromium-"))}`,
        "--dump-dom",
        `${address}/${page}`,
      ]);
      const output = { stdout: "", stderr: "" };
      child.stdout.on("data", (data) => {
        output.stdout += data;
      });
      child.stderr.on("data", (data) => {
        output.stderr += data;
      });
      await new Promise((resolve) => child.on("close", resolve));
      const console = output.stderr.split("\n").filter((line) => /CONSOLE/.test(line));
      return { dom: output.stdout, console };
    }

    it.each([
      ["index.html", "Pawl's documents"],
      ["reference/commands.html", "Commands and settings"],
    ])("shows %s without an error, and nothing is missing", async (page, title) => {
      const { dom, console } = await open(page);
      expect(dom).toMatch(new RegExp(`<h1[^>]*>${title}`));
      // Hydration worked: only then is there a search button.
      expect(dom).toContain("DocSearch-Button");
      expect(dom).toContain("Your first agent");
      expect(console).toEqual([]);
      expect(missing).toEqual([]);
    });

    it("loads nothing from elsewhere", () => {
      const pages = readdirSync(site, { recursive: true, encoding: "utf8" });
      const from = pages
        .filter((file) => /\.(html|css)$/.test(file))
        .flatMap((file) => [
          ...readFileSync(join(site, file), "utf8").matchAll(
            /(?:<(?:script|img|iframe|source)[^>]*\ssrc=|<link[^>]*\shref=|url\()["']?(https?:\/\/[^"')\s>]+)/g,
          ),
        ]);
      expect(from.map(([, url]) => url)).toEqual([]);
    });
  },
);
