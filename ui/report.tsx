/** A report: the same components as in `pawl ui`, with the data that is inside the file. */

import type {
  ReportEpisode,
  ReportPrediction,
  ReportView,
  ThresholdView,
} from "@pawl/ui/report/views.js";
import type { JSX } from "preact";
import { Chart, Swatch } from "./chart.js";
import { Curves, Key, SuccessChart } from "./curves.js";
import { Outcome } from "./episodes.js";
import { Exchange } from "./exchange.js";
import { duration, shortNumber, shortPercent } from "./format.js";
import { Scroll } from "./scroll.js";
import { Settings } from "./settings.js";
import { EvaluationTable, TimeTable, TypeTable } from "./tables.js";
import { Text, visible } from "./text.js";
import { Tokens } from "./tokens.js";

/** Whatever the file holds. */
export function StaticPage({ view }: { readonly view: ReportView | ThresholdView }): JSX.Element {
  document.title = view.title;
  return (
    <main id="main">
      <h1>{visible(view.title)}</h1>
      <p class="lead">{visible(view.lead)}</p>
      {view.kind === "report" ? <Report view={view} /> : <Threshold view={view} />}
    </main>
  );
}

function Report({ view }: { readonly view: ReportView }): JSX.Element {
  const { groups } = view;
  const heading = (index: number): JSX.Element | null =>
    groups.length === 1 ? null : (
      <h3>
        <Swatch index={index} />
        {visible(groups[index]!.label)}
      </h3>
    );
  return (
    <>
      {groups.length > 1 && (
        <Key
          groups={groups.map(({ label, runs }) => ({ label, seeds: runs.map(({ seed }) => seed) }))}
        />
      )}
      <SuccessChart groups={groups} />
      <section id="results">
        <h2>Results</h2>
        <EvaluationTable groups={groups} />
        <TypeTable groups={groups} />
      </section>
      <section id="curves">
        <h2>Curves</h2>
        <Curves groups={groups} />
      </section>
      <section id="time">
        <h2>Where the time went</h2>
        <TimeTable groups={groups} />
      </section>
      <section id="settings">
        <h2>Settings</h2>
        {groups.map(({ settings, recipe }, i) => (
          <>
            {heading(i)}
            <Settings settings={settings} recipe={recipe} />
          </>
        ))}
      </section>
      <section id="runs">
        <h2>Runs</h2>
        <Runs groups={groups} />
      </section>
      {view.plays && (
        <>
          <section id="episodes">
            <h2>Episodes</h2>
            <p class="hint">
              The first and the last solved, and the first and the last failed, of the first run of
              each group.
            </p>
            {groups.map(({ plays, episodes }, i) => (
              <>
                {plays && heading(i)}
                {plays && episodes.length === 0 && (
                  <p class="hint">No complete episode was recorded.</p>
                )}
                {episodes.map((episode, n) => (
                  <ReportedEpisode episode={episode} open={n === 0} />
                ))}
              </>
            ))}
          </section>
          <section id="predictions">
            <h2>Predicted observations</h2>
            <Predictions view={view} heading={heading} />
          </section>
        </>
      )}
    </>
  );
}

/** How each run went. */
function Runs({ groups }: Pick<ReportView, "groups">): JSX.Element {
  const numbers = ["Seed", "Updates", "Took", "Tokens learnt", "Memory", "Cores"];
  return (
    <Scroll label="Runs">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Ended</th>
            {numbers.map((name) => (
              <th scope="col" class="number">
                {name}
              </th>
            ))}
            <th scope="col">Versions</th>
          </tr>
        </thead>
        <tbody>
          {groups.flatMap(({ label, runs }, i) =>
            runs.map((run) => (
              <tr>
                <th scope="row">
                  <Swatch index={i} />
                  {visible(label)}
                  <div>
                    <code>{visible(run.folder)}</code>
                  </div>
                </th>
                <td>
                  {run.ended}
                  {run.error !== undefined && <div class="start">{visible(run.error)}</div>}
                </td>
                <td class="number">{run.seed}</td>
                <td class="number">{run.updates}</td>
                <td class="number">{duration(run.seconds)}</td>
                <td class="number">{shortNumber(run.tokens)}</td>
                <td class="number">
                  {run.memoryMib === null ? "–" : `${Math.round(run.memoryMib)} MiB`}
                </td>
                <td class="number">{run.cores ?? "–"}</td>
                <td class="small">
                  {Object.entries(run.versions)
                    .map(([name, version]) => visible(`${name} ${version}`))
                    .join(", ")}
                </td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </Scroll>
  );
}

function ReportedEpisode(props: {
  readonly episode: ReportEpisode;
  readonly open: boolean;
}): JSX.Element {
  const { update, goal, type, firstObservation, steps, stop, success } = props.episode;
  return (
    <details class="episode" open={props.open}>
      <summary>
        <Outcome of={{ stop: stop === "broken" ? "broken" : "done", success }} />{" "}
        <strong>{visible(goal)}</strong>{" "}
        <span class="quiet">
          update {update + 1} · {visible(type)} · {steps.length} steps · return{" "}
          {props.episode.return}
        </span>
      </summary>
      <div class="conversation">
        {firstObservation !== "" && (
          <div class="said world">
            <h3>World</h3>
            <Text of={{ text: firstObservation, length: firstObservation.length }} />
          </div>
        )}
        {steps.map((step, i) => (
          <Exchange name={`Step ${i + 1}`} step={step} />
        ))}
        {stop !== "done" && <p class="quiet">Stopped: {stop.replace("-", " ")}.</p>}
      </div>
    </details>
  );
}

function Predictions(props: {
  readonly view: ReportView;
  heading(index: number): JSX.Element | null;
}): JSX.Element {
  const { groups } = props.view;
  return (
    <>
      {groups.map(
        ({ unpredicted }, i) =>
          unpredicted !== undefined && (
            <>
              {props.heading(i)}
              <p class="hint">{visible(unpredicted)}</p>
            </>
          ),
      )}
      {groups.map(
        ({ predictions }, i) =>
          predictions !== undefined && (
            <>
              {props.heading(i)}
              <p class="legend">
                The stronger the <span class="token low8">orange</span>, the lower the token's
                probability. {predictions.mask}
              </p>
              {predictions.steps.length === 0 && (
                <p class="hint">No observation tokens were recorded.</p>
              )}
              {predictions.steps.slice(0, PREDICTED).map((step) => (
                <PredictedStep of={step} />
              ))}
              {predictions.steps.length > PREDICTED && (
                <details>
                  <summary>{predictions.steps.length - PREDICTED} more</summary>
                  {predictions.steps.slice(PREDICTED).map((step) => (
                    <PredictedStep of={step} />
                  ))}
                </details>
              )}
            </>
          ),
      )}
    </>
  );
}

/** Predicted steps of a group that are open at first. */
const PREDICTED = 4;

function PredictedStep({ of }: { readonly of: ReportPrediction }): JSX.Element {
  const { goal, action, update, rows } = of;
  return (
    <div class="said world">
      <p>
        <code>{visible(action || "(no action)")}</code>{" "}
        <span class="quiet">
          update {update + 1} · {visible(goal)}
        </span>
      </p>
      {rows.map(({ weights, meanP, tokens }) => (
        <div class="prediction">
          <span class="quiet small">
            {visible(weights)}, mean p {shortPercent(meanP)}
          </span>
          <Tokens tokens={tokens} colouring="surprise" />
        </div>
      ))}
    </div>
  );
}

function Threshold({ view }: { readonly view: ThresholdView }): JSX.Element {
  const { curves, rows, examples, threshold } = view;
  const xs = [...new Set([...curves.flatMap(({ points }) => points.map(([x]) => x)), threshold])];
  xs.sort((a, b) => a - b);
  const lines = curves.map(({ label, points }) => {
    const values = new Map(points);
    return { label, y: xs.map((x) => values.get(x) ?? null) };
  });
  const mark = {
    label: `threshold ${shortNumber(threshold)}`,
    y: xs.map((x) => Number(x >= threshold)),
  };
  return (
    <>
      <div class="charts">
        <Chart
          title="Distances between states"
          note="share of pairs within the distance"
          percent
          x={xs}
          xLabel="distance"
          lines={[...lines, mark]}
        />
      </div>
      <section id="thresholds">
        <h2>What a threshold accepts</h2>
        <Scroll label="What a threshold accepts">
          <table>
            <thead>
              <tr>
                <th scope="col">threshold</th>
                {curves.map(({ label }) => (
                  <th scope="col" class="number">
                    {label}
                  </th>
                ))}
                <th scope="col" class="number">
                  accuracy
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ name, threshold: at, accepted, accuracy }) => (
                <tr>
                  <th scope="row">
                    {name}: {shortNumber(at)}
                  </th>
                  {accepted.map((share) => (
                    <td class="number">{shortPercent(share)}</td>
                  ))}
                  <td class="number">{shortPercent(accuracy)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
        <p class="hint">
          Proposed: the best mean of the rates of correct acceptance and correct rejection. Strict:
          the largest that accepts at most 5 % of states with one fact changed. If the proposed one
          accepts many of those, reward hacking is cheap: take the strict one, or ROUGE-L.
        </p>
      </section>
      <section id="examples">
        <h2>Examples</h2>
        {examples.map(({ kind, pairs }) => (
          <>
            <h3>{kind}: nearest, median, farthest</h3>
            {pairs.map(({ real, predicted, distance }) => (
              <div class="said world">
                <p class="quiet small">distance {shortNumber(distance)}</p>
                <div class="text">{visible(real)}</div>
                <div class="text">{visible(predicted)}</div>
              </div>
            ))}
          </>
        ))}
      </section>
    </>
  );
}
