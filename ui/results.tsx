/** Results that commands wrote to files: fidelity and consistency of world models, evaluation cards. */

import type { EvidenceFile } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { Chart } from "./chart.js";
import { Expectation } from "./expectation.js";
import { moment, shortNumber, shortPercent } from "./format.js";
import { Empty, useLoaded, Waiting } from "./load.js";
import { link, usePlace } from "./route.js";
import { Scroll } from "./scroll.js";
import { ask } from "./server.js";
import { Copyable, visible } from "./text.js";

type Tree = Readonly<Record<string, unknown>>;
const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const treeOf = (value: unknown): Tree => (isTree(value) ? value : {});
const numberOf = (value: unknown): number => (typeof value === "number" ? value : Number.NaN);
const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "–" : JSON.stringify(value);

/** The page of results. */
export function Results(): JSX.Element {
  const found = useLoaded("evidence", () => ask<readonly EvidenceFile[]>("evidence"));
  const { query } = usePlace();
  if (found.value === undefined) return <Waiting of={found} />;
  const shown = found.value.filter(({ path }) => query.file === undefined || query.file === path);
  return (
    <>
      <h1>Results</h1>
      {query.file !== undefined && (
        <p>
          <a href={link(["results"])}>All results</a>
        </p>
      )}
      {shown.length === 0 && (
        <Empty>
          <p>
            There are no results yet. These commands write them, with --out naming a file in this
            folder:
          </p>
          <p>
            <Copyable
              text="pawl wm eval fidelity --model RUN --data DATA --out runs/fidelity.json"
              label="fidelity"
            />
          </p>
          <p>
            <Copyable
              text="pawl wm eval consistency --model RUN --out runs/consistency.json"
              label="consistency"
            />
          </p>
        </Empty>
      )}
      {shown.map((file) => (
        <section>
          <h2>
            <a href={link(["results"], { file: file.path })}>{visible(file.path)}</a>{" "}
            <span class="badge plain">{file.kind}</span>
          </h2>
          <p class="hint">
            {file.createdAt !== null && `${moment(file.createdAt)} UTC `}
            {"model" in file.content && <>model {visible(textOf(file.content.model))}</>}
            {"data" in file.content && <> · data {visible(textOf(file.content.data))}</>}
          </p>
          {{ fidelity: Fidelity, consistency: Consistency, card: Card }[file.kind]({
            content: file.content,
            path: file.path,
          })}
        </section>
      ))}
    </>
  );
}

const GROUPINGS = [
  ["byEnvironment", "environment"],
  ["bySplit", "split"],
  ["byType", "type"],
  ["byPolicy", "policy"],
  ["byDepth", "step"],
] as const;

/** What a file says, and where it is. */
interface Shown {
  readonly content: Tree;
  readonly path: string;
}

/** How often a world model gives the world's answer. */
function Fidelity({ content, path }: Shown): JSX.Element {
  const rows = [
    ["all", treeOf(content.all)] as const,
    ...GROUPINGS.flatMap(([key, title]) =>
      Object.entries(treeOf(content[key])).map(
        ([name, score]) => [`${title} ${name}`, treeOf(score)] as const,
      ),
    ),
  ];
  const depths = Object.entries(treeOf(content.byDepth)).map(
    ([name, score]) => [Number.parseInt(name, 10), treeOf(score)] as const,
  );
  const mistakes = Array.isArray(content.mistakes) ? content.mistakes.filter(isTree) : [];
  return (
    <>
      {depths.length > 1 && (
        <div class="charts">
          <Chart
            title="Fidelity by depth"
            note="share of predictions that match the world"
            percent
            dots
            x={depths.map(([depth]) => depth)}
            xLabel="step"
            lines={[
              { label: "exact match", y: depths.map(([, score]) => numberOf(score.exactMatch)) },
              { label: "word F1", y: depths.map(([, score]) => numberOf(score.f1)) },
            ]}
          />
        </div>
      )}
      <Scroll label={`Fidelity, ${visible(path)}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Turns</th>
              {["Count", "Exact match", "Word F1", "Success accuracy", "Success recall"].map(
                (name) => (
                  <th scope="col" class="number">
                    {name}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, score]) => (
              <tr>
                <th scope="row">{visible(name)}</th>
                <td class="number">{shortNumber(numberOf(score.turns))}</td>
                {["exactMatch", "f1", "successAccuracy", "successRecall"].map((key) => (
                  <td class="number">{shortPercent(numberOf(score[key]))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {mistakes.length > 0 && <h3>Mistakes</h3>}
      {mistakes.map(({ task, step, action, real, predicted }) => (
        <div class="said world">
          <p>
            <code>{visible(textOf(action))}</code>{" "}
            <span class="quiet">
              {visible(textOf(task))}, step {textOf(step)}
            </span>
          </p>
          <Expectation
            real={textOf(treeOf(real).observation)}
            expected={{ observation: textOf(treeOf(predicted).observation) }}
            names={["Predicted", "Observed"]}
          />
        </div>
      ))}
    </>
  );
}

/** Whether what works in a world model works in the world. */
function Consistency({ content, path }: Shown): JSX.Element {
  const policies = (Array.isArray(content.policies) ? content.policies : []).filter(isTree);
  const keys = ["real", "wm", "w2r", "cr"] as const;
  return (
    <>
      <Scroll label={`Consistency, ${visible(path)}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col" class="number">
                Tasks
              </th>
              {["In the world", "In the model", "Model's actions in the world", "Ratio"].map(
                (name) => (
                  <th scope="col" class="number">
                    {name}
                  </th>
                ),
              )}
              <th scope="col" class="number">
                Never diverges
              </th>
              <th scope="col" class="number">
                Median divergence
              </th>
            </tr>
          </thead>
          <tbody>
            {policies.map((one) => {
              const intervals = treeOf(one.intervals);
              return (
                <tr>
                  <th scope="row">
                    {visible(textOf(one.policy))}
                    {one.looksInside === true && " *"}
                  </th>
                  <td class="number">{shortNumber(numberOf(content.tasks))}</td>
                  {keys.map((key) => {
                    const interval = intervals[key];
                    return (
                      <td class="number">
                        {key === "cr"
                          ? shortNumber(numberOf(one[key]))
                          : shortPercent(numberOf(one[key]))}
                        {Array.isArray(interval) && (
                          <div class="start">
                            {interval
                              .map((edge) =>
                                key === "cr"
                                  ? shortNumber(numberOf(edge))
                                  : shortPercent(numberOf(edge)),
                              )
                              .join(" to ")}
                          </div>
                        )}
                      </td>
                    );
                  })}
                  <td class="number">{shortPercent(numberOf(one.neverDiverges))}</td>
                  <td class="number">{shortNumber(numberOf(one.medianDivergence))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
      <p class="hint">
        * sees the real world, so that only the model's judgement of success is tested.
      </p>
      {Object.entries(treeOf(content.cases)).map(([policy, cases]) => (
        <details>
          <summary>
            Tasks of {visible(policy)} ({Array.isArray(cases) ? cases.length : 0})
          </summary>
          <Scroll label={`Tasks of ${policy}`}>
            <table>
              <thead>
                <tr>
                  {[
                    "Task",
                    "World",
                    "Model",
                    "Model's actions in the world",
                    "Steps",
                    "First divergence",
                  ].map((name) => (
                    <th scope="col">{name}</th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {(Array.isArray(cases) ? cases.filter(isTree) : []).slice(0, 500).map((one) => (
                  <tr>
                    <th scope="row">{visible(textOf(one.task))}</th>
                    {["real", "wm", "w2r"].map((key) => (
                      <td>{one[key] === true ? "✓ solved" : "✗ failed"}</td>
                    ))}
                    <td>{textOf(one.steps)}</td>
                    <td>
                      {one.divergence === undefined ? "never" : `step ${textOf(one.divergence)}`}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </details>
      ))}
    </>
  );
}

/** An evaluation card: its rates, then the rest as it is. */
function Card({ content, path }: Shown): JSX.Element {
  const { results, outcomes: _, kind: __, schema: ___, createdAt: ____, ...rest } = content;
  const all = treeOf(results);
  const rows = [
    ["all", all] as const,
    ...Object.entries(treeOf(all.byType)).map(
      ([type, figures]) => [type, treeOf(figures)] as const,
    ),
  ];
  return (
    <>
      <Scroll label={`Evaluation, ${visible(path)}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Tasks</th>
              {["Episodes", "Success", "Interval", "Return", "Steps", "Broken"].map((name) => (
                <th scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, one]) => (
              <tr>
                <th scope="row">{visible(name)}</th>
                <td class="number">{shortNumber(numberOf(one.episodes))}</td>
                <td class="number strong">{shortPercent(numberOf(one.success))}</td>
                <td class="number">
                  {Array.isArray(one.interval)
                    ? one.interval.map((edge) => shortPercent(numberOf(edge))).join(" to ")
                    : "–"}
                </td>
                {[one.return, one.steps, one.broken].map((value) => (
                  <td class="number">{shortNumber(numberOf(value))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <details>
        <summary>Protocol and versions</summary>
        <Fields of={rest} depth={0} />
      </details>
    </>
  );
}

function Fields({ of, depth }: { readonly of: Tree; readonly depth: number }): JSX.Element {
  return (
    <dl class="fields">
      {Object.entries(of).map(([name, value]) => (
        <div>
          <dt>{visible(name)}</dt>
          <dd>
            {isTree(value) && depth < 6 ? (
              <Fields of={value} depth={depth + 1} />
            ) : (
              visible(typeof value === "number" ? String(value) : textOf(value).slice(0, 2000))
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
