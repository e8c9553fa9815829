/** An agent at work: what it does, what it expects, and what comes; a button trains it. */

import type { NextActions, PlayView, Surprise, Trial } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Answer, AsExpected } from "./expectation.js";
import { count, shortPercent } from "./format.js";
import { Problem } from "./load.js";
import { ask } from "./server.js";
import { Text, visible } from "./text.js";
import { Training, useTrained } from "./training.js";

/** An action, what the agent expected of it, and what came. */
interface Move {
  readonly action: string;
  readonly p: number;
  readonly expected: string;
  readonly came?: string;
  readonly tokens?: Surprise["tokens"];
}

/** What happened since the page was opened. */
interface Tally {
  readonly played: number;
  readonly solved: number;
  readonly expected: number;
  readonly right: number;
}

/** Milliseconds that a move is looked at. */
const PACES = { slow: 2600, usual: 1300, fast: 250 } as const;
type Pace = keyof typeof PACES;

/** The page of `pawl try`. */
export function Try({ trial }: { readonly trial: Trial }): JSX.Element {
  const [pace, setPace] = useState<Pace>("usual");
  const live = useTrained(trial.trained);
  const agent = live.isReady ? trial.trained : trial.start;
  const { game, moves, tally, problem, mode, setMode } = useAgent(trial, agent, PACES[pace]);
  return (
    <>
      <h1>An agent that knows what its actions do</h1>
      <p class="lead">
        It acts in a small household, and before each action it says what will come. The same small
        network does both.
      </p>
      {problem !== undefined && <Problem>{visible(problem)}</Problem>}
      <div class="game">
        <section class="conversation" aria-label="The agent at work">
          <form class="filters" onSubmit={(event) => event.preventDefault()}>
            <button type="button" onClick={() => setMode(mode === "on" ? "waiting" : "on")}>
              {mode === "on" ? "Pause" : "Go on"}
            </button>
            <button type="button" onClick={() => setMode("once")} disabled={mode !== "waiting"}>
              Step
            </button>
            <label class="inline">
              Pace{" "}
              <select value={pace} onChange={(event) => setPace(event.currentTarget.value as Pace)}>
                {Object.keys(PACES).map((name) => (
                  <option value={name}>{name}</option>
                ))}
              </select>
            </label>
          </form>
          {game === undefined ? (
            <p class="waiting">Starting…</p>
          ) : (
            <Episode game={game} moves={moves} />
          )}
        </section>
        <aside class="moves">
          <dl class="facts">
            <div>
              <dt>agent</dt>
              <dd>{live.isReady ? `after update ${live.row?.update ?? 0}` : "after imitation"}</dd>
            </div>
            <div>
              <dt>tasks solved here</dt>
              <dd>
                {tally.solved} of {tally.played}
              </dd>
            </div>
            <div>
              <dt>came as expected</dt>
              <dd>{tally.expected === 0 ? "–" : shortPercent(tally.right / tally.expected)}</dd>
            </div>
          </dl>
          <Training trial={trial} live={live} />
        </aside>
      </div>
    </>
  );
}

function Episode({
  game,
  moves,
}: {
  readonly game: PlayView;
  readonly moves: readonly Move[];
}): JSX.Element {
  return (
    <>
      <div class="said goal">
        <h2>Goal</h2>
        <Text of={game.goal} />
      </div>
      {game.over && (
        <p class="strong" role="status">
          {game.solved
            ? `✓ Solved in ${count(moves.length, "step")}.`
            : `✗ Not solved in ${count(moves.length, "step")}.`}
        </p>
      )}
      {moves
        .map((move, i) => (
          <div key={i}>
            <div class="said agent">
              <h3>
                Step {i + 1} <span class="quiet">probability {shortPercent(move.p)}</span>
              </h3>
              <code class="action">{visible(move.action)}</code>
            </div>
            <div class="said world">
              {move.came === undefined ? (
                <>
                  <h3>Expects</h3>
                  <div class="text">{visible(move.expected)}</div>
                </>
              ) : (
                <>
                  <h3>
                    World <AsExpected expected={{ observation: move.expected }} real={move.came} />
                  </h3>
                  <Answer
                    real={{ text: move.came, length: move.came.length }}
                    expected={{ observation: move.expected }}
                    tokens={move.tokens}
                  />
                </>
              )}
            </div>
          </div>
        ))
        .reverse()}
      <div class="said world">
        <h3>At first</h3>
        <Text of={game.firstObservation} />
      </div>
      <p class="legend">
        What came, token by token: the stronger the <span class="token low8">orange</span>, the less
        the agent expected it.
      </p>
    </>
  );
}

/** What the agent does: it goes on, it takes one step, or it waits. */
type Mode = "on" | "once" | "waiting";

/** Lets the agent play one task after another; a better agent takes over at its next move. */
function useAgent(trial: Trial, agent: string, pause: number) {
  const [mode, setMode] = useState<Mode>("on");
  const [game, setGame] = useState<PlayView>();
  const [moves, setMoves] = useState<readonly Move[]>([]);
  const [tally, setTally] = useState<Tally>({ played: 0, solved: 0, expected: 0, right: 0 });
  const [problem, setProblem] = useState<string>();
  // What the loop needs to know, without starting again.
  const now = useRef({ agent, pause, game, last: Promise.resolve() });
  Object.assign(now.current, { agent, pause, game });
  useEffect(() => {
    let stopped = mode === "waiting";
    const move = async (before: PlayView | undefined): Promise<PlayView> => {
      if (before === undefined || before.over) {
        const asked = { run: trial.start, split: "valid_unseen", replaces: before?.id };
        const started = await ask<PlayView>("play/start", {}, asked);
        setMoves([]);
        setGame(started);
        return started;
      }
      const { id } = before;
      const acting = now.current.agent;
      const thoughts = await ask<NextActions>("play/think", {}, { id, agent: acting });
      const chosen = drawn(thoughts);
      if (chosen === undefined) return { ...before, over: true };
      const { action, p, predicted = "" } = chosen;
      const expected: Move = { action, p, expected: predicted };
      setMoves((done) => [...done, expected]);
      await new Promise((resolve) => setTimeout(resolve, now.current.pause / 2));
      const after = await ask<PlayView>("play/step", {}, { id, action });
      const came = after.steps.at(-1)!.observation;
      const { tokens } = await ask<Surprise>("play/surprise", {}, { id, agent: acting });
      setMoves((done) => [...done.slice(0, -1), { ...expected, came, tokens }]);
      setGame(after);
      setTally(({ played, solved, expected: all, right }) => ({
        played: played + Number(after.over),
        solved: solved + Number(after.solved),
        expected: all + 1,
        right: right + Number(came.trim() === predicted.trim()),
      }));
      return after;
    };
    const play = async (): Promise<void> => {
      let state = now.current.game;
      let failed = 0;
      while (!stopped) {
        if (!document.hidden || mode === "once")
          try {
            state = await move(state);
            failed = 0;
          } catch (error) {
            // Once may be a checkpoint that was just replaced: it plays another task.
            if (++failed > 1) throw error;
            state = undefined;
          }
        if (mode === "once") return setMode("waiting");
        const rest = state?.over ? 2 * now.current.pause : now.current.pause;
        await new Promise((resolve) => setTimeout(resolve, rest));
      }
    };
    // A move that was begun before a pause ends first.
    now.current.last = now.current.last.then(play).then(
      () => setProblem(undefined),
      (error: Error) => {
        setProblem(error.message);
        setMode("waiting");
      },
    );
    return () => {
      stopped = true;
    };
  }, [mode]);
  return { game, moves, tally, problem, mode, setMode };
}

/** One of the likeliest actions, whose outcomes are foreseen, drawn by their probabilities. */
function drawn({ actions }: NextActions): NextActions["actions"][number] | undefined {
  const foreseen = actions.filter(({ predicted }) => predicted !== undefined);
  let left = Math.random() * foreseen.reduce((sum, { p }) => sum + p, 0);
  for (const one of foreseen) {
    left -= one.p;
    if (left <= 0) return one;
  }
  return foreseen.at(-1);
}
