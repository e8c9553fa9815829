/**
 * The verifier: before a policy takes an irreversible action, a world model predicts its outcome.
 *
 * An irreversible action is carried out only if success is predicted; otherwise the policy is asked
 * again, with the reason if its prompts have words for it. In a conversation the reason answers the
 * action like any message, and is a step of the episode. Every question counts against the budget of
 * the episode; once that is spent, actions are carried out unchecked. If the world can be
 * copied, the real outcome is known, which gives the counts of prevented mistakes and of false
 * alarms.
 */
import { isRemote } from "@pawl/core/envs/env.js";
import { mixSeed } from "@pawl/core/random.js";
import type { Policy, Reply, Situation } from "@pawl/core/rollout/policy.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import { readAction } from "@pawl/core/text/verbatim.js";
import { situationQuery, type WorldModel } from "./model.js";

/** Predicts, for situations and actions, whether the goal would be reached. */
export type OutcomePredictor = (
  questions: readonly { readonly situation: Situation; readonly action: string }[],
  signal?: AbortSignal,
) => Promise<readonly boolean[]>;

/** Asks a trained world model. */
export function modelPredictor(model: WorldModel): OutcomePredictor {
  return async (questions, signal) => {
    const predictions = await model.predict(
      questions.map(({ situation, action }) => situationQuery(situation, action)),
      signal,
    );
    return predictions.map(({ success }) => success);
  };
}

/** Tries the action in an exact copy of the world: the best any world model could do. */
export const exactPredictor: OutcomePredictor = async (questions) =>
  questions.map(({ situation, action }) => {
    const truth = truthOf(situation, action);
    if (truth === undefined) {
      throw new Error(
        `An exact verifier copies the world, but task ${situation.task.id} runs behind a server. Use a trained world model.`,
      );
    }
    return truth;
  });

/** Counts over episodes. */
export interface VerifierCounts {
  /** Irreversible actions the policy wanted to take. */
  irreversible: number;
  /** Questions to the model. */
  checks: number;
  /** Actions it advised against. */
  vetoes: number;
  /** Vetoes of actions that would have failed. */
  prevented: number;
  /** Vetoes of actions that would have succeeded. */
  falseAlarms: number;
  /** Actions it agreed to that failed. */
  missed: number;
  /** Irreversible actions that were carried out unchecked because the budget was spent. */
  unchecked: number;
}

/** How to verify. */
export interface VerifierOptions {
  readonly predictor: OutcomePredictor;
  /** Questions per episode. */
  readonly budget: number;
  readonly style: PromptStyle;
}

/** A policy whose irreversible actions are checked, and the counts of the outcomes. */
export function verifiedPolicy(
  policy: Policy,
  { predictor, budget, style }: VerifierOptions,
): { readonly policy: Policy; readonly counts: Readonly<VerifierCounts> } {
  const counts: VerifierCounts = {
    irreversible: 0,
    checks: 0,
    vetoes: 0,
    prevented: 0,
    falseAlarms: 0,
    missed: 0,
    unchecked: 0,
  };
  const spent = new Map<string, number>();
  // Markers are tokens of small models, which have not learnt to read such notes.
  const tells = style.responseEnd === "";
  // A conversation goes on from its own tokens, so that nothing can be put into what was read.
  const answers = tells && style.continuing;

  const act = async (
    situations: readonly Situation[],
    signal?: AbortSignal,
  ): Promise<readonly Reply[]> => {
    for (const situation of situations) if (situation.index === 0) spent.delete(keyOf(situation));
    const asked = [...situations];
    const replies = [...(await policy.act(situations, signal))];
    const vetoed = situations.map(() => new Set<string>());
    let open = situations.map((_, at) => at);
    while (open.length > 0) {
      const questions = open.flatMap((at) => {
        const situation = situations[at]!;
        const { action } = readAction(style, replies[at]!.response, {
          tools: situation.tools,
          whiteSpace: "collapse",
        });
        if (replies[at]!.overflow || situation.env.irreversible?.(action) !== true) return [];
        counts.irreversible += 1;
        const used = spent.get(keyOf(situation)) ?? 0;
        if (used >= budget) {
          counts.unchecked += 1;
          return [];
        }
        spent.set(keyOf(situation), used + 1);
        return [{ at, situation, action }];
      });
      if (questions.length === 0) break;
      const foreseen = await predictor(questions, signal);
      const rejected = questions.filter((question, i) => {
        record(counts, foreseen[i]!, truthOf(question.situation, question.action));
        return !foreseen[i]!;
      });
      if (answers) {
        for (const { at, action } of rejected)
          replies[at] = { ...replies[at]!, refusal: refusalOf(action) };
        break;
      }
      for (const { at, action } of rejected) {
        vetoed[at]!.add(action);
        asked[at] = askedAgain(situations[at]!, vetoed[at]!, tells ? style : undefined, asked[at]!);
      }
      const again =
        rejected.length === 0
          ? []
          : await policy.act(
              rejected.map(({ at }) => asked[at]!),
              signal,
            );
      rejected.forEach(({ at }, i) => {
        replies[at] = { prompt: asked[at]!.prompt, ...again[i]! };
      });
      open = rejected.map(({ at }) => at);
    }
    return replies;
  };
  return { policy: { ...policy, name: `${policy.name}, verified`, act }, counts };
}

function record(counts: VerifierCounts, foreseen: boolean, truth: boolean | undefined): void {
  counts.checks += 1;
  if (!foreseen) counts.vetoes += 1;
  if (truth === undefined) return;
  if (!foreseen && truth) counts.falseAlarms += 1;
  if (!foreseen && !truth) counts.prevented += 1;
  if (foreseen && !truth) counts.missed += 1;
}

/** Whether the action would reach the goal in the real world, if that can be copied at once. */
function truthOf({ env }: Situation, action: string): boolean | undefined {
  return isRemote(env) ? undefined : env.clone().step(action).info.success;
}

const refusalOf = (action: string): string => `"${action}" would not reach the goal now.`;

/** The same situation after a veto: another sample, without the actions advised against. */
function askedAgain(
  situation: Situation,
  vetoed: ReadonlySet<string>,
  style: PromptStyle | undefined,
  before: Situation,
): Situation {
  const admissible = situation.admissible?.filter((action) => !vetoed.has(action));
  const memory = [...vetoed].map(refusalOf);
  return {
    ...situation,
    // If nothing else is possible, the policy may insist.
    admissible: admissible?.length === 0 ? situation.admissible : admissible,
    seed: mixSeed(before.seed, "again"),
    ...(style && { prompt: style.render({ ...situation, memory }) }),
  };
}

const keyOf = ({ group, attempt, task }: Situation): string => `${group} ${attempt} ${task.id}`;
