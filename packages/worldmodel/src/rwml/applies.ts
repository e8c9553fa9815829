/** When settings of RWML have an effect, beside those that it shares with training. */
import type { Applies } from "@pawl/core/config/applies.js";
import { settingConditions } from "@pawl/training/applies.js";
import type { RwmlConfig } from "./config.js";
import { encoderPlace } from "./reward.js";

type Conditional = Partial<Pick<RwmlConfig, "filter" | "collect" | "task" | "reward">>;

const OWN: readonly Applies<Conditional>[] = [
  {
    settings: ["collect.episodes", "collect.epsilon"],
    by: ["collect.runs"],
    needs: "a model that plays, without collect.runs",
    holds: ({ collect }) => collect?.runs.length === 0,
  },
  {
    settings: ["task"],
    by: ["task.groups"],
    needs: "task.groups above 0",
    holds: ({ task }) => (task?.groups ?? 0) > 0,
  },
  {
    settings: ["reward.encoder.model", "reward.encoder.apiKeyVariable"],
    by: ["reward.encoder.from"],
    needs: "reward.encoder.from the URL of an endpoint",
    holds: ({ reward }) => reward !== undefined && encoderPlace(reward) === "endpoint",
  },
  {
    settings: ["reward.encoder.threads", "reward.encoder.pooling"],
    by: ["reward.encoder.from"],
    needs: "an encoder that runs here",
    holds: ({ reward }) => reward !== undefined && encoderPlace(reward) === "here",
  },
  {
    settings: ["filter"],
    by: ["filter.share"],
    needs: "filter.share above 0 (the paper's is 0.1)",
    holds: ({ filter }) => (filter?.share ?? 0) > 0,
  },
];

/** The conditions of RWML. */
export const rwmlConditions = (): readonly Applies<never>[] => [...settingConditions(), ...OWN];
