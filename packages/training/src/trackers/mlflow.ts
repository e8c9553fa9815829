/**
 * MLflow's tracking server, over its REST interface.
 *
 * A run is found again by a tag with its id. A metric that is sent twice has the same key, value,
 * time and step, which MLflow keeps once.
 */

import { keyFrom } from "@pawl/core/http/http-client.js";
import { urlPart } from "@pawl/core/plain-text.js";
import { z } from "zod";
import { type Posting, post, serverUrl } from "./post.js";
import { type Batch, grouped, type TrackedRun, type TrackerKind } from "./tracker.js";

const TOKEN = "MLFLOW_TRACKING_TOKEN";
/** What one call may carry. */
const MOST_METRICS = 1000;
const MOST_PARAMETERS = 100;
const LONGEST_PARAMETER = 6000;
const LONGEST_TAG = 5000;

const runAnswer = z.object({ run: z.object({ info: z.object({ run_id: z.string() }) }) });
const searchAnswer = z.object({ runs: z.array(runAnswer.shape.run).default([]) });
const made = z.object({ experiment_id: z.string() });
const experimentAnswer = z.object({ experiment: made });

/** Characters that MLflow takes in names. */
const nameOf = (name: string): string => name.replace(/[^\w .:/-]/g, "_");

/** MLflow at an address. */
export const mlflow: TrackerKind = {
  name: "mlflow",
  where: "URL",
  keys: [TOKEN, "MLFLOW_TRACKING_PASSWORD"],
  open(where, environment) {
    const base = new URL("api/2.0/mlflow/", serverUrl(where, TOKEN));
    const { header, key } = authorization(environment);
    const known = new Map<string, string>();
    const call = <T>(
      path: string,
      how: Pick<Posting<T>, "read" | "signal"> & Partial<Posting<T>>,
    ) => post({ url: new URL(path, base), headers: header, key, ...how });
    const experimentOf = async (name: string, signal: AbortSignal): Promise<string> => {
      const found = await call(`experiments/get-by-name?experiment_name=${urlPart(name)}`, {
        signal,
        accept: [404],
        read: (answer, status) =>
          status === 404 ? undefined : experimentAnswer.parse(answer).experiment.experiment_id,
      });
      if (found !== undefined) return found;
      const read = (answer: unknown) => made.parse(answer).experiment_id;
      return call("experiments/create", { body: { name }, signal, read });
    };
    const runOf = async (run: TrackedRun, signal: AbortSignal): Promise<string> => {
      const experiment = await experimentOf(run.project, signal);
      const [found] = await call("runs/search", {
        body: {
          experiment_ids: [experiment],
          filter: `tags.\`pawl.run\` = '${run.id}'`,
          max_results: 1,
        },
        signal,
        read: (answer) => searchAnswer.parse(answer).runs,
      });
      if (found !== undefined) return found.info.run_id;
      const id = await call("runs/create", {
        body: {
          experiment_id: experiment,
          run_name: run.name,
          start_time: run.startedAt,
          tags: [
            { key: "pawl.run", value: run.id },
            { key: "pawl.kind", value: run.kind },
          ],
        },
        signal,
        read: (answer) => runAnswer.parse(answer).run.info.run_id,
      });
      // Once: a parameter cannot change later, and a resumed run may change some.
      const params = Object.entries(run.config).map(([name, value]) => ({
        key: nameOf(name),
        value: String(value).slice(0, LONGEST_PARAMETER),
      }));
      for (const some of slices(params, MOST_PARAMETERS))
        await call("runs/log-batch", { body: { run_id: id, params: some }, signal, read: nothing });
      return id;
    };
    const idOf = async (run: TrackedRun, signal: AbortSignal): Promise<string> => {
      const id = known.get(run.id) ?? (await runOf(run, signal));
      known.set(run.id, id);
      return id;
    };
    return {
      async send(run, batch, signal) {
        const run_id = await idOf(run, signal);
        for (const metrics of slices(metricsOf(batch), MOST_METRICS))
          await call("runs/log-batch", { body: { run_id, metrics }, signal, read: nothing });
        const tags = batch.alarms.map(({ update, alarm, text }) => ({
          key: `pawl.alarm.${alarm}`,
          value: `update ${update + 1}: ${text}`.slice(0, LONGEST_TAG),
        }));
        if (tags.length > 0)
          await call("runs/log-batch", { body: { run_id, tags }, signal, read: nothing });
      },
      async finish(run, status, signal) {
        const run_id = await idOf(run, signal);
        const body = { run_id, status: STATUSES[status] ?? "FAILED", end_time: Date.now() };
        await call("runs/update", { body, signal, read: nothing });
      },
    };
  },
};

const STATUSES: Readonly<Record<string, string>> = {
  running: "RUNNING",
  done: "FINISHED",
  stopped: "FINISHED",
  interrupted: "KILLED",
};

const nothing = (): void => undefined;

const metricsOf = ({ lines }: Batch) =>
  lines.flatMap(({ step, time, metrics }) =>
    Object.entries(grouped(metrics)).map(([name, value]) => ({
      ...{ key: nameOf(name), value, step },
      timestamp: Math.round(time),
    })),
  );

function slices<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
    list.slice(i * size, (i + 1) * size),
  );
}

/** MLflow's own variables: a token, or a user and a password. */
function authorization(environment: Readonly<Record<string, string | undefined>>): {
  readonly header: Readonly<Record<string, string>>;
  readonly key?: string | undefined;
} {
  const token = keyFrom(environment, [TOKEN]);
  if (token !== undefined) return { header: { authorization: `Bearer ${token}` }, key: token };
  const { MLFLOW_TRACKING_USERNAME: user, MLFLOW_TRACKING_PASSWORD: key } = environment;
  if (user === undefined || key === undefined) return { header: {} };
  const pair = Buffer.from(`${user}:${key}`).toString("base64");
  return { header: { authorization: `Basic ${pair}` }, key };
}
