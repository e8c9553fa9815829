/** When settings of training have an effect; `config/applies.ts` refuses them elsewhere. */
import type { z } from "zod";
import { usesCritic } from "../advantages/advantages.js";
import { isAgentEnvironment } from "../agents/agent-environment.js";
import { type Applies, type Given, type PlaceOf, refuseIgnored } from "../config/applies.js";
import { isRemote } from "../envs/env.js";
import { openEnvironment } from "../envs/open.js";
import { CLIP, policyLossesBySetting } from "../objectives/policy-losses.js";
import { worldLossesBySetting } from "../objectives/world-losses.js";
import type { TrainConfig } from "./config.js";
import { hasOwnCritic } from "./critic.js";
import { PRESETS } from "./open-model.js";
import type { RwmlConfig } from "./rwml-config.js";
import { mayBeStale } from "./staleness.js";

/** What the conditions look at: other kinds of training have some of it. */
export type Conditional = Partial<
  Pick<TrainConfig, "env" | "prompt" | "engine" | "rollout" | "overlap" | "corrections"> &
    Pick<TrainConfig, "advantage" | "critic" | "objective" | "paw"> &
    Pick<RwmlConfig, "model" | "filter">
>;

/** The conditions, with those of plugins' losses. */
export function settingConditions(): readonly Applies<Conditional>[] {
  return [
    {
      settings: ["model.maxContext"],
      by: ["model.start"],
      needs: `model.start ${PRESETS.join(" or ")}; other models have a context of their own`,
      holds: ({ model }) => PRESETS.some((preset) => preset === model?.start),
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
      settings: ["filter"],
      by: ["filter.share"],
      needs: "filter.share above 0 (the paper's is 0.1)",
      holds: ({ filter }) => (filter?.share ?? 0) > 0,
    },
    {
      settings: ["corrections"],
      by: ["corrections.episodes"],
      needs: "corrections.episodes above 0",
      holds: ({ corrections }) => (corrections?.episodes ?? 0) > 0,
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
    {
      settings: ["objective.clipLow", "objective.clipHigh", "objective.dualClip"],
      by: ["objective.loss"],
      needs: `objective.loss ${CLIP}`,
      holds: ({ objective }) => objective?.loss === CLIP,
    },
    ...[...policyLossesBySetting()].map(([name, losses]) => ({
      settings: [`objective.${name}`],
      by: ["objective.loss"],
      needs: `objective.loss ${losses.join(" or ")}`,
      holds: ({ objective }: Conditional) => losses.includes(objective?.loss ?? CLIP),
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
}

/** Refuses settings that were given and have no effect. */
export function refuseIgnoredSettings<S extends z.ZodObject>(
  schema: S,
  config: z.output<S> & Conditional,
  { given = () => true, placeOf, resume = false }: GivenOptions = {},
): void {
  if (!resume) refuseIgnored(schema, config, settingConditions(), given, placeOf);
}

const PAW: readonly Applies<Conditional>[] = [
  {
    settings: ["paw"],
    by: ["paw.loss"],
    needs: "a loss: paw.loss (the paper's is cmae)",
    holds: ({ paw }) => paw?.loss !== "off",
  },
];

/** Whether actions are calls of tools; an agent's program may always offer some. */
function actsByTools(env: NonNullable<Conditional["env"]>): boolean {
  const environment = openEnvironment({ ...env, name: String(env.name) });
  if (isAgentEnvironment(environment)) return true;
  const world = environment.create();
  if (isRemote(world)) void world.close().catch(() => undefined);
  return world.tools !== undefined;
}
