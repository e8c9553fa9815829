/** The smallest line of each command, for checks that run them all. */

/** A command line, what is typed, and whether it serves until Ctrl-C. */
export interface Line {
  readonly args: readonly string[];
  readonly input?: string;
  readonly serves?: boolean;
  /** How it ends, if not well: there is nothing to find in so little. */
  readonly code?: number;
}

/** Arguments without blanks in them. */
export const words = (text: string): readonly string[] => text.split(" ");
const learning =
  "--warm-start.episodes 8 --warm-start.sft.epochs 1 --updates 1 --groups 2 --group-size 2 --step-limit 3 --evaluation.every 0";
const room = "--env household --env.rooms 1 --env.receptacles 4 --env.objects 3";

/** The smallest line of each command, in an order in which each finds what it needs. */
export const lines: Readonly<Record<string, Line>> = {
  train: { args: words(`--quick ${learning} --prompt.style chat --out run`) },
  eval: { args: words("--checkpoint run --tasks 2 --out evaluated") },
  export: { args: words("run --out exported") },
  "model info": { args: ["exported"] },
  "model convert": { args: words("exported --out converted") },
  "model chat": { args: words("exported --max-tokens 4"), input: "hello\n" },
  rwml: {
    args: words(
      "--model.start run --reward rouge --collect.episodes 3 --updates 1 --triplets 2 --group-size 2 --filter.share 0 --prediction-tokens 8 --step-limit 2 --max-tokens 8 --evaluation.every 0 --out rwml",
    ),
  },
  rollout: { args: words("--groups 2 --group-size 2 --out played") },
  play: { args: words("--env household"), input: "look\n" },
  runs: { args: ["."] },
  check: { args: ["run"] },
  replay: { args: ["run"] },
  report: { args: words("run --out report.html") },
  show: { args: ["played"] },
  "env list": { args: [] },
  "env info": { args: ["household"] },
  "env new": { args: words("mine --dir new") },
  "env export": { args: words("--count 2 --out harbor") },
  "env prompt": { args: words("--env household") },
  "env check": { args: ["household"] },
  "env replay": { args: words("--env household --file traces.jsonl"), code: 1 },
  "wm data": { args: words(`${room} --mix expert:6 --test 0.4 --step-limit 4 --out data`) },
  "wm train": { args: words("--data data --epochs 1 --model.max-context 256 --out world") },
  "wm eval fidelity": {
    args: words("--data data --part all --trajectories 1 --model world --max-tokens 4"),
  },
  "wm eval consistency": {
    args: words(`--model world ${room} --tasks 1 --step-limit 2 --max-tokens 4`),
  },
  "wm eval verifier": { args: words("--env webshop --policy expert --tasks 1 --budgets 1") },
  "wm forgetting": { args: words("--start exported rwml") },
  "serve model": { args: words("run --port 0"), serves: true },
  "serve retriever": { args: words("--port 0"), serves: true },
  "serve env": { args: words("--env household --port 0"), serves: true },
  ui: { args: words(". --port 0"), serves: true },
  try: { args: words("try --port 0"), serves: true },
  rescore: { args: words("played --reward ./reward.ts --out rescored.jsonl") },
  "serve mcp": { args: words("--env desk"), input: "" },
  completion: { args: ["bash"] },
  complete: { args: ["pawl", "tr"] },
};

/** Files that some of the lines read. */
export const FILES: Readonly<Record<string, string>> = {
  "traces.jsonl": "",
  "reward.ts": "export default () => 1;\n",
};
