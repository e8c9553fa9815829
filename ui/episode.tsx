/** One episode as a conversation: what was seen, written, done and expected. */

import type { CutText } from "@pawl/ui/report/views.js";
import type {
  CandidateView,
  CriticAdvantages,
  EpisodeView,
  ExpectedStep,
  GroupView,
  Session,
  StepView,
} from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Branches } from "./branches.js";
import { Outcome } from "./episodes.js";
import { Exchange } from "./exchange.js";
import { shortNumber, shortPercent } from "./format.js";
import { Problem, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
import { Scroll } from "./scroll.js";
import { ask } from "./server.js";
import { Text, visible } from "./text.js";
import { COLOURINGS, type Colouring, Legend } from "./tokens.js";

/** The page of an episode. */
export function Episode(props: {
  readonly run: string;
  readonly id: string;
  readonly session: Session;
}): JSX.Element {
  const { run, id } = props;
  const { query } = usePlace();
  const found = useLoaded(`${run} ${id}`, () => ask<EpisodeView>("episode", { run, id }));
  const colouring = (query.colour ?? "logprob") as Colouring;
  const chosen = query.step === undefined ? undefined : Number(query.step);
  const [expected, setExpected] = useState<Readonly<Record<number, ExpectedStep>>>({});
  const [advantages, setAdvantages] = useState<CriticAdvantages>();
  const [problem, setProblem] = useState<string>();
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    setExpected({});
    setAdvantages(undefined);
  }, [run, id]);
  useEffect(() => {
    if (found.value !== undefined && chosen !== undefined)
      document.getElementById(`step-${chosen}`)?.scrollIntoView({ block: "start" });
  }, [found.value, chosen]);
  const episode = found.value;
  if (episode === undefined) return <Waiting of={found} />;
  const others = Object.fromEntries(Object.entries(query).filter(([name]) => name !== "step"));
  const beside = (other: string | null, label: string, key: string): JSX.Element =>
    other === null ? (
      <span class="button off">{label}</span>
    ) : (
      <a class="button" href={link(["run", run, "episode", other], others)} data-key={key}>
        {label}
      </a>
    );
  const askModel = async (): Promise<void> => {
    setAsking(true);
    setProblem(undefined);
    try {
      if (episode.critic)
        setAdvantages(await ask<CriticAdvantages>("play/advantages", {}, { run, id }));
      for (const [step] of episode.steps.entries()) {
        const answer = await ask<ExpectedStep>("play/expect", {}, { run, id, step });
        setExpected((before) => ({ ...before, [step]: answer }));
      }
    } catch (error) {
      setProblem((error as Error).message);
    }
    setAsking(false);
  };
  const more = (step: number, field: string) => (from: number) =>
    ask<CutText>("text", { run, id, step, field, from });
  const steps = episode.steps.map((step, i) =>
    withAdvantages(withExpected(step, expected[i]), advantages?.steps[i]),
  );
  return (
    <>
      <p class="crumbs">
        <a href={link(["run", run])}>{visible(run || "this run")}</a> ›{" "}
        <a href={link(["run", run, "episodes"], others)}>episodes</a>
      </p>
      <h1>
        Episode {episode.row.group}.{episode.row.attempt} <Outcome of={episode.row} />
      </h1>
      <p class="lead">
        {visible(episode.row.type)} · task {visible(episode.row.task)}
        {episode.update !== null && ` · update ${episode.update + 1}`} · {episode.steps.length}{" "}
        steps · return {shortNumber(episode.row.return)}
        {episode.row.score !== null && ` · score ${shortNumber(episode.row.score)}`} · policy{" "}
        {visible(episode.row.policy)} · seed {episode.seed}
      </p>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Colour the agent by
          <select
            value={colouring}
            onChange={(event) => setQuery({ colour: event.currentTarget.value })}
          >
            {Object.entries(COLOURINGS).map(([name, label]) => (
              <option value={name}>{label}</option>
            ))}
          </select>
        </label>
        {props.session.play && (
          <button type="button" onClick={askModel} disabled={asking}>
            {asking ? "Asking…" : "Ask the checkpoint"}
          </button>
        )}
        {beside(episode.older, "← Earlier", "p")}
        {beside(episode.newer, "Later →", "n")}
      </form>
      {problem !== undefined && <Problem>{visible(problem)}</Problem>}
      <Legend
        colouring={colouring}
        steps={steps}
        critic={episode.critic}
        mayAsk={props.session.play}
      />
      {episode.notes.map((note) => (
        <p class="hint">{visible(note)}</p>
      ))}
      <section class="conversation" aria-label="Conversation">
        <div class="said goal">
          <h2>Goal</h2>
          <Text of={episode.goal} more={more(-1, "goal")} />
        </div>
        {episode.given !== null && (
          <div class="said world">
            <h3>Task</h3>
            <Text of={episode.given} more={more(-1, "given")} />
          </div>
        )}
        {episode.firstObservation.length > 0 && (
          <div class="said world">
            <h3>World</h3>
            <Text of={episode.firstObservation} more={more(-1, "firstObservation")} />
          </div>
        )}
        <ol class="steps">
          {steps.map((step, i) => (
            <Step
              key={i}
              number={i}
              step={step}
              colouring={colouring}
              scale={scaleOf(advantages)}
              expected={expected[i]}
              chosen={chosen === i}
              run={run}
              id={id}
              others={episode.group.length > 1}
              more={(field) => more(i, field)}
            />
          ))}
        </ol>
        {episode.result !== null && (
          <div class="said world">
            <h3>Returned</h3>
            <Text of={episode.result} more={more(-1, "result")} />
          </div>
        )}
        {episode.why !== null && (
          <div class="said world">
            <h3>Why its return is {shortNumber(episode.row.return)}</h3>
            <Text of={episode.why} more={more(-1, "why")} />
          </div>
        )}
        {episode.error !== null && (
          <Problem>
            {episode.row.stop === "broken" ? "The episode broke" : "Error"}:{" "}
            <Text of={episode.error} more={more(-1, "error")} />
          </Problem>
        )}
        {episode.row.stop !== "done" && (
          <p class="quiet">Stopped: {episode.row.stop.replace("-", " ")}.</p>
        )}
      </section>
      <Branches tree={episode.tree} run={run} id={id} />
      {episode.group.length > 1 && (
        <section>
          <h2>Attempts of the group</h2>
          <ul class="group">
            {episode.group.map((row) => (
              <li>
                <a
                  href={link(["run", run, "episode", row.id], others)}
                  aria-current={row.id === id ? "true" : undefined}
                >
                  attempt {row.attempt}
                </a>{" "}
                <Outcome of={row} /> {row.steps} steps, return {shortNumber(row.return)}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function withExpected(step: StepView, expected: ExpectedStep | undefined): StepView {
  if (expected === undefined || expected.tokens.length === 0) return step;
  // What was sampled keeps the probability it had; what the model says now fills in the rest.
  const tokens = expected.tokens.map((token, i) => {
    const logprob = token.kind === "action" ? step.tokens[i]?.logprob : token.logprob;
    return logprob === undefined ? token : { ...token, logprob };
  });
  return { ...step, tokens };
}

/** The typical size of a critic's advantages, which are in returns. */
function scaleOf(advantages: CriticAdvantages | undefined): number {
  const all = advantages?.steps.flat() ?? [];
  return Math.sqrt(all.reduce((sum, one) => sum + one ** 2, 0) / all.length) || 1;
}

/** A critic's advantages: each token's own, and their mean as that of the step. */
function withAdvantages(step: StepView, own: readonly number[] | undefined): StepView {
  if (own === undefined || own.length === 0) return step;
  let action = 0;
  const tokens = step.tokens.map((token) => {
    const advantage = token.kind === "action" ? own[action++] : undefined;
    return advantage === undefined ? token : { ...token, advantage };
  });
  return { ...step, tokens, advantage: own.reduce((sum, one) => sum + one, 0) / own.length };
}

function Step(props: {
  readonly number: number;
  readonly step: StepView;
  readonly colouring: Colouring;
  readonly scale: number;
  readonly expected: ExpectedStep | undefined;
  readonly chosen: boolean;
  readonly run: string;
  readonly id: string;
  readonly others: boolean;
  more(field: string): (from: number) => Promise<CutText>;
}): JSX.Element {
  const { number, step, colouring, expected, more } = props;
  const [group, setGroup] = useState<GroupView>();
  // A choice among one is none.
  const considered = step.candidates.length > 1 ? step.candidates : [];
  const foreseen = considered.find(({ chosen }) => chosen)?.predicted?.text;
  return (
    <li id={`step-${number}`} class={props.chosen ? "chosen" : ""}>
      <Exchange
        step={step}
        tokens={step.tokens}
        colouring={colouring}
        scale={props.scale}
        expected={expected ?? (foreseen === undefined ? undefined : { observation: foreseen })}
        considered={considered.length > 0 && <Candidates of={considered} step={number} />}
        more={more}
        name={
          <a
            href={link(["run", props.run, "episode", props.id], {
              colour: colouring,
              step: number,
            })}
            aria-label={`Link to step ${number + 1}`}
          >
            Step {number + 1}
          </a>
        }
      />
      <div class="extras">
        {step.seconds !== null && (
          <span class="quiet small">
            {step.tokens.filter(({ kind }) => kind === "action").length} tokens written in{" "}
            {step.seconds.toFixed(1)} s
          </span>
        )}
        {step.calls.length > 0 && (
          <details>
            <summary>Tool calls ({step.calls.length})</summary>
            {step.calls.map((call, i) => (
              <div class="piece">
                <code>{visible(call.tool)}</code>
                <Text of={call.arguments} more={more(`calls.${i}.arguments`)} />
                {call.result !== null && <Text of={call.result} more={more(`calls.${i}.result`)} />}
              </div>
            ))}
          </details>
        )}
        <details>
          <summary>Prompt ({step.promptPieces} pieces)</summary>
          {step.prompt.map(({ origin, role, text }, i) => (
            <div class="piece">
              <span class="quiet small">
                {visible(role === undefined ? origin : `${role}, ${origin}`)}
              </span>
              <Text of={text} more={more(`prompt.${step.promptPieces - step.prompt.length + i}`)} />
            </div>
          ))}
        </details>
        {props.others && (
          <details
            onToggle={(event) => {
              if (event.currentTarget.open && group === undefined)
                void ask<GroupView>("group", { run: props.run, id: props.id }).then(setGroup);
            }}
          >
            <summary>Other attempts at this step</summary>
            {group === undefined ? (
              <p class="waiting">Loading…</p>
            ) : (
              <Others group={group} step={number} run={props.run} id={props.id} />
            )}
          </details>
        )}
      </div>
    </li>
  );
}

/** The actions considered before a step, with what each was expected to bring. */
function Candidates(props: {
  readonly of: readonly CandidateView[];
  readonly step: number;
}): JSX.Element {
  const { of } = props;
  const isPredicted = of.some(({ predicted, refused }) => predicted !== null || refused !== null);
  const isTried = of.some(({ truth }) => truth !== null);
  return (
    <Scroll label={`Candidates of step ${props.step}`}>
      <table class="candidates">
        <thead>
          <tr>
            <th>Considered</th>
            <th>Votes</th>
            {isPredicted && <th>Refused?</th>}
            {isPredicted && <th>Predicted</th>}
            {isTried && <th>A copy of the world answered</th>}
          </tr>
        </thead>
        <tbody>
          {of.map(({ action, votes, predicted, refused, truth, chosen }) => (
            <tr class={chosen ? "chosen" : ""}>
              <td>
                <code>{visible(action.text || "(no action)")}</code>
                {chosen && <span class="badge solved">✓ chosen</span>}
              </td>
              <td>{votes}</td>
              {isPredicted && <td>{refused === null ? "–" : shortPercent(refused)}</td>}
              {isPredicted && <td>{predicted === null ? "–" : <Text of={predicted} />}</td>}
              {isTried && (
                <td>
                  {truth === null ? (
                    "–"
                  ) : (
                    <>
                      {!truth.valid && <span class="badge failed">refused</span>}
                      <Text of={truth.observation} />
                    </>
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Others(props: {
  readonly group: GroupView;
  readonly step: number;
  readonly run: string;
  readonly id: string;
}): JSX.Element {
  return (
    <ul class="others">
      {props.group.attempts.map(({ row, steps }) => {
        const step = steps[props.step];
        return (
          <li class={row.id === props.id ? "own" : ""}>
            <a href={link(["run", props.run, "episode", row.id], { step: props.step })}>
              attempt {row.attempt}
            </a>{" "}
            <Outcome of={row} />{" "}
            {step === undefined ? (
              <span class="quiet">had ended</span>
            ) : (
              <>
                <code class={step.valid ? "" : "bad"}>{visible(step.action || "(no action)")}</code>
                <div class="quiet small">{visible(step.observation)}</div>
              </>
            )}
          </li>
        );
      })}
    </ul>
  );
}
