/** Uploads a folder to a repository of the Hugging Face hub, which is made if it does not exist. */
import { readdirSync } from "node:fs";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { UserError } from "../errors.js";
import { networkReason, redact } from "../http-client.js";
import { type HubClient, type HubOptions, hubClient } from "./hub-client.js";

/** An answer to an upload begins when all of it has arrived. */
const UPLOAD_MS = 3_600_000;

/** What to upload, and where to. */
export interface UploadOptions extends Omit<HubOptions, "offline"> {
  /** `OWNER/NAME` of a model. */
  readonly repo: string;
  readonly folder: string;
  readonly title: string;
  /** Whether a new repository can be seen only by its owner. */
  readonly isPrivate: boolean;
}

/** Uploads every file of the folder in one commit; returns the address of the repository. */
export async function uploadFolder(options: UploadOptions): Promise<string> {
  const { repo, folder, title, isPrivate } = options;
  const client = hubClient({
    ...options,
    offline: "write the folder with --dry-run --out DIR, and upload it from elsewhere",
    answerMs: options.answerMs ?? UPLOAD_MS,
  });
  if (client.token === undefined)
    throw new UserError(
      "HF_TOKEN is not set: make a key with the right to write at https://huggingface.co/settings/tokens, and export it",
    );
  const { createRepo, uploadFiles } = await import("@huggingface/hub");
  const { hubUrl, fetch } = client.call;
  const accessToken = client.token;
  const target = { type: "model", name: repo } as const;
  const address = `${client.endpoint}/${repo}`;
  try {
    await createRepo({
      ...{ repo: target, accessToken, hubUrl, fetch },
      visibility: isPrivate ? "private" : "public",
    });
  } catch (error) {
    // It exists already: its settings stay, and the files are added to it.
    if (client.statusOf(error) !== 409)
      throw failure(client, `${address} could not be made`, error);
  }
  try {
    const files = filesIn(folder).map((path) => ({
      path: path.split(sep).join("/"),
      content: pathToFileURL(join(folder, path)),
    }));
    await uploadFiles({
      ...{ repo: target, files, commitTitle: title, accessToken, hubUrl, fetch },
      abortSignal: options.signal,
    });
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failure(client, `the upload to ${address} failed`, error);
  }
  return address;
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** The error in words, without the key. */
function failure(client: HubClient, what: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  const status = client.statusOf(error);
  if (status === 401 || status === 403)
    return new UserError(
      `${what}: status ${status}. Does the key in HF_TOKEN have the right to write there?`,
    );
  const text = status === undefined ? networkReason(error).text : `status ${status}`;
  const said = error instanceof Error ? error.message : "";
  const why = status === undefined ? text : `${text}, ${said}`;
  // Not the cause: it may hold the request with its key.
  return new UserError(`${what}: ${redact(why, client.token)}. Nothing was committed; try again.`);
}
