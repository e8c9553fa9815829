import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openFile } from "./open-file.js";

it.skipIf(process.platform !== "linux")(
  "gives the file to the desktop's opener, and says if there is none",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-open-"));
    const opener = join(folder, "xdg-open");
    const opened = join(folder, "opened");
    writeFileSync(opener, `#!/bin/sh\necho "$1" > ${opened}\n`);
    chmodSync(opener, 0o755);
    expect(await openFile("report.html", { PATH: `${folder}:/usr/bin:/bin` })).toBe(true);
    await vi.waitUntil(() => existsSync(opened) && readFileSync(opened, "utf8") !== "", {
      timeout: 60_000,
    });
    expect(readFileSync(opened, "utf8")).toBe(`${join(process.cwd(), "report.html")}\n`);
    expect(await openFile("report.html", { PATH: join(folder, "empty") })).toBe(false);
  },
);
