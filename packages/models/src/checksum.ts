/** SHA-256 of files, to verify that a model is the expected one. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { UserError } from "@pawl/core/errors.js";
import { openRegularHandle } from "@pawl/core/files/regular-file.js";

/** The SHA-256 of a file, in hexadecimal. */
export async function sha256File(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline((await openRegularHandle(path)).createReadStream(), hash);
  return hash.digest("hex");
}

/**
 * Checks files in a folder against their checksums; the first difference is an error that names
 * both.
 */
export async function verifyFiles(
  folder: string,
  checksums: Readonly<Record<string, string>>,
  remedy: string,
): Promise<void> {
  for (const [name, expected] of Object.entries(checksums)) {
    const path = join(folder, name);
    const found = await sha256File(path).catch((error: NodeJS.ErrnoException) => {
      throw new UserError(`${path}: cannot be read (${error.message}). ${remedy}`, {
        cause: error,
      });
    });
    if (found !== expected) {
      throw new UserError(
        `${path}: expected SHA-256 ${expected}, found ${found}: the file is damaged or a different one. ${remedy}`,
      );
    }
  }
}
