/** PyTorch servers on this machine, one for each run of a comparison at a time. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { EngineServers } from "@pawl/studies/compare.js";
import {
  startTorchServer,
  type TorchPython,
  type TorchServer,
  type TorchServerOptions,
} from "./torch-server.js";

/** How to start the servers. */
export interface ServerPoolOptions
  extends Omit<TorchServerOptions, "model" | "name" | "host" | "port" | "nproc" | "checkpoints"> {
  readonly count: number;
  readonly python: TorchPython;
  /** The comparison's folder, for checkpoints and the servers' output. */
  readonly out: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Callback for output that cannot be kept, once. */
  readonly onProblem: (message: string) => void;
}

/** Servers that are started when they are needed, and again if they have ended. */
export interface ServerPool extends EngineServers {
  stop(): Promise<void>;
}

/** Where the servers' output is, in the comparison's folder. */
export const SERVER_LOGS = "servers";

/** Makes a pool; no server runs yet. */
export function createServerPool(options: ServerPoolOptions): ServerPool {
  const { count, python, out, environment, onProblem, ...settings } = options;
  const servers = new Map<number, Promise<TorchServer>>();
  let isLost = false;
  const keep = (line: string, path: string): void => {
    try {
      mkdirSync(dirname(path), { recursive: true });
      appendFileSync(path, `${line}\n`);
    } catch (error) {
      // The runs are worth more than what their servers say.
      if (!isLost) onProblem(`what the servers say is lost: ${(error as Error).message}`);
      isLost = true;
    }
  };
  const start = (place: number): Promise<TorchServer> => {
    const log = join(out, SERVER_LOGS, `${place + 1}.log`);
    // All share the folder, so that any of them can continue any run.
    const checkpoints = resolve(out, "checkpoints");
    const placed = { ...settings, checkpoints, host: "127.0.0.1", port: 0, nproc: 1 };
    return startTorchServer(python, placed, environment, (line) => keep(line, log));
  };
  return {
    count,
    async open(place) {
      const known = await servers.get(place)?.catch(() => undefined);
      if (known !== undefined && isRunning(known)) return known.url;
      const started = start(place);
      servers.set(place, started);
      return (await started).url;
    },
    async stop() {
      const started = await Promise.allSettled(servers.values());
      await Promise.all(
        started.map((one) => (one.status === "fulfilled" ? one.value.stop() : undefined)),
      );
    },
  };
}

const isRunning = ({ process: { exitCode, signalCode } }: TorchServer): boolean =>
  exitCode === null && signalCode === null;
