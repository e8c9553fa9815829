/** A world, or a world model, played by hand. */

import type { NextActions, PlayView, RunList, Session, WorldList } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Answer, AsExpected, Expectation } from "./expectation.js";
import { count, shortNumber } from "./format.js";
import { Empty, Problem, useLoaded, Waiting } from "./load.js";
import { type Query, setQuery, usePlace } from "./route.js";
import { ask } from "./server.js";
import { Copyable, Text, visible, visibleText } from "./text.js";
import { Thoughts } from "./thoughts.js";

/** The page to play. */
export function Play({ session }: { readonly session: Session }): JSX.Element {
  if (!session.play)
    return (
      <Empty>
        <p>This page only reads. To play worlds and ask checkpoints, start the server with</p>
        <Copyable text="pawl ui --play" label="the command that lets this page play" />
      </Empty>
    );
  return <Table />;
}

/** A setting of the game in the address, chosen from a list. */
function Choice(props: {
  readonly name: string;
  readonly label: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  /** What else follows from a choice. */
  readonly also?: (value: string) => Query;
}): JSX.Element {
  const { query } = usePlace();
  return (
    <label>
      {props.label}
      <select
        value={query[props.name] ?? ""}
        onChange={({ currentTarget: { value } }) =>
          setQuery({ ...props.also?.(value), [props.name]: value })
        }
      >
        {props.options.map(([value, text]) => (
          <option value={value}>{visibleText(text)}</option>
        ))}
      </select>
    </label>
  );
}

function Table(): JSX.Element {
  const { query } = usePlace();
  const { world, run, split, task, seed, inside, agent } = query;
  const worlds = useLoaded(JSON.stringify([world, run]), () =>
    ask<WorldList>("play/worlds", {}, { world: world || undefined, run }),
  );
  const runs = useLoaded("runs", () => ask<RunList>("runs"));
  const [game, setGame] = useState<PlayView>();
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [thoughts, setThoughts] = useState<NextActions>();
  const [hint, setHint] = useState<string>();
  // What the agent predicted of the actions that were taken, by step.
  const [foreseen, setForeseen] = useState<readonly (string | undefined)[]>([]);
  const doing = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  const think = async (id: string): Promise<void> =>
    setThoughts(agent ? await ask<NextActions>("play/think", {}, { id, agent }) : undefined);
  const moved = async (next: PlayView): Promise<void> => {
    setGame(next);
    setHint(undefined);
    setThoughts(undefined);
    if (agent && !next.over) await think(next.id);
  };
  const start = (): Promise<void> =>
    doing(async () => {
      const asked = {
        ...(run ? { run } : { world: world || undefined }),
        split: split || undefined,
        task: task || undefined,
        seed: seed ? Number(seed) : undefined,
        inside: inside || undefined,
        replaces: game?.id,
      };
      setForeseen([]);
      await moved(await ask<PlayView>("play/start", {}, asked));
    });
  const act = (action: string): Promise<void> =>
    doing(async () => {
      const predicted = thoughts?.actions.find((one) => one.action === action)?.predicted;
      const next = await ask<PlayView>("play/step", {}, { id: game!.id, action });
      setForeseen([...foreseen.slice(0, game!.steps.length), predicted]);
      await moved(next);
    });
  if (worlds.value === undefined) return <Waiting of={worlds} />;
  const trained = (runs.value?.runs ?? []).filter(({ kind }) =>
    ["train", "rwml", "wm-train"].includes(kind),
  );
  const models = trained.map(({ id }) => [id, id || "this folder"] as const);
  const agents = trained
    .filter(({ kind }) => kind !== "wm-train")
    .map(({ id }) => [id, id || "this folder"] as const);
  const tasks = worlds.value.splits.find(
    (one) => one.split === (split || worlds.value!.splits[0]?.split),
  );
  return (
    <>
      <h1>Play</h1>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        {run === undefined ? (
          <Choice
            name="world"
            label="World"
            options={[
              ["", worlds.value.chosen],
              ...worlds.value.worlds.map(({ name }) => [name, name] as const),
            ]}
          />
        ) : (
          <label>
            World
            <button type="button" onClick={() => setQuery({ run: undefined })}>
              from {visible(run)} ✕
            </button>
          </label>
        )}
        <Choice
          name="split"
          label="Split"
          options={[
            ["", "first"],
            ...worlds.value.splits.map((one) => [one.split, one.split] as const),
          ]}
        />
        <Choice
          name="task"
          label="Task"
          options={[
            ["", "random"],
            ...(tasks?.tasks ?? []).map(({ id, type }) => [id, `${id} (${type})`] as const),
          ]}
        />
        <Choice
          name="agent"
          label="Suggestions from"
          options={[["", "none"], ...agents]}
          // It knows the world that it was trained in.
          also={(chosen) =>
            chosen === ""
              ? {}
              : { run: chosen, world: undefined, split: undefined, task: undefined }
          }
        />
        <Choice
          name="inside"
          label="World model"
          options={[["", "none (real world)"], ...models]}
        />
        <button type="submit" disabled={busy || worlds.value.problem !== undefined}>
          {game === undefined ? "Start" : "Start again"}
        </button>
      </form>
      {worlds.value.problem !== undefined && <Problem>{visible(worlds.value.problem)}</Problem>}
      {problem !== undefined && <Problem>{visible(problem)}</Problem>}
      {game === undefined ? (
        <Empty>Select a world and start. Actions can be undone in worlds that can be copied.</Empty>
      ) : (
        <Game
          game={game}
          busy={busy}
          hint={hint}
          thoughts={thoughts}
          foreseen={foreseen}
          act={act}
          undo={() =>
            doing(async () => moved(await ask<PlayView>("play/undo", {}, { id: game.id })))
          }
          askHint={() =>
            doing(async () =>
              setHint((await ask<{ action: string }>("play/hint", {}, { id: game.id })).action),
            )
          }
        />
      )}
    </>
  );
}

function Game(props: {
  readonly game: PlayView;
  readonly busy: boolean;
  readonly hint: string | undefined;
  readonly thoughts: NextActions | undefined;
  readonly foreseen: readonly (string | undefined)[];
  act(action: string): Promise<void>;
  undo(): void;
  askHint(): void;
}): JSX.Element {
  const { game, busy, thoughts } = props;
  const [typed, setTyped] = useState("");
  // A button that was pressed is gone after its action; the keyboard goes on with the next ones.
  useEffect(() => {
    if (!busy && document.activeElement === document.body)
      document
        .querySelector<HTMLElement>(".thoughts button, .actions button")
        ?.focus({ preventScroll: true });
  }, [busy]);
  const submit = (): void => {
    const action = typed;
    setTyped("");
    void props.act(action);
  };
  return (
    <div class="game">
      <section class="conversation" aria-label="Game" aria-live="polite">
        <p class="hint">
          {visible(game.world)} · task {visible(game.task)} ({visible(game.type)}) · seed{" "}
          {game.seed} · step {game.steps.length} of {game.stepLimit} · return{" "}
          {shortNumber(game.total)}
          {game.inside !== null && (
            <> · inside the world model of {visible(game.inside || "this folder")}</>
          )}
        </p>
        <div class="said goal">
          <h2>Goal</h2>
          <Text of={game.goal} />
        </div>
        <div class="said world">
          <h3>World</h3>
          <Text of={game.firstObservation} />
        </div>
        {game.steps.map((step, i) => {
          const predicted = props.foreseen[i];
          const expected =
            predicted === undefined || game.inside !== null
              ? undefined
              : { observation: predicted };
          return (
            <div key={i}>
              <div class="said agent">
                <h3>You, step {i + 1}</h3>
                <code class="action">{visible(step.action)}</code>
              </div>
              <div class="said world">
                <h3>
                  {game.inside === null ? "World" : "World model"}
                  <AsExpected expected={expected} real={step.observation} />
                  {!step.valid && <span class="badge failed">✗ not possible</span>}
                  {step.reward !== 0 && (
                    <span class="badge solved">reward {shortNumber(step.reward)}</span>
                  )}
                  {game.divergence === i + 1 && (
                    <span class="badge failed">✗ first divergence from the world</span>
                  )}
                </h3>
                {typeof step.real === "string" && !step.same ? (
                  <Expectation
                    real={step.real}
                    expected={{ observation: step.observation }}
                    names={["World model", "Real world"]}
                  />
                ) : (
                  <Answer
                    real={{ text: step.observation, length: step.observation.length }}
                    expected={expected}
                  />
                )}
                {step.real === null && <p class="hint">The real episode has ended.</p>}
                {step.same && <p class="hint">✓ Same as the real world.</p>}
                {step.note !== undefined && <p class="hint">{visible(step.note)}</p>}
              </div>
            </div>
          );
        })}
        {game.over && (
          <p class="strong" role="status">
            {game.solved
              ? `✓ Solved in ${count(game.steps.length, "step")}.`
              : `Ended after ${count(game.steps.length, "step")}.`}
          </p>
        )}
      </section>
      <aside class="moves" aria-label="Your next action">
        {!game.over && (
          <form
            class="filters"
            onSubmit={(event) => {
              event.preventDefault();
              submit();
            }}
          >
            <label class="wide">
              Action
              <input
                value={typed}
                list="actions"
                autocomplete="off"
                onInput={(event) => setTyped(event.currentTarget.value)}
              />
            </label>
            <datalist id="actions">
              {game.admissible.map((action) => (
                <option value={action} />
              ))}
            </datalist>
            <button type="submit" disabled={busy || typed.trim() === ""}>
              Send
            </button>
          </form>
        )}
        <p>
          <button type="button" onClick={props.undo} disabled={busy || !game.canUndo}>
            Undo
          </button>{" "}
          {game.hasExpert && !game.over && (
            <button type="button" onClick={props.askHint} disabled={busy}>
              Ask the expert
            </button>
          )}
        </p>
        {props.hint !== undefined && (
          <p role="status">
            Expert: <code>{visible(props.hint)}</code>
          </p>
        )}
        {thoughts !== undefined && <Thoughts of={thoughts} busy={busy} act={props.act} />}
        {game.tools.length > 0 && (
          <details open>
            <summary>Tools</summary>
            <dl class="fields">
              {game.tools.map(({ name, description }) => (
                <div>
                  <dt>
                    <code>{visible(name)}</code>
                  </dt>
                  <dd>{visible(description)}</dd>
                </div>
              ))}
            </dl>
          </details>
        )}
        {game.admissible.length > 0 && (
          <details open={thoughts === undefined}>
            <summary>{game.admissible.length} possible actions</summary>
            <ul class="actions">
              {game.admissible.map((action) => (
                <li>
                  <button
                    type="button"
                    class="small"
                    disabled={busy}
                    onClick={() => void props.act(action)}
                  >
                    {visible(action)}
                  </button>
                </li>
              ))}
            </ul>
          </details>
        )}
      </aside>
    </div>
  );
}
