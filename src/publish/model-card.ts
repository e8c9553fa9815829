/** The card of a published model: written from its run's manifest and its evaluations. */
import { stringify } from "yaml";
import type { Card } from "../evaluation/card.js";
import { resultTable, resultText } from "../evaluation/card-markdown.js";
import type { Manifest } from "../runs/manifest.js";
import { withoutSecrets } from "../secrets.js";

/** The configuration of the run, in the repository. */
export const CONFIG_FILE = "pawl.json";

/** What the card is about. */
export interface PublishedModel {
  /** `OWNER/NAME` */
  readonly repo: string;
  /** The run that trained it; absent for a model of another origin. */
  readonly manifest?: Manifest | undefined;
  /** Updates done. */
  readonly updates?: number | undefined;
  readonly cards: readonly Card[];
  /** Names of the cards' files in the repository. */
  readonly cardFiles: readonly string[];
  /** Hub id of the model that it was trained from, if it has one. */
  readonly base?: string | undefined;
  readonly license?: string | undefined;
  readonly isAdapter: boolean;
  readonly hasEvents: boolean;
}

/** `README.md` with its head. */
export function modelCard(model: PublishedModel): string {
  const { repo, manifest, cards, base, isAdapter } = model;
  const head = {
    license: model.license,
    library_name: isAdapter ? "peft" : "transformers",
    pipeline_tag: "text-generation",
    base_model: base,
    tags: ["pawl", "reinforcement-learning", "agent"],
    ...(cards.length > 0 && { "model-index": [{ name: repo, results: cards.map(indexed) }] }),
  };
  const body = [
    `# ${repo}`,
    "",
    ...introduction(model),
    "## Results",
    "",
    ...results(model),
    ...(manifest === undefined ? [] : training(manifest, model)),
    "## Use",
    "",
    ...usage(model),
  ];
  return withoutSecrets(`---\n${stringify(head)}---\n\n${body.join("\n")}`);
}

/** A result as the hub's older index of models has it. */
function indexed({ tasks, results }: Card): unknown {
  return {
    task: { type: "text-generation" },
    dataset: { type: tasks.environment, name: tasks.name, split: tasks.split },
    metrics: [
      {
        type: "success_rate",
        name: resultText(results),
        value: results.success === undefined ? null : Number((100 * results.success).toFixed(2)),
      },
    ],
  };
}

function introduction({ manifest, updates, base, isAdapter }: PublishedModel): readonly string[] {
  const what = isAdapter ? "A LoRA adapter" : "A language model";
  const from = base === undefined ? "" : ` from [${base}](https://huggingface.co/${base})`;
  if (manifest === undefined) return [`${what}, published with Pawl.`, ""];
  const done = updates === undefined ? "" : ` in ${updates} updates`;
  return [`${what}, trained${from} with Pawl (\`pawl ${manifest.kind}\`)${done}.`, ""];
}

function results({ cards, cardFiles }: PublishedModel): readonly string[] {
  if (cards.length === 0)
    return [
      "No evaluation was published with it. `pawl eval` makes one, and `--cards` adds it.",
      "",
    ];
  return cards.flatMap((card, at) => [
    `### ${card.tasks.name}: ${resultText(card.results)}`,
    "",
    ...resultTable(card),
    "",
    `Task list \`${card.tasks.name}\`, ${card.tasks.tasks} tasks, sha256 \`${card.tasks.sha256}\`. ${card.intervals}. ${card.results.broken} broken episodes, which are in no rate. Outcomes by task: [${cardFiles[at]}](${cardFiles[at]}).`,
    "",
    "```sh",
    card.command,
    "```",
    "",
    `${card.createdAt}, pawl ${card.versions.pawl}, ${card.machine}`,
    "",
  ]);
}

function training(manifest: Manifest, { hasEvents }: PublishedModel): readonly string[] {
  const { config, seed, versions, start, kind, createdAt, finishedAt, resumes } = manifest;
  const { env, split, warmStart } = config as {
    readonly env?: { readonly name?: unknown };
    readonly split?: unknown;
    readonly warmStart?: {
      readonly episodes?: number;
      readonly runs?: readonly string[];
      readonly data?: readonly string[];
    };
  };
  const imitated = [...(warmStart?.runs ?? []), ...(warmStart?.data ?? [])];
  return [
    "## Training",
    "",
    "```sh",
    `npx pawl ${kind.replace("-", " ")} --config ${CONFIG_FILE}`,
    "```",
    "",
    `- data: environment \`${String(env?.name)}\`${split === undefined ? "" : `, split \`${String(split)}\``}`,
    ...((warmStart?.episodes ?? 0) > 0
      ? [
          `- warm start: ${warmStart!.episodes} episodes${imitated.length > 0 ? ` of ${imitated.map((name) => `\`${name}\``).join(", ")}` : " of a teacher"}`,
        ]
      : []),
    ...(start === undefined
      ? []
      : [
          `- start model: \`${start.model}\`${start.revision === undefined ? "" : `, revision \`${start.revision}\``}${start.sha256 === undefined ? "" : `, sha256 \`${start.sha256}\``}`,
        ]),
    `- seed ${seed}, pawl ${versions.pawl ?? "unknown"}, node ${versions.node ?? "unknown"}, ${versions.platform ?? ""}`,
    `- ${createdAt} to ${finishedAt ?? "an end that was not recorded"} (${manifest.status})${resumes === undefined ? "" : `, resumed ${resumes.length} times`}`,
    ...(hasEvents ? ["- curves: the Metrics tab, from `tensorboard/`"] : []),
    "",
  ];
}

function usage({ repo, isAdapter, base }: PublishedModel): readonly string[] {
  const python = isAdapter
    ? [
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        `model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("${base}"), "${repo}")`,
      ]
    : [
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        `model = AutoModelForCausalLM.from_pretrained("${repo}")`,
      ];
  return [
    "```python",
    ...python,
    `tokenizer = AutoTokenizer.from_pretrained("${repo}")`,
    "```",
    "",
    ...(isAdapter ? [] : ["```sh", `npx pawl eval --checkpoint ${repo}`, "```", ""]),
  ];
}
