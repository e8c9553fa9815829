import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownIdentity, type ProcessIdentity, tagOf } from "@pawl/core/processes/process-alive.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fetchModel, isFetched } from "./fetch-model.js";
import { readGgufModel, writeGgufModel } from "./gguf/gguf-convert.js";
import { openGguf } from "./gguf/gguf-file.js";
import { ggufBytes, tinyModel, writeGguf } from "./gguf/gguf-testing.js";
import { COMMIT, type HubStandIn, startHub } from "./hub/hub-testing.js";
import { openCheckpoint } from "./weights/checkpoint.js";
import { shardCheckpoint } from "./weights/shards-testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-models-"));
const newFolder = (): string => mkdtempSync(join(parent, "folder-"));
const gguf = join(parent, "tiny.gguf");
let hub: HubStandIn;

const filesOf = (folder: string): Record<string, Buffer> =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));

beforeAll(async () => {
  const { metadata, tensors } = tinyModel();
  writeGguf(gguf, metadata, tensors);
  const whole = newFolder();
  await writeGgufModel(await readGgufModel(openGguf(gguf)), whole);
  const sharded = newFolder();
  await writeGgufModel(await readGgufModel(openGguf(gguf)), sharded);
  await shardCheckpoint(sharded);
  const { "tokenizer.json": tokenizer, ...untokenized } = filesOf(whole);
  const { "model.safetensors": weights, ...bare } = filesOf(whole);
  hub = await startHub({
    "o/whole": {
      ...filesOf(whole),
      "modeling.py": Buffer.from("evil"),
      "pytorch_model.bin": weights!,
    },
    "o/sharded": filesOf(sharded),
    "o/untokenized": untokenized,
    "o/pickle": { ...bare, "pytorch_model.bin": tokenizer! },
    "o/quants": { "a.Q4.gguf": ggufBytes(metadata, tensors), "README.md": Buffer.from("#") },
  });
});
afterEach(() => {
  hub.faults = {};
  hub.asked.length = 0;
});
afterAll(async () => {
  await hub.close();
  rmSync(parent, { recursive: true });
});

const fetching = (name: string, root: string, notices: string[] = []) =>
  fetchModel(name, {
    environment: { HF_ENDPOINT: hub.endpoint, HF_HOME: root, XDG_CACHE_HOME: root },
    onNotice: (text) => notices.push(text),
  });

describe("a GGUF file by its name", () => {
  it("is converted once, by its content", async () => {
    const root = newFolder();
    const notices: string[] = [];
    const first = await fetching(gguf, root, notices);
    expect(first!.folder).toMatch(/pawl\/models\/tiny-[0-9a-f]{16}-1$/);
    expect(first!.origin).toEqual({
      model: gguf,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(notices.join()).toMatch(/^converting .*tiny.gguf to 32-bit weights \(0 MB\) in /);
    const { mtimeMs } = statSync(join(first!.folder, "config.json"));
    const copy = join(parent, "copy", "tiny.gguf");
    mkdirSync(join(parent, "copy"), { recursive: true });
    writeFileSync(copy, readFileSync(gguf));
    expect((await fetching(copy, root, notices))!.folder).toBe(first!.folder);
    expect(notices).toHaveLength(1);
    expect(statSync(join(first!.folder, "config.json")).mtimeMs).toBe(mtimeMs);
  });

  it("that breaks while it is converted leaves nothing behind", async () => {
    const root = newFolder();
    const { metadata, tensors } = tinyModel();
    const last = new Float32Array(tensors.at(-1)!.data.buffer);
    last[0] = Number.POSITIVE_INFINITY;
    const broken = join(parent, "broken.gguf");
    writeGguf(broken, metadata, tensors);
    await expect(fetching(broken, root)).rejects.toThrow(/output_norm.weight holds NaN or infin/);
    expect(readdirSync(join(root, "pawl", "models"))).toEqual([]);
  });

  it("what a killed process left behind is removed", async () => {
    const root = newFolder();
    const { folder } = (await fetching(gguf, root))!;
    rmSync(folder, { recursive: true });
    const own = ownIdentity();
    const left = (writer: Partial<ProcessIdentity>) =>
      mkdirSync(`${folder}.${tagOf({ ...own, ...writer })}.0123abcd.partial`);
    left({ pid: 4194999 });
    left({});
    await fetching(gguf, root);
    expect(readdirSync(join(root, "pawl", "models"))).toHaveLength(2);
  });
});

describe("a model of the hub", () => {
  it("is fetched with its tokenizer and without code or pickle", async () => {
    const root = newFolder();
    const found = (await fetching("o/whole", root))!;
    expect(found.origin).toEqual({ model: "o/whole", revision: COMMIT });
    expect((await openCheckpoint(found.folder)).config.layers).toBe(2);
    expect((await loadTokenizer(found.folder)).hasChatTemplate).toBe(true);
    expect(readdirSync(found.folder).sort()).toEqual([
      "config.json",
      "generation_config.json",
      "model.safetensors",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
    expect(hub.asked.filter(({ url }) => /evil|\.py|\.bin/.test(url))).toEqual([]);
    expect((await fetching("o/whole@v2", root))!.folder).toBe(found.folder);
  });

  it("may be sharded: the files that its index names are fetched", async () => {
    const root = newFolder();
    const { folder } = (await fetching("o/sharded", root))!;
    const { tensors, read } = await openCheckpoint(folder);
    for (const { name } of tensors) await read(name);
    expect(readdirSync(folder).filter((name) => name.endsWith(".safetensors"))).toHaveLength(3);
    // A shard that is missing makes the copy incomplete, so that the hub is asked again.
    rmSync(join(folder, "model-00002-of-00003.safetensors"));
    await expect(
      fetchModel("o/sharded", { environment: { HF_HOME: root, HF_HUB_OFFLINE: "1" } }),
    ).rejects.toThrow(/HF_HUB_OFFLINE forbids/);
    await fetching("o/sharded", root);
    expect(readdirSync(folder).filter((name) => name.endsWith(".safetensors"))).toHaveLength(3);
  });

  it("may be one GGUF file of a repository", async () => {
    const root = newFolder();
    await expect(fetching("o/quants", root)).rejects.toThrow(
      /o\/quants is not in Hugging Face's layout, but has GGUF files: name one .* o\/quants\/a.Q4.gguf/,
    );
    const found = (await fetching("o/quants/a.Q4.gguf", root))!;
    expect(found.origin).toMatchObject({ model: "o/quants/a.Q4.gguf", revision: COMMIT });
    expect((await openCheckpoint(found.folder)).config.layers).toBe(2);
    await expect(fetching("o/quants/b.gguf", root)).rejects.toThrow(/has no b.gguf; it has a.Q4/);
    await expect(fetching("o/whole/config.json", root)).rejects.toThrow(/only a .gguf file can be/);
  });

  it("is refused before its weights are fetched if it cannot be used", async () => {
    const root = newFolder();
    await expect(fetching("o/untokenized", root)).rejects.toThrow(/has no tokenizer.json$/);
    await expect(fetching("o/pickle", root)).rejects.toThrow(/are pickle files.*are not loaded/);
    expect(hub.asked.some(({ url }) => url.includes("/resolve/"))).toBe(false);
  });
});

it("names of folders are left alone", async () => {
  const folder = newFolder();
  for (const name of [folder, "tiny", "./o/m", join(folder, "no.gguf"), "packages/nothing"]) {
    expect(isFetched(name), name).toBe(false);
    expect(await fetching(name, folder), name).toBeUndefined();
  }
  expect(isFetched("o/m")).toBe(true);
  expect(isFetched(gguf)).toBe(true);
});

const python = process.env.PAWL_PYTHON ?? "python3";
const shares = spawnSync(python, ["-c", "import huggingface_hub"]).status === 0;
if (!shares) console.warn(`no huggingface_hub in ${python}: sharing its cache is not checked`);
it.skipIf(!shares)("Python finds in its cache what was fetched", async () => {
  const root = newFolder();
  const { folder } = (await fetching("o/whole", root))!;
  const script =
    "import huggingface_hub as h; print(h.snapshot_download('o/whole', local_files_only=True))";
  const ran = spawnSync(python, ["-c", script], {
    env: { ...process.env, HF_HOME: root, HF_HUB_OFFLINE: "1", HF_HUB_CACHE: join(root, "hub") },
    encoding: "utf8",
  });
  expect(ran.stdout.trim(), ran.stderr).toBe(folder);
});
