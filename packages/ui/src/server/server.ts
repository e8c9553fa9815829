/**
 * The server of `pawl ui`. It reads run folders and nothing else, answers only under the key, and
 * needs no framework: a dozen addresses, as our other servers have them.
 */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { addressOf, CLIENT_TIMES, HttpError, sendJson } from "@pawl/core/http/http-server.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import { packageVersion } from "@pawl/core/version.js";
import type { Recipe } from "../report/run-groups.js";
import { BUNDLE, readBundle } from "../report/static-page.js";
import type { Session } from "./api.js";
import { filterEpisodes, parseFilter } from "./episode-filter.js";
import { type EpisodeIndex, openEpisodeIndex } from "./episode-index.js";
import { moreText, viewEpisode, viewGroup } from "./episode-view.js";
import { findEvidence } from "./evidence.js";
import { createPulse, MOST_LISTENERS, streamRun, streamRuns } from "./live.js";
import { metricsTable } from "./metrics-table.js";
import { runDetail } from "./run-detail.js";
import { createRunReader } from "./run-rows.js";
import { checkFile, pathInside } from "./safe-path.js";

/** A key that nobody guesses. */
export const randomKey = (): string => randomBytes(16).toString("base64url");

/** The path behind `/KEY/`, or undefined if the key is not there. */
function pathBehindKey(path: string, key: string): string | undefined {
  const [, given = "", ...rest] = path.split("/");
  return timingSafeEqual(digest(given), digest(key)) && path.length > given.length + 1
    ? rest.join("/")
    : undefined;
}

/** Equal lengths, so that comparing takes the same time for every text. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Nothing but the page's own files; no frames, no forms, no other addresses. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** What to show, and to whom. */
export interface UiOptions {
  readonly folder: string;
  readonly key: string;
  /** The settings of a run's recipe, if it has one. */
  readonly recipeOf?: (manifest: Manifest) => Recipe | undefined;
  /** Answers requests below `play/`; without it pages can only read. */
  readonly play?: PlayHandler;
  /** Called with errors that are not the page's fault. */
  readonly onFault?: (error: unknown) => void;
}

/** Answers what only `--play` allows. */
type PlayHandler = (
  path: string,
  asked: IncomingMessage,
  indexOf: (run: string) => EpisodeIndex,
) => Promise<unknown>;

/** Indexes that are kept in memory. */
const MOST_INDEXES = 4;
const MOST_CONNECTIONS = 512;
/** How long a page waits for the index; then it is shown what there is. */
const PATIENCE_MS = 400;

interface Asked {
  readonly request: IncomingMessage;
  readonly reply: ServerResponse;
  readonly query: Readonly<Record<string, string>>;
}

/** Makes the server; the caller listens. */
export function createUiServer(options: UiOptions): Server {
  const { folder: root, key, play } = options;
  const reader = createRunReader(root);
  const pulse = createPulse();
  const indexes = new Map<string, EpisodeIndex>();
  let listeners = 0;

  const indexOf = (id: string): EpisodeIndex => {
    const folder = pathInside(root, id);
    checkFile(root, id, "episodes.jsonl.gz");
    const index = indexes.get(folder) ?? openEpisodeIndex(folder);
    indexes.delete(folder);
    indexes.set(folder, index);
    for (const old of [...indexes.keys()].slice(0, -MOST_INDEXES)) indexes.delete(old);
    return index;
  };
  const routes: Readonly<Record<string, (asked: Asked) => unknown>> = {
    session: (): Session => ({
      version: packageVersion(),
      folder: root,
      play: play !== undefined,
    }),
    runs: () => reader.list(),
    run({ query }) {
      const id = textOf(query, "run");
      const manifest = reader.manifest(id);
      const recipe = options.recipeOf?.(manifest);
      // As the folder was named, so that commands can be copied as they are.
      return runDetail(join(root, id), reader.row(id), manifest, recipe);
    },
    metrics({ query }) {
      const id = textOf(query, "run");
      const folder = pathInside(root, id);
      for (const name of ["metrics.jsonl", "metrics.crc32"]) checkFile(root, id, name);
      return metricsTable(folder, query.names?.split(",").filter(Boolean));
    },
    async episodes({ query }) {
      const { run = "", ...filter } = query;
      const parsed = parseFilter(filter);
      const index = indexOf(run);
      await index.refresh(PATIENCE_MS);
      return filterEpisodes(index, parsed);
    },
    episode({ query }) {
      const run = textOf(query, "run");
      return viewEpisode(pathInside(root, run), indexOf(run), textOf(query, "id"));
    },
    group({ query }) {
      const run = textOf(query, "run");
      return viewGroup(pathInside(root, run), indexOf(run), textOf(query, "id"));
    },
    text({ query }) {
      const run = textOf(query, "run");
      return moreText(pathInside(root, run), indexOf(run), {
        id: textOf(query, "id"),
        field: textOf(query, "field"),
        step: wholeOf(query, "step", -1),
        from: wholeOf(query, "from", 0),
      });
    },
    evidence: () => findEvidence(root),
    live({ request, reply, query }) {
      if (listeners >= MOST_LISTENERS)
        throw new HttpError(503, `${MOST_LISTENERS} pages listen already: close some of them`);
      listeners += 1;
      request.on("close", () => {
        listeners -= 1;
      });
      if (query.run === undefined) streamRuns(request, reply, pulse, reader);
      else {
        const id = query.run;
        const check = (): void => {
          for (const name of ["metrics.jsonl", "metrics.crc32", "alarms.jsonl"])
            checkFile(root, id, name);
        };
        const from = wholeOf(query, "from", 0);
        streamRun(request, reply, pulse, { root, reader, id, check, from });
      }
      return undefined;
    },
  };

  const answer = async (request: IncomingMessage, reply: ServerResponse): Promise<void> => {
    const [address, query] = addressOf(request);
    const path = pathBehindKey(address, key);
    if (path === undefined)
      throw new HttpError(403, "the key is missing: open the address that pawl ui printed");
    if (path.startsWith("api/play/")) {
      if (play === undefined)
        throw new HttpError(403, "this page only reads: start it with pawl ui --play");
      const answered = await play(path.slice("api/play/".length), request, indexOf);
      sendJson(reply, 200, answered, SECURITY_HEADERS);
      return;
    }
    if (request.method !== "GET" && request.method !== "HEAD")
      throw new HttpError(405, "this address is read with GET");
    if (path === "" || path === BUNDLE.script || path === BUNDLE.style) {
      sendFile(reply, path);
      return;
    }
    const name = path.slice("api/".length);
    if (!path.startsWith("api/") || !Object.hasOwn(routes, name))
      throw new HttpError(404, "there is nothing at this address");
    const given = Object.fromEntries(new URLSearchParams(query));
    const body = await routes[name]!({ request, reply, query: given });
    if (body !== undefined) sendJson(reply, 200, body, SECURITY_HEADERS);
  };

  const server = createServer(CLIENT_TIMES, (request, reply) => {
    answer(request, reply).catch((error: unknown) => {
      const status =
        error instanceof HttpError ? error.status : error instanceof UserError ? 422 : 500;
      if (status === 500) options.onFault?.(error);
      if (reply.headersSent) reply.end();
      else sendJson(reply, status, { error: (error as Error).message }, SECURITY_HEADERS);
    });
  });
  server.maxConnections = MOST_CONNECTIONS;
  return server;
}

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Pawl</title><link rel="icon" href="data:,"><link rel="stylesheet" href="${BUNDLE.style}"></head>
<body><div id="page"><p class="waiting">Loading…</p></div><script type="module" src="${BUNDLE.script}"></script>
<noscript>This page needs JavaScript; pawl runs and pawl show print the same in a terminal.</noscript></body></html>
`;

function sendFile(reply: ServerResponse, path: string): void {
  const [type, content] =
    path === BUNDLE.script
      ? ["text/javascript", readBundle(BUNDLE.script)]
      : path === BUNDLE.style
        ? ["text/css", readBundle(BUNDLE.style)]
        : ["text/html", PAGE];
  reply.writeHead(200, { "content-type": `${type}; charset=utf-8`, ...SECURITY_HEADERS });
  reply.end(content);
}

function textOf(query: Readonly<Record<string, string>>, name: string): string {
  const value = query[name];
  if (value === undefined) throw new HttpError(400, `the address lacks ${name}=`);
  return value;
}

function wholeOf(query: Readonly<Record<string, string>>, name: string, missing: number): number {
  const value = Number(query[name] ?? missing);
  if (!Number.isInteger(value) || value < -1)
    throw new HttpError(400, `${name}: expected a whole number, got ${query[name]}`);
  return value;
}
