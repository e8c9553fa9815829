/**
 * Settings that belong together: `--help all` of a command with many settings has one line for each
 * group, and docs/reference/commands.md documents each once.
 */

/** What the settings of a group are about, by the group's key. */
export const settingGroups: Readonly<Record<string, string>> = {
  limits: "how long a world may take, and how long its texts may be",
  prompt: "how the model is asked: style, history, template, form of answers",
  engine: "where the model is computed, LoRA adapters, a separate sampler",
  warmStart: "teacher episodes to imitate before RL",
  sft: "how episodes are imitated (SFT)",
  rollout: "the pace of episodes, and what happens to the slowest",
  corrections: "a teacher takes over failed episodes",
  advantage: "the advantage estimator and its settings",
  critic: "PPO's critic",
  objective: "the policy loss: clipping, KL penalty, entropy bonus",
  paw: "the world-model loss that is trained with the policy (PaW)",
  optimizer: "AdamW and the learning-rate schedule",
  evaluation: "when to evaluate, and on which tasks",
  gradients: "measuring the gradients of both losses",
  track: "trackers that the run is sent to",
  alarms: "when training counts as gone wrong",
  chat: "a chat model behind OpenAI's API",
  policy: "who plays, and the chat model if it is one",
  player: "the chat model that plays, and how it is asked",
  protocol: "how a world model is asked for the next observation",
  anchor: "when an episode inside a world model is compared with the real world",
  collect: "where triplets come from",
  filter: "leaving out triplets that are too easy",
  reward: "how predictions are scored",
  encoder: "the sentence encoder of the embeddings",
  task: "RL on the task in addition to predictions",
  heldOut: "what is held out to be measured",
  server: "the PyTorch servers that are started",
  train: "settings of pawl train",
  rwml: "settings of pawl rwml",
  world: "settings of pawl wm train",
};

/** The groups that a setting is in, from the outermost: their paths. */
export function groupsOf(path: readonly string[]): readonly (readonly string[])[] {
  return path
    .slice(0, -1)
    .flatMap((key, i) => (Object.hasOwn(settingGroups, key) ? [path.slice(0, i + 1)] : []));
}
