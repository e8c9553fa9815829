/** The folder of a published model: weights or adapter, tokenizer, card, settings and curves. */
import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import {
  changedOnTheWay,
  hasManifest,
  type Manifest,
  readManifest,
} from "@pawl/core/runs/manifest.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { leftOutNotice, withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { withoutSecrets } from "@pawl/core/trust/secrets.js";
import { parseHubName } from "@pawl/models/fetch-model.js";
import { ADAPTER_FILES } from "@pawl/models/weights/adapter.js";
import { exportModel } from "@pawl/training/export.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { stringify } from "yaml";
import type { Card } from "../evaluation/card.js";
import { cardMarkdown, readCard, resultTable, resultText } from "../evaluation/card-markdown.js";

/** The configuration of the run, in the repository. */
const CONFIG_FILE = "pawl.json";

/** What the card is about. */
interface PublishedModel {
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
function modelCard(model: PublishedModel): string {
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
    ...[...changedOnTheWay(manifest)].map(([path, course]) => `- \`${path}\`: ${course}`),
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

/** What to publish. */
export interface Publication {
  /** A run, a folder inside a run, or a model folder. */
  readonly source: string;
  readonly repo: string;
  /** Runs of `pawl eval`, or their cards. */
  readonly cards: readonly string[];
  readonly adapter: boolean;
  readonly base?: string | undefined;
  readonly license?: string | undefined;
  /** Address of the engine server that has the weights. */
  readonly engine?: string | undefined;
  /** Told what was left out. */
  readonly onProblem?: (message: string) => void;
}

/** Writes everything to a new or empty folder. */
export async function writeModelFolder(folder: string, publication: Publication): Promise<void> {
  const { source, repo, adapter, engine } = publication;
  // Everything that can be refused is, before weights are written.
  const model = findSavedModel(source);
  const cards = publication.cards.map(readCard);
  const run = runOf(source);
  const manifest = run === undefined ? undefined : readManifest(run);
  const base = publication.base ?? hubIdOf(manifest?.start?.model);
  if (adapter) checkAdapter(model.weights, base, engine);
  if (adapter) await writeAdapter(model.weights, model.tokenizer, folder, base!);
  else await exportModel(model, folder, engine === undefined ? {} : { address: engine });
  const events = run === undefined ? undefined : join(run, "tensorboard");
  const hasEvents = events !== undefined && existsSync(events);
  if (hasEvents) await cp(events, join(folder, "tensorboard"), { recursive: true });
  if (manifest !== undefined) {
    const notice = leftOutNotice(run!, manifest.config);
    if (notice !== undefined) publication.onProblem?.(notice);
    const text = `${JSON.stringify(withoutSecretSettings(manifest.config).settings, undefined, 2)}\n`;
    await writeFile(join(folder, CONFIG_FILE), withoutSecrets(text));
  }
  const cardFiles: string[] = [];
  for (const [at, card] of cards.entries()) {
    const name = `evaluation/${at + 1}-${card.tasks.environment}-${card.tasks.split}`;
    await mkdir(join(folder, "evaluation"), { recursive: true });
    await writeFile(join(folder, `${name}.json`), `${JSON.stringify(card, undefined, 1)}\n`);
    await writeFile(join(folder, `${name}.md`), cardMarkdown(card));
    cardFiles.push(`${name}.json`);
  }
  const readme = modelCard({
    ...{ repo, manifest, cards, cardFiles, base, hasEvents, isAdapter: adapter },
    updates: await updatesOf(model.weights),
    license: publication.license,
  });
  await writeFile(join(folder, "README.md"), readme);
}

/** The run that a model belongs to. */
function runOf(source: string): string | undefined {
  const path = resolve(source);
  return [path, dirname(path), dirname(dirname(path))].find(hasManifest);
}

/** The start model, if it is one of the hub: others cannot be linked to. */
function hubIdOf(model: string | undefined): string | undefined {
  if (model === undefined || existsSync(model)) return undefined;
  const name = parseHubName(model);
  return name === undefined || name.file !== undefined ? undefined : name.repo;
}

async function updatesOf(weights: string): Promise<number | undefined> {
  const file = join(weights, "state.json");
  if (!existsSync(file)) return undefined;
  return (JSON.parse(readRegularText(file)) as { updates?: number }).updates;
}

function checkAdapter(weights: string, base: string | undefined, engine: string | undefined): void {
  if (engine !== undefined)
    throw new ConfigError(
      "--adapter: an adapter is taken from the run folder, not from --engine; leave one of them out",
    );
  if (!ADAPTER_FILES.every((file) => existsSync(join(weights, file))))
    throw new ConfigError(
      `--adapter: ${weights} has no adapter (${ADAPTER_FILES.join(", ")}): it was trained whole; leave --adapter out`,
    );
  if (base === undefined)
    throw new ConfigError(
      "--adapter: an adapter needs its base model on the hub, and the run does not start from one: name it with --base, or leave --adapter out to publish the merged model",
    );
}

async function writeAdapter(
  weights: string,
  tokenizer: string,
  folder: string,
  base: string,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of ADAPTER_FILES) await cp(join(weights, name), join(folder, basename(name)));
  // Readers find the base by this name; the run's is a folder of this machine.
  const file = join(folder, ADAPTER_FILES[1]);
  const config = JSON.parse(readRegularText(file)) as Record<string, unknown>;
  const named = { ...config, base_model_name_or_path: base };
  await writeFile(file, `${JSON.stringify(named, undefined, 2)}\n`);
  await (await loadTokenizer(tokenizer)).save(folder);
}
