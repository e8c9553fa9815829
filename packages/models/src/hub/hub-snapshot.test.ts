import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseHubName } from "../fetch-model.js";
import { fetchSnapshot, hubCacheFolder, type SnapshotOptions } from "./hub-snapshot.js";
import { COMMIT, type HubStandIn, startHub } from "./hub-testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-hub-"));
const weights = Buffer.from(Array.from({ length: 50_000 }, (_, i) => (i * 7) % 251));
const config = Buffer.from("{}");
let hub: HubStandIn;
beforeAll(async () => {
  hub = await startHub({
    "owner/model": { "config.json": config, "w.safetensors": weights, "evil.py": config },
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

const newCache = (): string => mkdtempSync(join(parent, "cache-"));

function fetching(cache: string, more: Partial<SnapshotOptions> = {}) {
  return fetchSnapshot({
    repo: "owner/model",
    revision: "main",
    endpoint: hub.endpoint,
    environment: { HF_HUB_CACHE: cache },
    choose: async () => ["config.json", "w.safetensors"],
    isComplete: async (folder) => existsSync(join(folder, "w.safetensors")),
    download: { pauseMs: 1, stallMs: 200 },
    ...more,
  });
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("expected a refusal"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UserError);
  return (error as Error).message.replaceAll(hub.endpoint, "HUB");
}

const root = (cache: string) => join(cache, "models--owner--model");
const blobs = (cache: string): string[] => readdirSync(join(root(cache), "blobs"));

describe("a snapshot", () => {
  it("is in the layout that Python shares", async () => {
    const cache = newCache();
    const { folder, commit } = await fetching(cache);
    expect(commit).toBe(COMMIT);
    expect(folder).toBe(join(root(cache), "snapshots", COMMIT));
    expect(readFileSync(join(folder, "w.safetensors")).equals(weights)).toBe(true);
    expect(readFileSync(join(root(cache), "refs", "main"), "utf8")).toBe(COMMIT);
    expect(readlinkSync(join(folder, "config.json"))).toMatch(/^..\/..\/blobs\/[0-9a-f]{40}$/);
    expect(readlinkSync(join(folder, "w.safetensors"))).toMatch(/^..\/..\/blobs\/[0-9a-f]{64}$/);
    // Only what was chosen.
    expect(readdirSync(folder).sort()).toEqual(["config.json", "w.safetensors"]);
    expect(hub.asked.some(({ url }) => url.includes("evil"))).toBe(false);
  });

  it("is not fetched twice; a commit needs no hub at all, a branch is asked for again", async () => {
    const cache = newCache();
    await fetching(cache);
    hub.asked.length = 0;
    await fetching(cache);
    expect(hub.asked.some(({ url }) => url.includes("/resolve/"))).toBe(false);
    expect(hub.asked).not.toHaveLength(0);
    hub.asked.length = 0;
    expect((await fetching(cache, { revision: COMMIT })).commit).toBe(COMMIT);
    expect(hub.asked).toHaveLength(0);
  });

  it("is used from before if the hub cannot be reached, and says so", async () => {
    const cache = newCache();
    const nowhere = { endpoint: "http://127.0.0.1:9" };
    expect(await refusal(fetching(cache, nowhere))).toMatch(
      /cannot reach http:\/\/127.0.0.1:9 .* Without network access, name a folder or a .gguf file/,
    );
    await fetching(cache);
    const notices: string[] = [];
    const onNotice = (text: string) => notices.push(text);
    expect((await fetching(cache, { ...nowhere, onNotice })).commit).toBe(COMMIT);
    expect(notices.join()).toMatch(/cannot reach .* Using the copy from before, commit c0ffee/);
    const offline = { HF_HUB_CACHE: cache, HF_HUB_OFFLINE: "1" };
    expect((await fetching(cache, { environment: offline })).commit).toBe(COMMIT);
    const empty = { HF_HUB_CACHE: newCache(), HF_HUB_OFFLINE: "1" };
    expect(await refusal(fetching(cache, { environment: empty }))).toMatch(
      /HF_HUB_OFFLINE forbids/,
    );
  });

  it("that does not exist, or may not be read, is named", async () => {
    const cache = newCache();
    expect(await refusal(fetching(cache, { repo: "owner/other" }))).toMatch(
      /there is no model owner\/other with the revision main at HUB \(status 404\)/,
    );
    expect(await refusal(fetching(cache, { revision: "none" }))).toMatch(/the revision none/);
    hub.faults = { status: 401 };
    expect(await refusal(fetching(cache))).toMatch(
      /no access to owner\/model \(status 401\).*Set HF_TOKEN/,
    );
    const environment = { HF_HUB_CACHE: cache, HF_TOKEN: "hf_secret" };
    const denied = await refusal(fetching(cache, { environment }));
    expect(denied).toMatch(/The key in HF_TOKEN may not read it/);
    expect(denied).not.toContain("hf_secret");
    hub.faults = { status: 503 };
    expect(await refusal(fetching(cache))).toMatch(/failed with status 503/);
    hub.faults = { hangs: true };
    expect(await refusal(fetching(cache, { answerMs: 50 }))).toMatch(/no answer within 0.05 s/);
  });

  it("whose download breaks is continued where it stopped", async () => {
    const cache = newCache();
    hub.faults = { cut: { path: "w.safetensors", after: 20_000, times: 2 } };
    const { folder } = await fetching(cache);
    expect(readFileSync(join(folder, "w.safetensors")).equals(weights)).toBe(true);
    const ranges = hub.asked.filter(({ url }) => url.includes("w.safe")).map(({ range }) => range);
    expect(ranges[0]).toBeUndefined();
    expect(ranges.slice(1)).toEqual(["bytes=20000-", "bytes=40000-"]);
  });

  it("whose process was killed is continued by the next one", async () => {
    const cache = newCache();
    await mkdir(join(root(cache), "blobs"), { recursive: true });
    const { createHash } = await import("node:crypto");
    const etag = createHash("sha256").update(weights).digest("hex");
    // No process has the largest id.
    const left = join(root(cache), "blobs", `${etag}.4194999.incomplete`);
    await writeFile(left, weights.subarray(0, 30_000));
    await fetching(cache);
    expect(hub.asked.some(({ range }) => range === "bytes=30000-")).toBe(true);
    expect(blobs(cache).some((name) => name.endsWith("incomplete"))).toBe(false);
  });

  it("of a server without ranges starts from the beginning", async () => {
    const cache = newCache();
    hub.faults = { cut: { path: "w.safetensors", after: 20_000, times: 1 }, ignoresRanges: true };
    const { folder } = await fetching(cache);
    expect(readFileSync(join(folder, "w.safetensors")).equals(weights)).toBe(true);
  });

  it("that is truncated, garbled or too long is never taken for whole", async () => {
    const cache = newCache();
    hub.faults = { cut: { path: "w.safetensors", after: 1000, times: 100 } };
    expect(await refusal(fetching(cache))).toMatch(/w.safetensors failed with .*Try again/);
    hub.faults = { garbles: "w.safetensors" };
    expect(await refusal(fetching(newCache()))).toMatch(
      /the hub states SHA-256 .* but the download has/,
    );
    hub.faults = { garbles: "config.json" };
    expect(await refusal(fetching(newCache()))).toMatch(/the hub states Git's checksum/);
    hub.faults = { lengthens: "w.safetensors" };
    expect(await refusal(fetching(newCache()))).toMatch(/expected 50000 bytes, but received more/);
    hub.faults = { stalls: "w.safetensors" };
    expect(await refusal(fetching(newCache()))).toMatch(/no bytes within 0.2 s/);
    expect(existsSync(join(root(cache), "snapshots", COMMIT, "w.safetensors"))).toBe(false);
    expect(existsSync(join(root(cache), "refs", "main"))).toBe(false);
    // The part that arrived is kept for the next attempt; a garbled one is not.
    expect(blobs(cache).filter((name) => name.endsWith("incomplete"))).toHaveLength(1);
    hub.faults = {};
    await fetching(cache);
    expect(blobs(cache).some((name) => name.endsWith("incomplete"))).toBe(false);
  });

  it("does not begin without room on the disk", async () => {
    const huge = await startHub({ "owner/model": { "config.json": config } });
    const more = {
      endpoint: huge.endpoint,
      choose: async (listed: readonly { path: string }[]) => {
        // As if the hub had listed a file of an exabyte.
        for (const file of listed) Object.assign(file, { size: 1e18 });
        return ["config.json"];
      },
    };
    expect(await refusal(fetching(newCache(), more))).toMatch(
      /no room for the files of owner\/model: it needs 1000000000.00 GB, but the disk of .* has/,
    );
    expect(huge.asked.some(({ url }) => url.includes("/resolve/"))).toBe(false);
    await huge.close();
  });
});

it("the cache is where Hugging Face's tools look for it", () => {
  expect(hubCacheFolder({ HF_HUB_CACHE: "/a", HF_HOME: "/b" })).toBe("/a");
  expect(hubCacheFolder({ HF_HOME: "/b", XDG_CACHE_HOME: "/c" })).toBe("/b/hub");
  expect(hubCacheFolder({ XDG_CACHE_HOME: "/c" })).toBe("/c/huggingface/hub");
});

it("a name of the hub has an owner, and perhaps a file and a revision", () => {
  expect(parseHubName("o/m")).toEqual({ repo: "o/m", revision: "main" });
  expect(parseHubName("o/m@v1.0")).toEqual({ repo: "o/m", revision: "v1.0" });
  expect(parseHubName("o/m/q/f.gguf@refs/pr/1")).toEqual({
    repo: "o/m",
    file: "q/f.gguf",
    revision: "refs/pr/1",
  });
  for (const name of ["m", "./o/m", "/o/m", "../m", "o/m/../x", "o//m", "o/m@", "o m/x", "~/m"])
    expect(parseHubName(name), name).toBeUndefined();
});
