/** The training in the page of `pawl try`: a button, λ, and how success goes. */

import type { RunDetail, RunList, RunRow, Trial } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { SuccessChart } from "./curves.js";
import { count, duration } from "./format.js";
import { Problem, useLoaded } from "./load.js";
import { link } from "./route.js";
import { courseOf, useLiveRun } from "./run.js";
import { ask, download, listen, lostUpdates, noteTrained } from "./server.js";
import { visible } from "./text.js";

/** The run that goes on from the start, once there is one. */
export function useTrained(id: string) {
  const [exists, setExists] = useState(false);
  useEffect(() => {
    if (exists) return;
    const runs = (list: RunList): void => setExists(list.runs.some((run) => run.id === id));
    ask<RunList>("runs").then(runs, () => undefined);
    return listen(
      () => ({}),
      { runs },
      () => undefined,
    );
  }, [exists]);
  const live = useLiveRun(exists ? id : undefined);
  return { ...live, isReady: (live.row?.update ?? live.table?.update.at(-1) ?? 0) > 0 };
}

/** Trains it, further too; meanwhile its success is drawn. */
export function Training(props: {
  readonly trial: Trial;
  readonly live: ReturnType<typeof useTrained>;
}): JSX.Element {
  const { trial, live } = props;
  const [asked, setAsked] = useState(false);
  const [problem, setProblem] = useState<string>();
  const { row, table } = live;
  const start = useLoaded("start", () => ask<RunDetail>("run", { run: trial.start }));
  // Until it is measured again, what was measured of the agent that it starts from.
  const measured = row?.success == null ? start.value?.row : row;
  const groups = useMemo(
    () => (table === undefined ? [] : [{ label: trial.trained, tables: [table] }]),
    [table],
  );
  const recorded = useRecorded(trial.trained, row);
  const lambda = recorded.lambda.split(" ")[0]!;
  const [chosen, setChosen] = useState<string>();
  const isRunning = row?.state === "running";
  const isAtWork = asked || isRunning;
  const pause = (): void => {
    ask("play/train", {}, { pause: true }).catch((error: Error) => setProblem(error.message));
  };
  // Answered when the training ends.
  const train = (lambda: string | undefined): void => {
    setAsked(true);
    setProblem(undefined);
    ask("play/train", {}, lambda === undefined ? {} : { lambda: lambdaOf(lambda) })
      .catch((error: Error) => setProblem(error.message))
      .finally(() => setAsked(false));
  };
  const choose = (lambda: string): void => {
    setChosen(lambda);
    if (isAtWork) train(lambda);
  };
  const [lost] = useState(lostUpdates);
  useEffect(() => {
    if (row?.update) noteTrained(row.update);
  }, [row?.update]);
  const failure = problem ?? (isAtWork ? undefined : recorded.error);
  return (
    <section>
      <p>
        {isAtWork ? (
          <button type="button" onClick={pause} disabled={!isRunning}>
            {isRunning ? "Pause training" : "Training…"}
          </button>
        ) : (
          <button type="button" class="primary" onClick={() => train(chosen)}>
            {row?.update ? "Train it further" : "Train it"}
          </button>
        )}{" "}
        <span class="quiet small" role="status">
          {progressOf(row, asked)}
        </span>
      </p>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label class="inline">
          Weight of its world model, λ{" "}
          <select
            value={chosen ?? lambda}
            onChange={(event) => choose(event.currentTarget.value)}
            disabled={isAtWork && !live.isReady}
          >
            {LAMBDAS.map((lambda) => (
              <option value={lambda}>{lambda}</option>
            ))}
          </select>
        </label>
        {isAtWork && chosen !== undefined && chosen !== lambda ? (
          <span class="quiet small">λ {chosen} from the next update on</span>
        ) : (
          recorded.lambda.includes(" ") && <span class="quiet small">λ {recorded.lambda}</span>
        )}
      </form>
      {lost > 0 && row === undefined && (
        <Problem>
          The {count(lost, "update")} that this page had trained are gone: it keeps runs in memory
          only. Train it again, and download the run before you leave.
        </Problem>
      )}
      {failure !== undefined && <Problem>{visible(failure)}</Problem>}
      {measured !== undefined && <p class="summary">Success: {courseOf(measured, table)}</p>}
      {table !== undefined && table.update.length > 0 && (
        <>
          <SuccessChart groups={groups} />
          <p class="hint">
            <a href={link(["run", trial.trained])}>All curves of this run</a>
            {download !== undefined && !isAtWork && (
              <>
                {" · "}
                <button type="button" class="plain" onClick={() => void download?.(trial.trained)}>
                  Download it
                </button>{" "}
                for <code>pawl replay</code>
              </>
            )}
          </p>
        </>
      )}
    </section>
  );
}

/** What λ can be here: as its paper has it, only the rewards, and up to twice their weight. */
const LAMBDAS = ["adaptive", "0", "0.5", "1", "2"];
const lambdaOf = (text: string): "adaptive" | number => (text === "adaptive" ? text : Number(text));

/** What the run records of itself: λ with its course, and why it failed if it did. */
function useRecorded(id: string, row: RunRow | undefined) {
  const [detail, setDetail] = useState<RunDetail>();
  const { state, update } = row ?? {};
  useEffect(() => {
    if (state !== undefined) ask<RunDetail>("run", { run: id }).then(setDetail, () => undefined);
  }, [state, update]);
  const lambda = detail?.settings.find(({ path }) => path === "paw.lambda")?.value ?? "adaptive";
  return { lambda, error: detail?.error ?? undefined };
}

function progressOf(row: RunRow | undefined, asked: boolean): string {
  if (asked && row?.state !== "running" && (row?.update ?? 0) > 0) return "going on…";
  const isRunning = row?.state === "running";
  if (row === undefined || row.update === null || (asked && !isRunning))
    return asked || isRunning
      ? "measuring how good it is so far…"
      : "a minute or two on this machine";
  const updates = `update ${row.update} of ${row.updates ?? "–"}`;
  return isRunning
    ? `${updates}${row.secondsLeft === null ? "" : `, ${duration(row.secondsLeft)} left`}`
    : `${updates}, ${row.state}`;
}
