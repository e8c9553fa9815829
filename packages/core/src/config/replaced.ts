/** Removed settings, with what replaced them or why they went, for callers that still give one. */
import { didYouMean, nearest } from "../text/nearest.js";

const REPLACED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "engine.name": "It is now called engine.address, or --engine for short.",
    patience: "It is now called invalidActionLimit.",
    balance: "It is now called paw.lambda.",
    normaliser: "It is now called aggregation: token-mean (was tokens) or group-mean (was paper).",
    strays: "It is now called randomActions.",
    lanes: "It is now called concurrency.",
    gradientSample:
      "Gradients are now measured on whole updates: gradients.every sets how often (0: never).",
    counterfactual: "It was removed: it taught no more than ECHO (docs/results/knowledge.md).",
    "choose.critic":
      "It was removed: a critic's values added nothing to votes (docs/results/knowledge.md).",
  }),
);

/** What people call settings elsewhere. The keys are the last part of a flag, without dashes. */
const SYNONYMS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    lr: ["optimizer.learning-rate", "learning-rate"],
    model: ["model.start", "checkpoint", "policy.model"],
    modelname: ["model.start", "checkpoint", "policy.model"],
    checkpoint: ["model.start", "resume"],
    episodes: ["groups", "group-size", "tasks"],
    batch: ["groups", "group-size", "minibatch"],
    batchsize: ["groups", "group-size", "minibatch"],
    minibatchsize: ["minibatch"],
    n: ["group-size"],
    numgenerations: ["group-size"],
    rollouts: ["group-size", "groups"],
    steps: ["updates", "step-limit"],
    maxsteps: ["step-limit", "updates"],
    epochs: ["updates"],
    iterations: ["updates"],
    maxnewtokens: ["max-tokens"],
    maxlength: ["model.max-context", "max-tokens"],
    contextlength: ["model.max-context"],
    klcoef: ["objective.kl"],
    beta: ["objective.kl"],
    clip: ["objective.clip-low", "objective.clip-high"],
    clipratio: ["objective.clip-low", "objective.clip-high"],
    epsilon: ["objective.clip-low", "policy.epsilon"],
    entropycoef: ["objective.entropy"],
    gaelambda: ["advantage.lambda"],
    discount: ["advantage.gamma"],
    gradnorm: ["optimizer.grad-clip-norm"],
    maxgradnorm: ["optimizer.grad-clip-norm"],
    wd: ["weight-decay"],
    algorithm: ["advantage"],
    algo: ["advantage"],
    device: ["engine"],
    gpu: ["engine"],
    server: ["engine"],
    lora: ["engine.lora-rank"],
    evalevery: ["evaluation.every"],
    output: ["out"],
    outputdir: ["out"],
    outdir: ["out"],
    dir: ["out"],
    environment: ["env"],
    world: ["env"],
    verbose: ["full"],
    threads: ["engine.threads"],
    numenvs: ["concurrency", "rollout.rows", "groups"],
    numworkers: ["engine.threads", "concurrency"],
    numthreads: ["engine.threads"],
    wandb: ["track"],
    mlflow: ["track"],
    trackio: ["track"],
    tracker: ["track"],
    reportto: ["track"],
    logger: ["track"],
    loggers: ["track"],
  }),
);
/** More suggestions than this would not help. */
const SUGGESTED = 4;

/** Flags that end like this one, or that have another name for what it says. */
function alike(flag: string, known: readonly string[]): readonly string[] {
  const last = flag.split(".").at(-1)!.replace(/^--/, "");
  const depth = (one: string) => one.split(".").length;
  const endsWith = (ending: string) =>
    known
      .filter((one) => one === `--${ending}` || one.endsWith(`.${ending}`))
      .sort((a, b) => depth(a) - depth(b));
  // What has exactly the other name is meant, not what ends with it elsewhere.
  const called = (other: string) =>
    known.includes(`--${other}`) ? [`--${other}`] : endsWith(other);
  const synonyms = SYNONYMS.get(last.replaceAll("-", "").toLowerCase()) ?? [];
  return [...new Set([...synonyms.flatMap(called), ...endsWith(last)])].slice(0, SUGGESTED);
}

/** The last part of a flag, or what people call one, that this one is nearest to. */
function mistyped(flag: string, known: readonly string[]): string {
  const last = (one: string): string => one.split(".").at(-1)!.replace(/^--/, "");
  return nearest(last(flag), [...SYNONYMS.keys(), ...known.map(last)]) ?? "";
}

/**
 * The hint for an unknown setting or flag, with a leading space: its replacement, what others call
 * it, or the nearest name.
 */
export function hintFor(name: string, known: Iterable<string>): string {
  const path = name.replace(/^--/, "").replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
  const replaced = REPLACED.get(path) ?? REPLACED.get(path.split(".").at(-1)!);
  if (replaced !== undefined) return ` ${replaced}`;
  const all = [...known];
  const others = name.startsWith("--") ? alike(name, all) : [];
  const near = others.length === 0 ? didYouMean(name, all) : "";
  if (near !== "" || !name.startsWith("--")) return near;
  const meant = others.length > 0 ? others : alike(mistyped(name, all), all);
  if (meant.length === 0) return "";
  const quoted = meant.map((one) => `"${one}"`);
  return ` Did you mean ${quoted.join(quoted.length > 2 ? ", " : " or ")}?`;
}
