/**
 * A stand-in for the part of the Hugging Face hub that takes uploads: repositories are made, large
 * files go to a store of their own, and a commit names them. Written from the calls that
 * `@huggingface/hub` makes; the hub itself checks more.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Files of at least this many bytes are large. */
const LARGE = 2000;

/** A running stand-in. */
export interface UploadStandIn {
  readonly endpoint: string;
  /** The files of each repository, after its commits. */
  readonly repos: ReadonlyMap<string, Map<string, Buffer>>;
  readonly made: { readonly name: string; readonly visibility: string }[];
  readonly commits: string[];
  /** Status of answers to the call whose address contains this. */
  fault?: { readonly call: string; readonly status: number };
  close(): Promise<void>;
}

/** Starts a stand-in that lets this key write; repositories in `existing` are there already. */
export async function startUploadHub(
  key: string,
  existing: readonly string[] = [],
): Promise<UploadStandIn> {
  const repos = new Map(existing.map((name) => [name, new Map<string, Buffer>()]));
  const store = new Map<string, Buffer>();
  const state: Pick<UploadStandIn, "made" | "commits" | "fault"> = { made: [], commits: [] };
  const server = createServer(async (request, reply) => {
    const body = await bodyOf(request);
    const path = decodeURIComponent(new URL(request.url!, "http://hub").pathname);
    const { fault } = state;
    if (fault !== undefined && path.includes(fault.call))
      return json(reply, { error: `refused: ${request.headers.authorization}` }, fault.status);
    if (path.startsWith("/store/")) {
      const oid = path.slice("/store/".length);
      if (createHash("sha256").update(body).digest("hex") !== oid) return json(reply, {}, 400);
      store.set(oid, body);
      return json(reply, {});
    }
    if (request.headers.authorization !== `Bearer ${key}`)
      return json(reply, { error: "unauthorized" }, 401);
    if (path === "/api/repos/create") {
      const { name, organization, visibility } = JSON.parse(String(body));
      const repo = `${organization}/${name}`;
      if (repos.has(repo)) return json(reply, { error: "You already created this" }, 409);
      repos.set(repo, new Map());
      state.made.push({ name: repo, visibility });
      return json(reply, { url: `http://hub/${repo}`, id: repo });
    }
    const preupload = /^\/api\/models\/(.+)\/preupload\/main$/.exec(path);
    if (preupload !== null) {
      const { files } = JSON.parse(String(body)) as { files: { path: string; size: number }[] };
      return json(reply, {
        files: files.map((file) => ({
          path: file.path,
          uploadMode: file.size >= LARGE ? "lfs" : "regular",
        })),
      });
    }
    if (path.endsWith(".git/info/lfs/objects/batch")) {
      const { objects } = JSON.parse(String(body)) as { objects: { oid: string; size: number }[] };
      const { port } = server.address() as AddressInfo;
      return json(reply, {
        transfer: "basic",
        objects: objects.map(({ oid, size }) => ({
          ...{ oid, size },
          actions: { upload: { href: `http://127.0.0.1:${port}/store/${oid}` } },
        })),
      });
    }
    const commit = /^\/api\/models\/(.+)\/commit\/main$/.exec(path);
    const files = commit === null ? undefined : repos.get(commit[1]!);
    if (files === undefined) return json(reply, { error: "not found" }, 404);
    for (const line of String(body).split("\n")) {
      const { key: kind, value } = JSON.parse(line);
      if (kind === "header") state.commits.push(value.summary);
      else if (kind === "file") files.set(value.path, Buffer.from(value.content, "base64"));
      else if (kind === "lfsFile") {
        const bytes = store.get(value.oid);
        if (bytes === undefined) return json(reply, { error: `no object ${value.oid}` }, 400);
        files.set(value.path, bytes);
      }
    }
    return json(reply, { commitOid: "c0ffee", commitUrl: "http://hub/commit", hookOutput: "" });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(state, {
    repos,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function json(reply: ServerResponse, value: unknown, status = 200): void {
  reply.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
