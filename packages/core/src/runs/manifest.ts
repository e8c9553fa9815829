/** The manifest of a run: what created it, its settings and versions, and how it ended. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { z } from "zod";
import { explainIo } from "../files/io-error.js";
import { readRegularText } from "../files/regular-file.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

/** Version of the run folder's layout; readers reject unknown versions. */
export const RUN_SCHEMA = 1;

const runStatus = z.enum(["running", "done", "interrupted", "failed", "stopped"]);

const settingChanges = z
  .record(z.string(), z.object({ from: z.unknown().optional(), to: z.unknown().optional() }))
  .describe("settings by path, such as `evaluation.every`");

const pluginSchema = z.object({
  path: z.string(),
  sha256: z.string().describe("of the file and of what it imports by relative paths"),
});

const resumeSchema = z.object({
  at: z.iso.datetime(),
  stoppedAt: z.iso
    .datetime()
    .optional()
    .describe("when it had stopped before, or last written its metrics if it was killed"),
  update: z.int().min(0).describe("first update with the changed settings"),
  pawl: z.string(),
  changed: settingChanges,
  cores: z.int().min(1).optional().describe("processor cores that it could use from then on"),
  plugins: z.array(pluginSchema).optional().describe("the plugins from then on"),
});

const manifestSchema = z.object({
  schema: z.literal(RUN_SCHEMA),
  kind: z.string().describe("command that created the run, such as `rollout`"),
  status: runStatus,
  createdAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().optional(),
  error: z.string().optional(),
  stoppedBy: z
    .object({ alarm: z.string(), update: z.number(), text: z.string() })
    .optional()
    .describe("alarm that ended the run (status `stopped`), as asked for by --stop-on"),
  seed: z.number(),
  config: z
    .record(z.string(), z.unknown())
    .describe("current resolved configuration, including defaults"),
  recipe: z
    .string()
    .optional()
    .describe("what its settings were based on: a recipe, a file, or another run"),
  start: z
    .object({
      model: z.string(),
      revision: z.string().optional(),
      sha256: z.string().optional(),
    })
    .optional()
    .describe(
      "start model that is not a folder: hub id and commit, or GGUF file or name on PyPI and SHA-256",
    ),
  resumes: z.array(resumeSchema).optional().describe("each time the run was resumed"),
  plugins: z.array(pluginSchema).optional().describe("the plugins that it runs with now"),
  copiedFrom: z.string().optional().describe("run that this one was copied from"),
  versions: z.record(z.string(), z.string()),
  cores: z
    .int()
    .min(1)
    .optional()
    .describe(
      "processor cores that it could use: how sums are split, and so rounded, depends on them",
    ),
  summary: z.record(z.string(), z.number()).optional(),
  checksum: z.string().optional().describe("of all the rest, to notice edits"),
});

/** How a run ended, or that it has not. */
export type RunStatus = z.output<typeof runStatus>;

/** Settings that changed on a resume. */
export type SettingChanges = z.output<typeof settingChanges>;

/** Everything needed to explain and repeat a run, except its record. */
export type Manifest = z.output<typeof manifestSchema>;

const manifestPath = (folder: string): string => join(folder, "manifest.json");

/** Whether a folder is a run folder. */
export function hasManifest(folder: string): boolean {
  return existsSync(manifestPath(folder));
}

/** Writes the manifest atomically, with its checksum. */
export function writeManifest(folder: string, { checksum: _, ...manifest }: Manifest): void {
  const whole = { ...manifest, checksum: checksumOf(manifest) };
  writeSmallFile(manifestPath(folder), `${JSON.stringify(whole, undefined, 2)}\n`);
}

const checksumOf = (content: object): string =>
  crc32(JSON.stringify(content)).toString(16).padStart(8, "0");

/** Says so if a manifest was changed since we wrote it; older ones have no checksum. */
export function editedManifest(folder: string): string | undefined {
  const path = manifestPath(folder);
  const { checksum, ...content } = JSON.parse(readRegularText(path)) as Manifest;
  if (checksum === undefined || checksum === checksumOf(content)) return undefined;
  return `${path} was changed since pawl wrote it, by hand or by a fault of the disk, so the records may not fit it. Restore it; settings that may change are given as flags with --resume. If the change is meant, remove the line "checksum".`;
}

/** Reads and checks a manifest. */
export function readManifest(folder: string): Manifest {
  const path = manifestPath(folder);
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new RunError(`${folder} is not a run folder: ${explainIo(error, path)}`, {
      cause: error,
    });
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new RunError(`${path} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const schema = (json as { schema?: unknown } | null)?.schema;
  if (schema !== RUN_SCHEMA) {
    throw new RunError(
      `${path}: expected schema ${RUN_SCHEMA}, found ${JSON.stringify(schema)}. ` +
        "The run was made by another version of pawl: read it with that version.",
    );
  }
  const parsed = manifestSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new RunError(`${path}: ${issue.path.join(".")}: ${issue.message}`);
  }
  return parsed.data;
}

/** Reads a manifest whose settings will be used; one that was changed since we wrote it is refused. */
export function sealedManifest(folder: string): Manifest {
  const manifest = readManifest(folder);
  const edited = editedManifest(folder);
  if (edited !== undefined) throw new RunError(edited);
  return manifest;
}

/** Settings of the world model's loss that a resume changed, each with what it is now and was before. */
export function changedOnTheWay({
  resumes = [],
}: Pick<Manifest, "resumes">): ReadonlyMap<string, string> {
  const paths = new Set(resumes.flatMap(({ changed }) => Object.keys(changed)));
  const told = (value: unknown): string =>
    typeof value === "string" ? value : JSON.stringify(value);
  return new Map(
    [...paths].flatMap((path) => {
      if (!path.startsWith("paw.")) return [];
      const changes = resumes.filter(({ changed }) => path in changed);
      const values = new Map([[0, told(changes[0]!.changed[path]!.from)]]);
      for (const { update, changed } of changes) values.set(update, told(changed[path]!.to));
      const [now, ...before] = [...values]
        .sort(([a], [b]) => b - a)
        .map(([update, value]) => (update === 0 ? value : `${value} from update ${update + 1}`));
      return before.length === 0 ? [] : [[path, `${now} (before: ${before.join(", ")})`]];
    }),
  );
}

/** How many groups of episodes every update of a run records; undefined if it need not record any. */
export function groupsPerUpdate({
  kind,
  config,
}: Pick<Manifest, "kind" | "config">): number | undefined {
  const numberOf = (value: unknown): number => (typeof value === "number" ? value : Number.NaN);
  const task = config.task as { readonly groups?: unknown } | undefined;
  const groups =
    kind === "train"
      ? numberOf(config.groups)
      : kind === "rwml"
        ? numberOf(config.triplets) + numberOf(task?.groups)
        : 0;
  return groups > 0 ? groups : undefined;
}
