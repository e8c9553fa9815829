/** One episode as a conversation: what was seen, written, done and expected. */

import type { CutText } from "@pawl/ui/report/views.js";
import type {
  AttemptView,
  CriticAdvantages,
  EpisodeView,
  ExpectedStep,
  GroupView,
  Session,
  StepView,
} from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Attempts } from "./attempts.js";
import { Candidates } from "./candidates.js";
import { Outcome } from "./episodes.js";
import { Content, Exchange } from "./exchange.js";
import { count, shortNumber } from "./format.js";
import { Problem, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
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
  const usual = hasProbabilities(episode) ? "logprob" : "none";
  const colouring = (query.colour ?? usual) as Colouring;
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
        {episode.update !== null && ` · update ${episode.update + 1}`} ·{" "}
        {count(episode.steps.length, "step")} · return {shortNumber(episode.row.return)}
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
        {props.session.play && episode.checkpoint && (
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
        mayAsk={props.session.play && episode.checkpoint}
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
            <Content of={episode.given} more={more(-1, "given")} />
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
              group={episode.group}
              more={(field) => more(i, field)}
            />
          ))}
        </ol>
        {episode.result !== null && (
          <div class="said world">
            <h3>Returned</h3>
            <Content of={episode.result} more={more(-1, "result")} />
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
      <Attempts group={episode.group} run={run} id={id} query={others} />
    </>
  );
}

const hasProbabilities = ({ steps }: EpisodeView): boolean =>
  steps.some(({ tokens }) =>
    tokens.some(({ kind, logprob }) => kind === "action" && logprob !== undefined),
  );

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
  readonly group: readonly AttemptView[];
  more(field: string): (from: number) => Promise<CutText>;
}): JSX.Element {
  const { number, step, colouring, expected, more } = props;
  const [group, setGroup] = useState<GroupView>();
  // A choice among one is none.
  const considered = step.candidates.length > 1 ? step.candidates : [];
  const foreseen = considered.find(({ chosen }) => chosen)?.predicted?.text;
  const written = step.tokens.filter(({ kind }) => kind === "action").length;
  return (
    <li id={`step-${number}`} class={props.chosen ? "chosen" : ""}>
      <Parting group={props.group} run={props.run} id={props.id} step={number} />
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
        {step.seconds !== null && written > 0 && (
          <span class="quiet small">
            {count(written, "token")} written in {step.seconds.toFixed(1)} s
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
          <summary>Prompt ({count(step.promptPieces, "piece")})</summary>
          {step.prompt.map(({ origin, role, text }, i) => (
            <div class="piece">
              <span class="quiet small">
                {visible(role === undefined ? origin : `${role}, ${origin}`)}
              </span>
              <Text of={text} more={more(`prompt.${step.promptPieces - step.prompt.length + i}`)} />
            </div>
          ))}
        </details>
        {props.group.length > 1 && (
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

/** Where attempts part: what branches off here, or that this episode does. */
function Parting(props: {
  readonly group: readonly AttemptView[];
  readonly run: string;
  readonly id: string;
  readonly step: number;
}): JSX.Element | null {
  const { group, run, id, step } = props;
  const own = group.find((row) => row.id === id);
  const other = (row: AttemptView, name = "attempt"): JSX.Element => (
    <a href={link(["run", run, "episode", row.id], { step })}>
      {name} {row.attempt}
    </a>
  );
  const trunk = group.find(({ attempt }) => attempt === own?.branch?.from);
  if (trunk !== undefined && own?.branch?.step === step)
    return (
      <p class="hint">
        Branches off {other(trunk)} here. The steps above were played and are learnt there.
      </p>
    );
  const parting = group.filter(
    ({ branch }) => branch?.step === step && branch.from === own?.attempt,
  );
  if (parting.length === 0) return null;
  return (
    <p class="hint">
      {parting.map((row, i) => (i === 0 ? other(row, "Attempt") : [", ", other(row)]))}{" "}
      {parting.length === 1 ? "branches" : "branch"} off here.
    </p>
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
