/** Chosen files of a hub repository at one commit, downloaded into the shared cache. */
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, rm, stat, symlink } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { requireDiskSpace, writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { requireDownload } from "@pawl/core/trust/consent.js";
import { type DownloadOptions, progress, Unreachable } from "../download/download.js";
import { downloadTo, type HubClient, type HubOptions, hubClient } from "./hub-client.js";

// The cache of downloads that Hugging Face's own tools share, Python's included:
//
//   models--OWNER--NAME/blobs/TAG                  the content of each file
//   models--OWNER--NAME/snapshots/COMMIT/FILE      a link to it
//   models--OWNER--NAME/refs/REVISION              the commit that a branch or tag was last seen at

const COMMIT = /^[0-9a-f]{40}$/;

/** The folder of the shared cache. */
export function hubCacheFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = environment;
  const home = HF_HOME || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface");
  return HF_HUB_CACHE || HUGGINGFACE_HUB_CACHE || join(home, "hub");
}

/** One repository in the cache. */
interface CachedRepo {
  blob(etag: string): string;
  snapshot(commit: string): string;
  /** The commit that a revision was last seen at. */
  commitOf(revision: string): string | undefined;
  remember(revision: string, commit: string): Promise<void>;
  /** Makes a file of a snapshot out of a blob. */
  link(commit: string, path: string, etag: string): Promise<void>;
}

/** The place of a repository in the cache. */
function cachedRepo(cache: string, repo: string): CachedRepo {
  const root = join(cache, `models--${repo.replace("/", "--")}`);
  const ref = (revision: string) => join(root, "refs", ...revision.split("/"));
  const snapshot = (commit: string) => join(root, "snapshots", commit);
  const blob = (etag: string) => join(root, "blobs", etag);
  return {
    blob,
    snapshot,
    commitOf(revision) {
      if (COMMIT.test(revision)) return revision;
      const file = ref(revision);
      const commit = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
      return COMMIT.test(commit) ? commit : undefined;
    },
    async remember(revision, commit) {
      if (COMMIT.test(revision)) return;
      const file = ref(revision);
      await mkdir(dirname(file), { recursive: true });
      writeFileAtomicallySync(file, commit);
    },
    async link(commit, path, etag) {
      const file = join(snapshot(commit), path);
      await mkdir(dirname(file), { recursive: true });
      await rm(file, { force: true });
      await symlink(relative(dirname(file), blob(etag)), file).catch(
        async (error: NodeJS.ErrnoException) => {
          // Another process linked it at the same time; or Windows, where links need a right.
          if (error.code === "EEXIST") return;
          if (error.code !== "EPERM") throw error;
          await copyFile(blob(etag), file);
        },
      );
    },
  };
}

/** A file of a repository, as the hub lists it. */
export interface ListedFile {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}

/** Which repository and which of its files. */
export interface SnapshotOptions extends Omit<HubOptions, "offline"> {
  readonly repo: string;
  readonly revision: string;
  /**
   * The files to fetch, given the list of all and the folder of those that are already here. Called
   * again after each download until it names nothing new: an index names further files.
   */
  choose(listed: readonly ListedFile[], folder: string): Promise<readonly string[]>;
  /** Whether a folder that was fetched earlier is complete, so that it can be used without the hub. */
  isComplete(folder: string): Promise<boolean>;
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly download?: DownloadOptions;
}

/** A folder of the cache. */
export interface Snapshot {
  readonly folder: string;
  /** Its commit. */
  readonly commit: string;
}

/** The commit of a revision that is complete in the cache; undefined if there is none. */
export async function completeCommit({
  repo,
  revision,
  environment = process.env,
  isComplete,
}: Pick<SnapshotOptions, "repo" | "revision" | "environment" | "isComplete">): Promise<
  string | undefined
> {
  const cached = cachedRepo(hubCacheFolder(environment), repo);
  const known = cached.commitOf(revision);
  return known !== undefined && (await isComplete(cached.snapshot(known))) ? known : undefined;
}

/** The chosen files at a revision; what is already in the cache is not fetched again. */
export async function fetchSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { repo, revision, environment = process.env, onNotice } = options;
  requireDownload(repo, "the hub");
  const cache = hubCacheFolder(environment);
  const cached = cachedRepo(cache, repo);
  const complete = await completeCommit(options);
  const kept = (commit: string) => ({ folder: cached.snapshot(commit), commit });
  // A commit never changes; neither does anything when the hub must not be asked.
  const offline = /^(1|true|yes|on)$/i.test(environment.HF_HUB_OFFLINE ?? "");
  if (complete !== undefined && (offline || complete === revision)) return kept(complete);
  if (offline)
    throw new UserError(
      `${repo} (${revision}) is not in ${cache}, and HF_HUB_OFFLINE forbids to download it. Unset it, or name a folder that holds the model.`,
    );
  const client = hubClient({
    ...options,
    offline: `name a folder or a .gguf file that holds the model; there is no folder ${repo} here`,
  });
  try {
    const commit = await commitOf(client, repo, revision);
    await fetchFiles(client, cached, commit, options);
    await cached.remember(revision, commit);
    return kept(commit);
  } catch (error) {
    if (complete === undefined || !(error instanceof Unreachable)) throw error;
    onNotice?.(`${error.message} Using the copy from before, commit ${complete}.`);
    return kept(complete);
  }
}

async function commitOf(client: HubClient, repo: string, revision: string): Promise<string> {
  const { modelInfo } = await import("@huggingface/hub");
  try {
    const { sha } = await modelInfo({
      ...client.call,
      name: repo,
      revision,
      additionalFields: ["sha"],
    });
    if (!/^[0-9a-f]{40}$/.test(sha))
      throw new UserError(`${client.endpoint} names no commit for ${repo} (${revision})`);
    return sha;
  } catch (error) {
    throw explain(client, `${client.endpoint}/api/models/${repo}`, repo, revision, error);
  }
}

function explain(
  client: HubClient,
  url: string,
  repo: string,
  revision: string,
  error: unknown,
): UserError {
  const status = client.statusOf(error);
  if (status === 404)
    return new UserError(
      `there is no model ${repo} with the revision ${revision} at ${client.endpoint} (status 404). Is the name right? A folder is named ./${repo}.`,
    );
  // The hub does not tell a private model from one that does not exist.
  if (status === 401 || status === 403)
    return new UserError(
      `${client.endpoint} gives no access to ${repo} (status ${status}): the name is wrong, or the model is private or gated. ${client.token === undefined ? "Set HF_TOKEN to a key that may read it." : "The key in HF_TOKEN may not read it: accept the model's terms on its page, or use another key."}`,
    );
  return client.failure(url, error);
}

async function list(client: HubClient, repo: string, revision: string): Promise<ListedFile[]> {
  const { listFiles } = await import("@huggingface/hub");
  const files: ListedFile[] = [];
  try {
    for await (const entry of listFiles({ ...client.call, repo, revision, recursive: true })) {
      if (entry.type !== "file") continue;
      const etag = entry.lfs?.oid ?? entry.xetHash ?? entry.oid;
      // A tag becomes the name of a file.
      if (etag === undefined || !/^[\w-]+$/.test(etag)) continue;
      files.push({ path: entry.path, size: entry.lfs?.size ?? entry.size, etag });
    }
  } catch (error) {
    throw explain(client, `${client.endpoint}/api/models/${repo}/tree`, repo, revision, error);
  }
  return files;
}

async function fetchFiles(
  client: HubClient,
  cached: CachedRepo,
  commit: string,
  { repo, choose, onNotice, download }: SnapshotOptions,
): Promise<void> {
  const listed = await list(client, repo, commit);
  const folder = cached.snapshot(commit);
  for (;;) {
    const chosen = await choose(listed, folder);
    const wanted = listed.filter(
      ({ path }) => chosen.includes(path) && !existsSync(join(folder, path)),
    );
    if (wanted.length === 0) return;
    const missing = wanted.filter(({ etag }) => !existsSync(cached.blob(etag)));
    const bytes = missing.reduce((sum, { size }) => sum + size, 0);
    await requireDiskSpace(cached.blob(""), bytes, `the files of ${repo}`);
    for (const file of wanted) {
      const blob = cached.blob(file.etag);
      if ((await stat(blob).catch(() => undefined))?.size !== file.size)
        await downloadTo(client, { repo, revision: commit, path: file.path }, blob, file, {
          ...download,
          onBytes: progress(file.path, file.size, onNotice),
        });
      await cached.link(commit, file.path, file.etag);
    }
  }
}
