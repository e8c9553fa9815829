/** The folder of a published model: weights or adapter, tokenizer, card, settings and curves. */
import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { hasManifest, readManifest } from "@pawl/core/runs/manifest.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { leftOutNotice, withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { withoutSecrets } from "@pawl/core/trust/secrets.js";
import { parseHubName } from "@pawl/models/hub/hub-name.js";
import { ADAPTER_FILES } from "@pawl/models/weights/adapter.js";
import { exportModel } from "@pawl/training/export.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { readCard } from "../evaluation/card-file.js";
import { cardMarkdown } from "../evaluation/card-markdown.js";
import { CONFIG_FILE, modelCard } from "./model-card.js";

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
