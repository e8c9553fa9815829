/** When settings of training have an effect; `packages/core/src/config/applies.ts` refuses them elsewhere. */

import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { usesCritic } from "@pawl/core/advantages/advantages.js";
import {
  type Applies,
  type Given,
  type PlaceOf,
  refuseIgnored,
} from "@pawl/core/config/applies.js";
import { valueAt } from "@pawl/core/config/settings-tree.js";
import { isRemote } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { policyLossesBySetting } from "@pawl/core/objectives/policy-losses.js";
import { worldLossesBySetting } from "@pawl/core/objectives/world-losses.js";
import { hasOwnCritic } from "@pawl/core/train/critic.js";
import { mayBeStale } from "@pawl/core/train/staleness.js";
import { isPreset, PRESETS } from "@pawl/engine-cpu/init.js";
import type { z } from "zod";
import type { TrainConfig } from "./config.js";
import { isRemote as isEngineServer } from "./engines.js";

/** What the conditions look at: other kinds of training have some of it. */
export type Conditional = Partial<
  Pick<TrainConfig, "env" | "prompt" | "engine" | "rollout" | "overlap" | "corrections"> &
    Pick<TrainConfig, "distillation"> &
    Pick<TrainConfig, "advantage" | "critic" | "objective" | "paw" | "track">
> & {
  readonly model?: { readonly start: string };
  readonly warmStart?: TrainConfig["warmStart"];
  readonly evaluation?: { readonly every?: number };
};

/** The conditions, with those of plugins' losses. */
export function settingConditions(): readonly Applies<Conditional>[] {
  return [
    {
      settings: ["model.maxContext"],
      by: ["model.start"],
      needs: `model.start ${Object.keys(PRESETS).join(" or ")}; other models have a context of their own`,
      holds: ({ model }) => isPreset(model?.start),
    },
    {
      settings: ["prompt.toolCalls"],
      by: ["env.name"],
      needs: "an environment whose actions are tool calls",
      holds: ({ env }) => env === undefined || actsByTools(env),
    },
    {
      settings: ["rollout.rows", "rollout.stragglerSeconds", "rollout.stragglers"],
      by: ["rollout.pace"],
      needs: "rollout.pace own",
      holds: ({ rollout }) => rollout?.pace === "own",
    },
    {
      settings: ["rollout.stragglers"],
      by: ["rollout.stragglerSeconds"],
      needs: "rollout.stragglerSeconds",
      holds: ({ rollout }) => rollout?.stragglerSeconds !== undefined,
    },
    {
      settings: ["rollout.branch.width", "rollout.branch.choose"],
      by: ["rollout.branch.points"],
      needs: "rollout.branch.points above 0",
      holds: ({ rollout }) => (rollout?.branch.points ?? 0) > 0,
    },
    ...ENGINE,
    ...WARM_START,
    {
      // The temperature is also that of later evaluations of the run's model.
      settings: ["splits", "tasks", "shuffle", "trajectories"].map((name) => `evaluation.${name}`),
      by: ["evaluation.every"],
      needs: "evaluation.every above 0",
      holds: ({ evaluation }) => evaluation?.every !== 0,
    },
    {
      settings: ["track"],
      by: ["track.to"],
      needs: "track.to",
      holds: ({ track }) => (track?.to.length ?? 0) > 0,
    },
    {
      settings: ["alarms.kl"],
      by: ["objective.kl"],
      needs: "objective.kl above 0",
      holds: ({ objective }) => (objective?.kl ?? 0) > 0,
    },
    {
      settings: ["advantage.penaltyPlace", "advantage.penaltyOn"],
      by: ["advantage.penalty"],
      needs: "advantage.penalty above 0",
      holds: ({ advantage }) => Number(advantage?.penalty) > 0,
    },
    {
      settings: ["advantage.similarity"],
      by: ["advantage.stepWeight"],
      needs: "advantage.stepWeight above 0",
      holds: ({ advantage }) => comparesSteps(advantage),
    },
    {
      settings: ["advantage.gamma"],
      by: ["advantage.stepWeight"],
      needs: "in gigpo advantage.stepWeight above 0",
      holds: ({ advantage }) => comparesSteps(advantage),
    },
    {
      settings: ["corrections"],
      by: ["corrections.episodes"],
      needs: "corrections.episodes above 0",
      holds: ({ corrections }) => (corrections?.episodes ?? 0) > 0,
    },
    {
      settings: ["distillation"],
      by: ["distillation.teacher"],
      needs: "distillation.teacher",
      holds: ({ distillation }) => distillation?.teacher !== undefined,
    },
    {
      settings: ["advantage"],
      by: ["distillation.teacher", "distillation.rewards"],
      needs: "distillation.rewards, because otherwise only the teacher's opinion counts",
      holds: ({ distillation }) =>
        distillation?.teacher === undefined || distillation.rewards === true,
    },
    {
      settings: ["critic.weights", "objective.valueClip", "objective.valueCoefficient"],
      by: ["advantage.name"],
      needs: "advantage ppo",
      holds: ({ advantage }) => advantage !== undefined && usesCritic(advantage),
    },
    {
      settings: ["critic.learningRate", "critic.engine"],
      by: ["advantage.name", "critic.weights"],
      needs: "advantage ppo and critic.weights own",
      holds: ({ advantage, critic }) =>
        advantage !== undefined && critic !== undefined && hasOwnCritic({ advantage, critic }),
    },
    {
      settings: ["objective.importanceCap"],
      by: ["engine.sampler", "overlap", "rollout.stragglers"],
      needs: "engine.sampler, overlap 1 or rollout.stragglers carry",
      holds: ({ engine, overlap = 0, rollout }) =>
        engine?.sampler !== undefined ||
        (rollout !== undefined && mayBeStale({ overlap, rollout })),
    },
    ...[...policyLossesBySetting()].map(([name, losses]) => ({
      settings: [`objective.${name}`],
      by: ["objective.loss"],
      needs: `objective.loss ${losses.join(" or ")}`,
      holds: ({ objective }: Conditional) => losses.includes(objective?.loss ?? ""),
    })),
    ...PAW,
    ...[...worldLossesBySetting()].map(([name, losses]) => ({
      settings: [`paw.${name}`],
      by: ["paw.loss"],
      needs: `paw.loss ${losses.join(" or ")}`,
      holds: ({ paw }: Conditional) => losses.some((loss) => loss === paw?.loss),
    })),
  ];
}

/** Who gave the settings, and where. */
export interface GivenOptions {
  readonly given?: Given | undefined;
  readonly placeOf?: PlaceOf | undefined;
  /** A resumed run has the settings that it was recorded with. */
  readonly resume?: boolean | undefined;
  /** The conditions of a command that has more of them (default: those of training). */
  readonly conditions?: readonly Applies<never>[];
}

/** Refuses settings that were given and have no effect. */
export function refuseIgnoredSettings<S extends z.ZodObject>(
  schema: S,
  config: z.output<S> & Conditional,
  {
    given = () => true,
    placeOf,
    resume = false,
    conditions = settingConditions(),
  }: GivenOptions = {},
): void {
  if (!resume) refuseIgnored(schema, config, conditions, given, placeOf);
}

const ENGINE: readonly Applies<Conditional>[] = [
  {
    settings: ["engine.loraAlpha", "engine.loraTargets"],
    by: ["engine.address"],
    needs: "the embedded engine",
    holds: ({ engine }) => engine !== undefined && !isEngineServer(engine),
  },
  {
    settings: ["engine.model", "engine.copy"],
    by: ["engine.address"],
    needs: "an engine server: engine http://…",
    holds: ({ engine }) => engine !== undefined && isEngineServer(engine),
  },
  {
    settings: ["engine.loraAlpha", "engine.loraTargets"],
    by: ["engine.loraRank"],
    needs: "engine.loraRank above 0",
    holds: ({ engine }) => (engine?.loraRank ?? 0) > 0,
  },
  {
    settings: ["engine.samplerModel", "engine.samplerFolder"],
    by: ["engine.sampler"],
    needs: "engine.sampler",
    holds: ({ engine }) => engine?.sampler !== undefined,
  },
];

const WARM_START: readonly Applies<Conditional>[] = [
  {
    settings: ["warmStart"],
    by: ["warmStart.episodes"],
    needs: "warmStart.episodes above 0",
    holds: ({ warmStart }) => (warmStart?.episodes ?? 0) > 0,
  },
  {
    settings: ["warmStart.teacher", "warmStart.epsilon"],
    by: ["warmStart.runs", "warmStart.data"],
    needs: "a teacher that plays, without warmStart.runs and warmStart.data",
    holds: ({ warmStart }) => warmStart?.runs.length === 0 && warmStart.data.length === 0,
  },
  {
    settings: ["warmStart.minReturn"],
    by: ["warmStart.runs"],
    needs: "recorded runs: warmStart.runs",
    holds: ({ warmStart }) => (warmStart?.runs.length ?? 0) > 0,
  },
  {
    settings: ["warmStart.sft.randomActions"],
    by: ["warmStart.epsilon", "warmStart.runs", "warmStart.data"],
    needs: "warmStart.epsilon above 0 or warmStart.runs",
    holds: ({ warmStart: { epsilon, runs, data } = { epsilon: 0, runs: [], data: [] } }) =>
      runs.length > 0 || (epsilon > 0 && data.length === 0),
  },
  {
    settings: ["warmStart.sft.actionWeight"],
    by: ["warmStart.sft.mean", "warmStart.sft.observationWeight"],
    needs: "warmStart.sft.mean each or warmStart.sft.observationWeight above 0",
    holds: ({ warmStart }) =>
      warmStart?.sft.mean === "each" || (warmStart?.sft.observationWeight ?? 0) > 0,
  },
  {
    settings: ["warmStart.sft.mean"],
    by: ["warmStart.sft.actionWeight", "warmStart.sft.observationWeight"],
    needs: "both weights of warmStart.sft above 0",
    holds: ({ warmStart }) =>
      Math.min(warmStart?.sft.actionWeight ?? 0, warmStart?.sft.observationWeight ?? 0) > 0,
  },
];

const PAW: readonly Applies<Conditional>[] = [
  {
    settings: ["paw"],
    by: ["paw.loss"],
    needs: "a loss: paw.loss (the paper's is cmae)",
    holds: ({ paw }) => paw?.loss !== "off",
  },
];

/** Whether an estimator's γ and anchors count: GiGPO's only compare steps. */
const comparesSteps = (advantage: Conditional["advantage"]): boolean =>
  advantage?.name !== "gigpo" || Number(valueAt(advantage, ["stepWeight"])) > 0;

/** Whether actions are calls of tools; an agent's program may always offer some. */
function actsByTools(env: NonNullable<Conditional["env"]>): boolean {
  const environment = openEnvironment({ ...env, name: String(env.name) });
  if (isAgentEnvironment(environment)) return true;
  const world = environment.create();
  if (isRemote(world)) void world.close().catch(() => undefined);
  return world.tools !== undefined;
}
