/**
 * Trackio: a server (`trackio show`, or a Space), or a folder.
 *
 * Entries carry ids, and the server drops those that it has. Its folder is a SQLite database with an
 * inbox: files of JSON lines, which the dashboard imports, dropping what it has. We write the inbox.
 */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { keyFrom } from "@pawl/core/http/http-client.js";
import { post, serverUrl, TrackerError } from "./post.js";
import { type Batch, grouped, type TrackedRun, type Tracker, type TrackerKind } from "./tracker.js";

const TOKEN = "TRACKIO_WRITE_TOKEN";
const SPACE_TOKEN = "HF_TOKEN";

/** Trackio at an address, or in a folder. */
export const trackio: TrackerKind = {
  name: "trackio",
  where: "URL or FOLDER",
  keys: [TOKEN, SPACE_TOKEN],
  open: (where, environment) =>
    /^\w+:\/\//.test(where) ? atServer(where, environment) : inFolder(where),
};

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** The entries of a batch, as the server and the inbox take them. */
function entries(run: TrackedRun, { lines, alarms }: Batch) {
  const common = { project: run.project, run: run.name, run_id: run.id };
  return {
    logs: lines.map(({ step, time, metrics, traces }) => ({
      ...common,
      step,
      timestamp: timeOf(time),
      metrics: {
        ...grouped(metrics),
        ...(traces.length > 0 && {
          episodes: traces.map(({ messages, metadata }) => ({
            _type: "trackio.trace",
            messages,
            metadata: { ...metadata, status: metadata.success === true ? "ok" : "error" },
            spans: [],
          })),
        }),
      },
      config: run.config,
      log_id: `${run.id}-${step}`,
    })),
    alerts: alarms.map(({ update, alarm, text, time }) => ({
      ...common,
      title: `alarm ${alarm}`,
      text,
      level: alarm === "nan" ? "error" : "warn",
      step: update + 1,
      timestamp: timeOf(time),
      alert_id: `${run.id}-${update}-${alarm}`,
    })),
  };
}

function atServer(
  where: string,
  environment: Readonly<Record<string, string | undefined>>,
): Tracker {
  const url = serverUrl(where, TOKEN);
  // An account's token goes to Spaces only.
  const isSpace = url.protocol === "https:" && url.hostname.endsWith(".hf.space");
  const key = keyFrom(environment, [isSpace ? SPACE_TOKEN : TOKEN]);
  const headers: Record<string, string> =
    key === undefined
      ? {}
      : isSpace
        ? { authorization: `Bearer ${key}` }
        : { "x-trackio-write-token": key };
  const call = async (name: string, list: object, signal: AbortSignal): Promise<void> => {
    await post({
      url: new URL(`api/${name}`, url),
      body: { kwargs: { ...list, hf_token: isSpace ? (key ?? null) : null } },
      headers,
      key,
      signal,
      accept: [400],
      read(answer, status) {
        const { error } = answer as { readonly error?: string };
        if (status !== 400 && error === undefined) return;
        const hint =
          key === undefined ? ` Put its write token into ${isSpace ? SPACE_TOKEN : TOKEN}.` : "";
        throw new TrackerError(
          `${url.origin} answers ${name}: ${(error ?? "400").replace(/\.$/, "")}.${hint}`,
          false,
        );
      },
    });
  };
  return {
    async send(run, batch, signal) {
      const { logs, alerts } = entries(run, batch);
      if (logs.length > 0) await call("bulk_log", { logs }, signal);
      if (alerts.length > 0) await call("bulk_alert", { alerts }, signal);
    },
  };
}

function inFolder(where: string): Tracker {
  if (where.trim() === "") throw new UserError("expected an address or a folder after trackio=");
  return {
    async send(run, batch) {
      const { logs, alerts } = entries(run, batch);
      const records = [
        ...logs.map((entry) => ({ v: 1, kind: "metric", ...entry })),
        ...alerts.map((entry) => ({ v: 1, kind: "alert", ...entry })),
      ];
      if (records.length === 0) return;
      const writer = join(where, "inbox", `pawl-${run.id}`);
      const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
      // The dashboard removes an empty folder after reading it, so it is made again each time.
      await mkdir(writer, { recursive: true });
      const [first] = batch.lines;
      const name = `${String(first?.step ?? 0).padStart(8, "0")}-${randomUUID().slice(0, 8)}.jsonl`;
      writeFileAtomicallySync(join(writer, name), text);
    },
  };
}
