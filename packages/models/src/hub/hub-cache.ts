/**
 * The cache of downloads that Hugging Face's own tools share, Python's included:
 *
 *   models--OWNER--NAME/blobs/TAG                  the content of each file
 *   models--OWNER--NAME/snapshots/COMMIT/FILE      a link to it
 *   models--OWNER--NAME/refs/REVISION              the commit that a branch or tag was last seen at
 */
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, rm, symlink } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";

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
export interface CachedRepo {
  blob(etag: string): string;
  snapshot(commit: string): string;
  /** The commit that a revision was last seen at. */
  commitOf(revision: string): string | undefined;
  remember(revision: string, commit: string): Promise<void>;
  /** Makes a file of a snapshot out of a blob. */
  link(commit: string, path: string, etag: string): Promise<void>;
}

/** The place of a repository in the cache. */
export function cachedRepo(cache: string, repo: string): CachedRepo {
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
