/** What an export reads: the episodes of a run one by one, never all at once. */
import { basename, resolve } from "node:path";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import type { RecordedRun } from "@pawl/core/runs/run-folder.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";

/** Pieces are gathered until they are this long. */
const CHUNK = 1 << 20;

/** Writes the pieces one after another; memory holds one chunk. */
export async function writePieces(file: string, pieces: Iterable<string>): Promise<void> {
  await writeFileAtomically(file, async (handle) => {
    let waiting: string[] = [];
    let length = 0;
    const flush = async (): Promise<void> => {
      await writeFully(handle, Buffer.from(waiting.join("")));
      waiting = [];
      length = 0;
    };
    for (const piece of pieces) {
      waiting.push(piece);
      length += piece.length;
      if (length >= CHUNK) await flush();
    }
    await flush();
  });
}

/** JSON Lines. */
export function* lines(values: Iterable<unknown>): Generator<string> {
  for (const value of values) yield `${JSON.stringify(value)}\n`;
}

/** A run to export. */
export interface Source {
  /** The name of its folder. */
  readonly name: string;
  readonly manifest: Manifest;
  readonly environment: string;
  /** Who played: the model or the policy of its settings, as far as they say. */
  readonly player: string;
  /** One pass over the record. */
  episodes(): Iterable<Episode>;
}

/** A recorded run as a source; `only` leaves out the others. */
export function sourceOf(run: RecordedRun, only: (episode: Episode) => boolean): Source {
  const manifest = {
    ...run.manifest,
    config: withoutSecretSettings(run.manifest.config).settings,
  };
  const { env, checkpoint, policy, model } = manifest.config as {
    readonly env?: { readonly name?: unknown };
    readonly checkpoint?: unknown;
    readonly policy?: { readonly name?: unknown; readonly model?: unknown };
    readonly model?: { readonly start?: unknown };
  };
  const player = checkpoint ?? policy?.model ?? policy?.name ?? manifest.start?.model;
  return {
    name: basename(resolve(run.folder)),
    manifest,
    environment: String(env?.name ?? "unknown"),
    player: String(player ?? model?.start ?? manifest.kind),
    *episodes() {
      for (const episode of run.episodes()) if (only(episode)) yield episode;
    },
  };
}

/** The name of an episode, unique in its run. */
export function episodeName({ group, attempt }: Episode): string {
  return `${group}.${attempt}`;
}
