/**
 * Downloads one file. An interrupted download is continued where it stopped; the file gets its name
 * only if its size and checksum are those that were stated.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";
import { UserError } from "@pawl/core/errors.js";
import { writeFully } from "@pawl/core/files/atomic-file.js";
import { openRegularHandle } from "@pawl/core/files/regular-file.js";
import { networkReason } from "@pawl/core/http/http-client.js";
import { isAlive } from "@pawl/core/processes/process-alive.js";

/** From this size on, a download says how far it is. */
const LARGE = 10e6;

/** Says how far a large download is, in steps of a tenth. */
export function progress(
  what: string,
  size: number,
  onNotice: ((message: string) => void) | undefined,
): (bytes: number) => void {
  let last = -1;
  return (bytes) => {
    const tenths = Math.floor((10 * bytes) / size);
    if (size < LARGE || tenths <= last) return;
    last = tenths;
    onNotice?.(`${what}: ${(bytes / 1e6).toFixed(0)} of ${(size / 1e6).toFixed(0)} MB`);
  };
}

/** Maximum wait for an answer to begin. */
const ANSWER_MS = 30_000;

/** How long to wait, and what to say. */
export interface AnswerOptions {
  /** What to do without network access, for errors. */
  readonly offline: string;
  readonly answerMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A server cannot be reached at all: no network, a firewall, a server that hangs. */
export class Unreachable extends UserError {
  override readonly name = "Unreachable";
}

/** The answer of the server at `endpoint`; only its beginning is subject to a time limit. */
export async function answerOf(
  endpoint: string,
  { offline, answerMs = ANSWER_MS, signal }: AnswerOptions,
  ...[input, init]: Parameters<typeof fetch>
): Promise<Response> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), answerMs);
  try {
    return await fetch(input, {
      ...init,
      signal:
        signal === undefined ? controller.signal : AbortSignal.any([controller.signal, signal]),
    });
  } catch (error) {
    signal?.throwIfAborted();
    const reason = controller.signal.aborted
      ? `no answer within ${answerMs / 1000} s`
      : networkReason(error).text;
    throw new Unreachable(
      `cannot reach ${new URL(endpoint).origin} (${reason}). Without network access, ${offline}.`,
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
}

/** The status of a failed request, if the server answered. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
}

/** Where a file comes from. */
export interface DownloadSource {
  readonly url: string;
  /** Who states its size and checksum, for errors. */
  readonly by: string;
  /** Asks for it, with the header of a range or none. */
  get(range: Readonly<Record<string, string>>): Promise<Response>;
  /** The error to show for a failed request. */
  failure(error: unknown): UserError;
}

/** What is stated about a file beforehand. */
export interface StatedFile {
  readonly size: number;
  /** SHA-256 of a large file, Git's object id of a small one, or another tag, which is not checked. */
  readonly etag: string;
}

/** How to download. */
export interface DownloadOptions {
  /** Bytes received, including those of an earlier attempt. */
  readonly onBytes?: (bytes: number) => void;
  /** Maximum wait between two pieces of a body. Default 60 s. */
  readonly stallMs?: number;
  /** The pause before a download that broke is continued; it doubles each time. Default 0.5 s. */
  readonly pauseMs?: number;
}

/** How often a download that broke is continued. */
const RETRIES = 2;

/** Downloads a file to a path; it appears there when it is complete and as stated. */
export async function download(
  source: DownloadSource,
  target: string,
  stated: StatedFile,
  options: DownloadOptions = {},
): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const part = await ownPart(target);
  for (let tries = 0; ; tries++) {
    try {
      await receive(source, part, stated, options);
      break;
    } catch (error) {
      // The server's own answers and a broken checksum stay what they are; a broken line may not.
      const again = statusOf(error) === undefined && !(error instanceof UserError);
      if (!again || tries >= RETRIES) throw source.failure(error);
      await wait((options.pauseMs ?? 500) * 2 ** tries);
    }
  }
  await verify(part, source, stated);
  await rename(part, target);
}

/**
 * The unfinished file of this process. One that another process left behind when it ended is taken
 * over, so that its bytes need not be fetched again.
 */
async function ownPart(target: string): Promise<string> {
  const own = `${target}.${process.pid}.incomplete`;
  for (const name of await readdir(dirname(target))) {
    const id = /^(.*)\.(\d+)\.incomplete$/.exec(name);
    if (id?.[1] !== basename(target) || isAlive(Number(id[2]))) continue;
    // A rename succeeds for one process only.
    await rename(join(dirname(target), name), own).catch(() => undefined);
  }
  return own;
}

async function receive(
  source: DownloadSource,
  part: string,
  stated: StatedFile,
  { onBytes, stallMs = 60_000 }: DownloadOptions,
): Promise<void> {
  const there = (await stat(part).catch(() => undefined))?.size ?? 0;
  if (there === stated.size) return;
  // More than the whole file is the beginning of another one.
  const from = there < stated.size ? there : 0;
  const response = await source.get(from > 0 ? { range: `bytes=${from}-` } : {});
  if (!response.ok) {
    await response.body?.cancel();
    throw Object.assign(new Error("refused"), { statusCode: response.status });
  }
  // A server that ignores ranges sends the file from its beginning.
  const continued = from > 0 && response.status === 206;
  const handle = await open(part, continued ? "a" : "w");
  let size = continued ? from : 0;
  try {
    for await (const chunk of withoutStalls(response, stallMs)) {
      size += chunk.length;
      if (size > stated.size) break;
      await writeFully(handle, chunk);
      onBytes?.(size);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  // A shorter body may be continued; a longer one is that of another file.
  if (size < stated.size)
    throw new Error(`an early end: expected ${stated.size} bytes, but received ${size}`);
  if (size > stated.size) {
    await rm(part, { force: true });
    throw new UserError(
      `${source.url}: expected ${stated.size} bytes, but received more. Try again.`,
    );
  }
}

async function* withoutStalls(response: Response, stallMs: number): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no bytes within ${stallMs / 1000} s`)), stallMs);
      });
      try {
        const { done, value } = await Promise.race([reader.read(), late]);
        if (done) return;
        yield value;
      } finally {
        clearTimeout(timer);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function verify(
  part: string,
  { url, by }: DownloadSource,
  { size, etag }: StatedFile,
): Promise<void> {
  const hash = hashFor(etag, size);
  if (hash === undefined) return;
  await pipeline(createReadStream(part), hash);
  const found = hash.digest("hex");
  if (found === etag) return;
  await rm(part, { force: true });
  throw new UserError(
    `${url}: ${by} states ${etag.length === 64 ? "SHA-256" : "Git's checksum"} ${etag}, but the download has ${found}. Try again.`,
  );
}

/** What a tag is a checksum of: SHA-256, or Git's SHA-1 with its header. */
function hashFor(etag: string, size: number): Hash | undefined {
  if (/^[0-9a-f]{64}$/.test(etag)) return createHash("sha256");
  if (/^[0-9a-f]{40}$/.test(etag)) return createHash("sha1").update(`blob ${size}\0`);
  return undefined;
}

/** The SHA-256 of a file, in hexadecimal. */
export async function sha256File(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline((await openRegularHandle(path)).createReadStream(), hash);
  return hash.digest("hex");
}

/**
 * Checks files in a folder against their checksums; the first difference is an error that names
 * both.
 */
export async function verifyFiles(
  folder: string,
  checksums: Readonly<Record<string, string>>,
  remedy: string,
): Promise<void> {
  for (const [name, expected] of Object.entries(checksums)) {
    const path = join(folder, name);
    const found = await sha256File(path).catch((error: NodeJS.ErrnoException) => {
      throw new UserError(`${path}: cannot be read (${error.message}). ${remedy}`, {
        cause: error,
      });
    });
    if (found !== expected) {
      throw new UserError(
        `${path}: expected SHA-256 ${expected}, found ${found}: the file is damaged or a different one. ${remedy}`,
      );
    }
  }
}
