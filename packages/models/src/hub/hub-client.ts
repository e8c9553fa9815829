/**
 * A connection to the Hugging Face hub, and what its failures mean.
 *
 * `HF_ENDPOINT` names a mirror and `HF_TOKEN` holds the key for private models, as in Hugging Face's
 * own tools. Downloads are plain HTTPS: mirrors do not serve Xet's chunks, and a firewall may allow
 * only one host.
 */
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
