/** A stand-in for the Hugging Face hub: its API for a model's commit, its files and their bytes. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The commit of every repository of the stand-in. */
export const COMMIT = "c0ffee".padEnd(40, "0");

/** What the stand-in does wrong. */
interface Faults {
  /** Status of every answer. */
  status?: number;
  /** Never answers. */
  hangs?: boolean;
  /** Ends bodies of this file after so many bytes, this often. */
  cut?: { path: string; after: number; times: number };
  /** Stops sending in the middle of this file, without ending. */
  stalls?: string;
  /** Sends other bytes of the same length for this file. */
  garbles?: string;
  /** Sends more bytes than it listed. */
  lengthens?: string;
  /** Answers ranges with the whole file. */
  ignoresRanges?: boolean;
}

/** A running stand-in. */
export interface HubStandIn {
  readonly endpoint: string;
  /** Addresses and ranges that were asked for. */
  readonly asked: { readonly url: string; readonly range: string | undefined }[];
  faults: Faults;
  close(): Promise<void>;
}

/** Starts a stand-in with the files of repositories; those over 1,000 bytes are as from LFS. */
export async function startHub(
  repos: Readonly<Record<string, Readonly<Record<string, Buffer>>>>,
): Promise<HubStandIn> {
  const hub: { faults: Faults } = { faults: {} };
  const asked: { url: string; range: string | undefined }[] = [];
  const server = createServer((request, reply) => {
    asked.push({ url: request.url!, range: request.headers.range });
    const { hangs, status } = hub.faults;
    if (hangs) return;
    if (status !== undefined) return void reply.writeHead(status).end("{}");
    const path = decodeURIComponent(new URL(request.url!, "http://hub").pathname);
    for (const [repo, files] of Object.entries(repos)) {
      if (path.startsWith(`/api/models/${repo}/revision/`))
        return path.endsWith("/none") ? missing(reply) : json(reply, { id: repo, sha: COMMIT });
      if (path.startsWith(`/api/models/${repo}/tree/`)) return json(reply, list(files));
      const name = path.replace(`/${repo}/resolve/${COMMIT}/`, "");
      if (files[name] !== undefined) return send(request, reply, name, files[name], hub.faults);
    }
    missing(reply);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(hub, {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

const missing = (reply: ServerResponse): void => void reply.writeHead(404).end("{}");

function json(reply: ServerResponse, value: unknown): void {
  reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}

function list(files: Readonly<Record<string, Buffer>>): unknown {
  return Object.entries(files).map(([path, bytes]) => {
    const entry = { type: "file", path, size: bytes.length, oid: gitId(bytes) };
    if (bytes.length <= 1000) return entry;
    const oid = createHash("sha256").update(bytes).digest("hex");
    return { ...entry, lfs: { oid, size: bytes.length, pointerSize: 130 } };
  });
}

const gitId = (bytes: Buffer): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

function send(
  request: IncomingMessage,
  reply: ServerResponse,
  path: string,
  bytes: Buffer,
  faults: Faults,
): void {
  const garbled = faults.garbles === path ? Buffer.alloc(bytes.length, 7) : bytes;
  const body = faults.lengthens === path ? Buffer.concat([garbled, garbled]) : garbled;
  const from = faults.ignoresRanges
    ? 0
    : Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const rest = body.subarray(from);
  reply.writeHead(from > 0 ? 206 : 200, { "content-length": rest.length });
  const { cut } = faults;
  if (cut?.path === path && cut.times > 0) {
    cut.times--;
    reply.write(rest.subarray(0, cut.after), () => setTimeout(() => reply.destroy(), 20));
  } else if (faults.stalls === path) reply.write(rest.subarray(0, 10));
  else reply.end(rest);
}
