/** Downloads one file of a hub repository. */
import { type DownloadOptions, download, type StatedFile } from "../download/download.js";
import type { HubClient } from "./hub-client.js";

/** A file of a repository at a revision. */
export interface HubFile {
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
