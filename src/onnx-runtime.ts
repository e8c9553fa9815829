/**
 * ONNX Runtime. An installed package has it as an optional dependency for each platform, made by
 * `packaging/pack.js`; a clone has `onnxruntime-node`, which holds all platforms.
 */
// What is loaded reads this first.
import "./no-telemetry.js";
import { createRequire } from "node:module";
import type * as OnnxRuntime from "onnxruntime-common";
import { UserError } from "./errors.js";

const PLATFORMS = ["darwin-arm64", "linux-arm64", "linux-x64", "win32-arm64", "win32-x64"];

let loaded: typeof OnnxRuntime | undefined;

/** The native library, loaded when it is first needed. */
export function onnxRuntime(): typeof OnnxRuntime {
  loaded ??= loadRuntime(`${process.platform}-${process.arch}`, createRequire(import.meta.url));
  return loaded;
}

/** Loads the library for a platform, or says what to install. */
export function loadRuntime(
  platform: string,
  require: (name: string) => unknown,
): typeof OnnxRuntime {
  const own = `@pawl/onnx-${platform}`;
  for (const name of [own, "onnxruntime-node"])
    try {
      return require(name) as typeof OnnxRuntime;
    } catch (error) {
      if (!isMissing(error, name))
        throw new UserError(`ONNX Runtime (${name}) does not load here: ${String(error)}`, {
          cause: error,
        });
    }
  throw new UserError(
    PLATFORMS.includes(platform)
      ? `ONNX Runtime for ${platform} is not installed: install it with npm install ${own}, or install pawl again without --omit=optional`
      : `there is no ONNX Runtime for ${platform}, only for ${PLATFORMS.join(", ")}: install onnxruntime-node built for it, or use a model on a server (--engine.name server)`,
  );
}

/** Whether the package itself is missing, and not what it needs. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "MODULE_NOT_FOUND" && message.includes(`'${name}'`);
}
