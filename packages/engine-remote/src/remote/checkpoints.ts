/**
 * Checkpoints of a model that lives on a server.
 *
 * Weights stay on the server: saving makes a checkpoint on the server's disk, and leaves a pointer
 * to it in the given folder. Loading follows the pointer, or uploads the folder's own files. Every
 * save has a path of its own, so that an old pointer never means new weights; a pointer also lists
 * the paths its siblings point to, so that unreferenced checkpoints can be deleted from the server.
 */
import { createHash, randomUUID } from "node:crypto";
import { openAsBlob } from "node:fs";
import { mkdir, readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { EngineError, POINTER_FILE } from "@pawl/core/engine/engine.js";
import {
  writeFileAtomically,
  writeFileAtomicallySync,
  writeFully,
} from "@pawl/core/files/atomic-file.js";
import { openRegularHandle, readRegularText } from "@pawl/core/files/regular-file.js";
import { readReply } from "@pawl/core/http/http-client.js";
import { ADAPTER_FILES } from "@pawl/models/weights/adapter.js";
import { OPTIMIZER_FILE, WEIGHTS_FILE, weightFiles } from "@pawl/models/weights/checkpoint.js";
import { z } from "zod";
import type { Transport } from "./transport.js";

const pointerSchema = z.object({
  version: z.literal(1),
  /** Path of the checkpoint in the server's checkpoint folder. */
  path: z.string().min(1),
  /** Paths that pointers of this run held when this one was saved, including its own. */
  live: z.array(z.string()),
  /** Whether the optimiser's state belongs to it; true in pointers written before this was kept. */
  optimizer: z.boolean().default(true),
});

/** The content of a pointer file. */
export type Pointer = z.output<typeof pointerSchema>;

/** The file that describes a checkpoint's model. */
export const CONFIG_FILE = "config.json";
/** The files of a checkpoint; the last one marks it as complete. */
const FILES = [
  WEIGHTS_FILE,
  OPTIMIZER_FILE,
  ...ADAPTER_FILES,
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "generation_config.json",
  CONFIG_FILE,
] as const;

/** A server must not fill a client's disk or memory: the largest files that are taken from it. */
const MAX_WEIGHTS_BYTES = 2 ** 41;
const MAX_SMALL_BYTES = 2 ** 27;

/** Those that hold weights, or belong to them. */
const WEIGHTS = /\.safetensors$|^adapter_/;

/** The pointer in a folder, or undefined if there is none. */
export async function readPointer(folder: string): Promise<Pointer | undefined> {
  const file = join(folder, POINTER_FILE);
  let text: string;
  try {
    text = readRegularText(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new EngineError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  try {
    return pointerSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new EngineError(
      `${file} is not a pointer to a checkpoint on an engine server; resume from another checkpoint`,
      { cause: error },
    );
  }
}

/** A path for a new checkpoint, and old ones to delete once it exists. */
export interface PlannedSave {
  readonly path: string;
  readonly live: readonly string[];
  readonly gone: readonly string[];
}

/** Looks at the pointers next to the folder and decides where the next checkpoint goes. */
export async function planSave(folder: string, flat: boolean): Promise<PlannedSave> {
  // A second model inside each checkpoint (checkpoints/000003/critic) is compared with those in the
  // other checkpoints.
  const inner = basename(dirname(dirname(resolve(folder)))) === "checkpoints";
  const parent = inner ? dirname(dirname(resolve(folder))) : dirname(resolve(folder));
  const names = await readdir(parent).catch(() => []);
  const others = names
    .map((name) => join(parent, name, inner ? basename(folder) : ""))
    .filter((path) => path !== resolve(folder));
  const siblings = (await Promise.all(others.map(pointerIfAny))).filter(
    (found) => found !== undefined,
  );
  const own = await pointerIfAny(folder);
  const known = new Set([...siblings, ...(own ? [own] : [])].flatMap(({ live }) => live));
  const pointedTo = siblings.map(({ path }) => path);
  const path = `${labelOf(parent)}${flat ? "-" : "/"}${randomUUID().slice(0, 13)}`;
  return {
    path,
    live: [...pointedTo, path],
    gone: [...known].filter((other) => !pointedTo.includes(other)),
  };
}

/** A name that people recognise on the server's disk: that of the run. */
function labelOf(parent: string): string {
  const run = basename(parent) === "checkpoints" ? dirname(parent) : parent;
  return (
    basename(run)
      .replace(/[^A-Za-z0-9_-]/g, "_")
      .slice(0, 60) || "run"
  );
}

async function pointerIfAny(folder: string): Promise<Pointer | undefined> {
  try {
    return await readPointer(folder);
  } catch (error) {
    // A neighbour that is not a folder, or a damaged pointer, keeps nothing alive.
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

/** Writes the pointer to a checkpoint that the server has saved, perhaps under another path than planned. */
export async function writePointer(
  folder: string,
  saved: { readonly plan: PlannedSave; readonly path: string; readonly optimizer: boolean },
) {
  await mkdir(folder, { recursive: true });
  const { plan, path, optimizer } = saved;
  const live = plan.live.map((other) => (other === plan.path ? path : other));
  const content = { version: 1, path, live, optimizer };
  writeFileAtomicallySync(join(folder, POINTER_FILE), `${JSON.stringify(content)}\n`);
}

/**
 * The path of a folder's checkpoint on the server: from its pointer, or after uploading its files.
 */
export async function onServer(
  transport: Transport,
  folder: string,
  pointer: Pointer | undefined,
): Promise<string> {
  if (pointer === undefined) return uploadCheckpoint(transport, folder);
  // A server that lost its disk, or another server, gets the local copy.
  if (weightFiles(folder).length === 0 || (await exists(transport, pointer.path)))
    return pointer.path;
  return uploadCheckpoint(transport, folder);
}

/** Downloads a checkpoint from the server, or only its small files. */
export async function downloadCheckpoint(
  transport: Transport,
  path: string,
  folder: string,
  which: "all" | "all but weights",
): Promise<void> {
  for (const name of FILES) {
    if (which === "all but weights" && WEIGHTS.test(name)) continue;
    await transport.download(`files/${path}/${name}`, async ({ body }) => {
      const source = body === null ? [] : (body as AsyncIterable<Uint8Array>);
      const most = WEIGHTS.test(name) ? MAX_WEIGHTS_BYTES : MAX_SMALL_BYTES;
      let size = 0;
      await writeFileAtomically(join(folder, name), async (handle) => {
        for await (const chunk of source) {
          size += chunk.length;
          if (size > most)
            throw new EngineError(`the engine server sent more than ${most} bytes as ${name}`);
          await writeFully(handle, chunk);
        }
      });
    });
  }
}

/** Uploads a checkpoint folder to the server, unless it is already there; returns its path. */
async function uploadCheckpoint(transport: Transport, folder: string): Promise<string> {
  const present: { readonly name: string; readonly size: number }[] = [];
  const weights = weightFiles(folder);
  // Weights in several files come first: the last file marks a checkpoint as complete.
  const names = new Set<string>([...weights, ...FILES]);
  for (const name of names) {
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found !== undefined) present.push({ name, size: found.size });
  }
  for (const needed of [CONFIG_FILE, ...(weights.length > 0 ? weights : [WEIGHTS_FILE])])
    if (!present.some(({ name }) => name === needed))
      throw new EngineError(
        `${folder} has no ${needed}: expected a checkpoint (config.json and model.safetensors, in one file or several with an index) or a pointer to one on an engine server (${POINTER_FILE})`,
      );
  const path = `uploads/${await fingerprint(folder, present)}`;
  if (await exists(transport, path)) return path;
  for (const { name } of present)
    await transport.put(`files/${path}/${name}`, () => openAsBlob(join(folder, name)));
  return path;
}

/** The name of an upload, which depends only on its content. */
async function fingerprint(
  folder: string,
  files: readonly { readonly name: string; readonly size: number }[],
): Promise<string> {
  const hash = createHash("sha256");
  for (const { name, size } of files) {
    hash.update(`${name} ${size}\n`);
    const file = await openRegularHandle(join(folder, name));
    for await (const chunk of file.createReadStream()) hash.update(chunk as Buffer);
  }
  return hash.digest("hex").slice(0, 32);
}

/** Whether a complete checkpoint is at this path on the server. */
export async function exists(transport: Transport, path: string): Promise<boolean> {
  return transport.download(`files/${path}/${CONFIG_FILE}`, async (response) => {
    await readReply(response, MAX_SMALL_BYTES);
  });
}
