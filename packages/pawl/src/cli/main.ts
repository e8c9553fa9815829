#!/usr/bin/env node
/**
 * The program `pawl`: signals, pipes and the exit code. The commands are loaded only if one is
 * called, because that takes most of a second.
 */
import { catchEscaped } from "@pawl/core/processes/escaped-errors.js";
import "@pawl/models/no-telemetry.js";
import { packageVersion } from "@pawl/core/version.js";
import { note, print, processIo } from "./io.js";

/** How long what a command left behind may keep its process alive. */
const LEFT_BEHIND_MS = 1000;
/** As shells count a stop by Ctrl-C. */
const INTERRUPTED = 130;

const args = process.argv.slice(2);
if (["--version", "-v", "version"].includes(args[0] ?? "")) {
  print(processIo(), packageVersion());
} else {
  const controller = new AbortController();
  const stop = (signal: NodeJS.Signals): void => {
    // The second Ctrl-C does not wait for anything. The signal itself ends the process: `exit`
    // would tear down ONNX Runtime in the middle of its work, which aborts with a C++ error.
    if (controller.signal.aborted) {
      process.emit("exit", INTERRUPTED);
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
    controller.abort(new Error(`stopped by ${signal}`));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  // A reader that closes the pipe early (`pawl show | head`) is not an error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  const { main } = await import("./dispatch.js");
  process.exitCode = await main(args, processIo(), controller.signal);
  // What an agent left behind may fail now, and nobody waits for it.
  catchEscaped((error) => {
    note(processIo(), String(error instanceof Error ? error.stack : error));
    process.exit(1);
  });
  // A world that hangs may hold sockets and timers for ever, but the command is done.
  const leave = (): void => {
    if (process.stdout.writableLength > 0) setTimeout(leave, LEFT_BEHIND_MS).unref();
    else process.exit();
  };
  setTimeout(leave, LEFT_BEHIND_MS).unref();
}
