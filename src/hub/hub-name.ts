/** Names of models on the hub: `OWNER/NAME`, with `/FILE` and `@REVISION` if wanted. */

/** A parsed name. */
export interface HubName {
  /** `OWNER/NAME` */
  readonly repo: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  /** One file of the repository. */
  readonly file?: string;
}

/** Parses a name; undefined if it is not one. */
export function parseHubName(name: string): HubName | undefined {
  const parts =
    /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?:\/([\w.-]+(?:\/[\w.-]+)*))?(?:@([\w][\w./-]*))?$/.exec(
      name,
    );
  if (parts === null || name.includes("..")) return undefined;
  const [, repo, file, revision = "main"] = parts;
  return { repo: repo!, revision, file };
}
