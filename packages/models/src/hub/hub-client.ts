/**
 * A connection to the Hugging Face hub, and what its failures mean.
 *
 * `HF_ENDPOINT` names a mirror and `HF_TOKEN` holds the key for private models, as in Hugging Face's
 * own tools. Downloads are plain HTTPS: mirrors do not serve Xet's chunks, and a firewall may allow
 * only one host.
 */

import { readdirSync } from "node:fs";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { UserError } from "@pawl/core/errors.js";
import { keyFrom, networkReason, redact } from "@pawl/core/http/http-client.js";
import {
  type AnswerOptions,
  answerOf,
  type DownloadOptions,
  download,
  type StatedFile,
  statusOf,
} from "../download/download.js";

/** An answer to an upload begins when all of it has arrived. */
const UPLOAD_MS = 3_600_000;

/** What to upload, and where to. */
interface UploadOptions extends Omit<HubOptions, "offline"> {
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

/** A file of a repository at a revision. */
interface HubFile {
  readonly repo: string;
  readonly revision: string;
  readonly path: string;
}

/** The address of a file. */
export const addressOf = (client: HubClient, { repo, revision, path }: HubFile): string =>
  `${client.endpoint}/${repo}/resolve/${revision}/${path}`;

/** Downloads a file to a path; it appears there when it is complete and as the hub states. */
export function downloadTo(
  client: HubClient,
  file: HubFile,
  target: string,
  stated: StatedFile,
  options: DownloadOptions = {},
): Promise<void> {
  const url = addressOf(client, file);
  const key = client.token !== undefined && { authorization: `Bearer ${client.token}` };
  const source = {
    url,
    by: "the hub",
    get: (range: Readonly<Record<string, string>>) =>
      client.call.fetch(url, { headers: { ...range, ...key } }),
    failure: (error: unknown) => client.failure(url, error),
  };
  return download(source, target, stated, options);
}

const HUB = "https://huggingface.co";

/** Where the hub is, and how to reach it. */
export interface HubOptions extends AnswerOptions {
  readonly endpoint?: string | undefined;
  /** Where to look up `HF_ENDPOINT` and `HF_TOKEN`. Default: the process's environment. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/** A connection: what calls of `@huggingface/hub` take, and its errors in words. */
export interface HubClient {
  readonly endpoint: string;
  readonly token: string | undefined;
  /** Parameters of every call. */
  readonly call: {
    readonly hubUrl: string;
    readonly accessToken?: string;
    readonly xet: false;
    readonly fetch: typeof fetch;
  };
  /** The commit that the hub's latest answer about a file belongs to. */
  commit(): string | undefined;
  /** The status of a failed call, if the hub answered. */
  statusOf(error: unknown): number | undefined;
  /** The error to show for a failed GET of an address. */
  failure(url: string, error: unknown): UserError;
}

/** Connects to the hub; nothing is sent before the first call. */
export function hubClient(options: HubOptions): HubClient {
  const environment = options.environment ?? process.env;
  const endpoint = (options.endpoint ?? (environment.HF_ENDPOINT || HUB)).replace(/\/+$/, "");
  const token = keyFrom(environment, ["HF_TOKEN"]);
  if (token !== undefined && !token.startsWith("hf_"))
    throw new UserError(
      "the key in HF_TOKEN does not begin with hf_, as keys of the hub do; copy it again, or unset it",
    );
  let commit: string | undefined;
  return {
    endpoint,
    token,
    call: {
      hubUrl: endpoint,
      accessToken: token,
      xet: false,
      fetch: async (input, init) => {
        const response = await answerOf(endpoint, options, input, init);
        commit = response.headers.get("x-repo-commit") ?? commit;
        return response;
      },
    },
    commit: () => commit,
    statusOf,
    failure(url, error) {
      if (error instanceof UserError) return error;
      const status = statusOf(error);
      const hint =
        token === undefined
          ? "is the model public, or HF_TOKEN set"
          : "does the key in HF_TOKEN have access";
      return new UserError(
        status === undefined
          ? `GET ${url} failed with ${redact(networkReason(error).text, token)}. Try again.`
          : `GET ${url} failed with status ${status}. Is the name right, and ${hint}?`,
        { cause: error },
      );
    },
  };
}
