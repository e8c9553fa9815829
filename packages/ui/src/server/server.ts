/**
 * The server of `pawl ui`. It reads run folders and nothing else, answers only under the key, and
 * needs no framework: a dozen addresses, as our other servers have them.
 */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Dirent, readdirSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { addressOf, CLIENT_TIMES, HttpError, sendJson } from "@pawl/core/http/http-server.js";
import { shellQuoted } from "@pawl/core/plain-text.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import { findLock } from "@pawl/core/runs/run-lock.js";
import { packageVersion } from "@pawl/core/version.js";
import { type Recipe, settingRows } from "../report/run-groups.js";
import { BUNDLE, readBundle } from "../report/static-page.js";
import type { EvidenceFile, RunDetail, RunRow, Session, Trial } from "./api.js";
import { filterEpisodes, parseFilter } from "./episode-filter.js";
import { type EpisodeIndex, openEpisodeIndex } from "./episode-index.js";
import { moreText, viewEpisode, viewGroup } from "./episode-view.js";
import { createPulse, MOST_LISTENERS, streamRun, streamRuns } from "./live.js";
import { metricsTable } from "./metrics-table.js";
import { createRunReader } from "./run-rows.js";
import { checkFile, pathInside } from "./safe-path.js";

// Results that `pawl wm eval …` and `pawl eval` wrote to JSON files below the folder.

const DEEPEST = 4;
const MOST_FILES = 2_000;
/** A larger file is not a result of ours. */
const MOST_BYTES = 2 ** 26;
/** Parts of runs that are many, and never results. */
const SKIPPED = /^\.|^node_modules$|^checkpoints$|^reference$|^tokenizer$|^tensorboard$/;
const NOT_RESULTS = /^(manifest|package|package-lock|tsconfig|config|tokenizer|state)\.json$/;

/** The results below a folder, newest first. */
function findEvidence(root: string): readonly EvidenceFile[] {
  const found: EvidenceFile[] = [];
  let looked = 0;
  const visit = (path: string, depth: number): void => {
    for (const entry of entriesOf(join(root, path))) {
      const below = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (depth < DEEPEST && !SKIPPED.test(entry.name)) visit(below, depth + 1);
      } else if (entry.isFile() && entry.name.endsWith(".json") && !NOT_RESULTS.test(entry.name)) {
        if (++looked > MOST_FILES) return;
        const read = readEvidence(root, below);
        if (read !== undefined) found.push(read);
      }
    }
  };
  visit("", 0);
  return found.sort((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? 1 : -1));
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function readEvidence(root: string, path: string): EvidenceFile | undefined {
  try {
    const file = pathInside(root, path);
    if (statSync(file).size > MOST_BYTES) return undefined;
    const content: unknown = JSON.parse(readRegularText(file));
    if (typeof content !== "object" || content === null || Array.isArray(content)) return undefined;
    const fields = content as Readonly<Record<string, unknown>>;
    const kind = kindOf(fields);
    if (kind === undefined) return undefined;
    const { createdAt } = fields;
    return {
      path,
      kind,
      createdAt: typeof createdAt === "string" ? createdAt : null,
      content: fields,
    };
  } catch {
    // Removed since, or not JSON.
    return undefined;
  }
}

function kindOf(content: Readonly<Record<string, unknown>>): EvidenceFile["kind"] | undefined {
  if (isTable(content.all) && isTable(content.byDepth)) return "fidelity";
  if (Array.isArray(content.policies) && isTable(content.cases)) return "consistency";
  if (content.kind === "pawl-evaluation" && isTable(content.results)) return "card";
  return undefined;
}

const isTable = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Commands whose runs can be resumed. */
const RESUMABLE: ReadonlyMap<string, string> = new Map([
  ["train", "train"],
  ["rwml", "rwml"],
  ["wm-train", "wm train"],
]);

/** A run in full. */
export function runDetail(
  folder: string,
  row: RunRow,
  manifest: Manifest,
  recipe: Recipe | undefined,
): RunDetail {
  return {
    row,
    folder,
    error: manifest.error ?? null,
    versions: manifest.versions,
    recipe: recipe?.name ?? null,
    settings: settingRows(manifest, recipe?.config),
    commands: commandsOf(folder, row, manifest),
  };
}

function commandsOf(folder: string, { state, kind }: RunRow, { config }: Manifest) {
  // A folder's name must be neither an option nor a command of its own.
  const quoted = shellQuoted(folder.startsWith("-") ? `./${folder}` : folder);
  const commands: { what: string; command: string }[] = [];
  const pid = state === "running" ? findLock(folder).owner?.pid : undefined;
  if (pid !== undefined)
    commands.push({ what: "Stop (it can be resumed)", command: `kill -INT ${pid}` });
  const command = RESUMABLE.get(kind);
  if (command !== undefined && state === "done" && typeof config.updates === "number")
    commands.push({
      what: "Make it longer",
      command: `pawl ${command} --resume ${quoted} --updates ${2 * config.updates}`,
    });
  if (command !== undefined && state !== "done" && state !== "running")
    commands.push({ what: "Resume", command: `pawl ${command} --resume ${quoted}` });
  if (command !== undefined) {
    commands.push({ what: "Report", command: `pawl report ${quoted}` });
    if (kind === "train")
      commands.push({ what: "Evaluate", command: `pawl eval --checkpoint ${quoted}` });
  } else commands.push({ what: "Show", command: `pawl show ${quoted}` });
  return commands;
}

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
  /** The runs of `pawl try`, whose page comes first. */
  readonly trial?: Trial | undefined;
  /** Called with errors that are not the page's fault. */
  readonly onFault?: (error: unknown) => void;
  /** Called before work that may take long: models, and what is left of a record after a moment. */
  readonly onLongWork?: () => void;
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
      trial: options.trial ?? null,
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
      if (index.progress.reading) options.onLongWork?.();
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
      options.onLongWork?.();
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
