/**
 * A task of Harbor in a container of Docker or Podman. Of the folder, only the container's own
 * programs read anything; this machine runs `docker` or `podman` and nothing else.
 */
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { z } from "zod";
import type { FolderFiles, HarborFolder } from "./harbor-folder.js";

export type ContainerProgram = "docker" | "podman";

/** A running container. */
export interface Container {
  /** Runs a command line; its folder stays for the next, its variables do not. */
  run(
    command: string,
    signal?: AbortSignal,
  ): Promise<{ readonly output: string; readonly code: number }>;
  /** Runs the hidden test, which may change what is there: the reward that it writes. */
  score(): Promise<number>;
  close(): Promise<void>;
}

/** A container that is forgotten ends by itself. */
const LONGEST_LIFE_SECONDS = 7200;
const LARGEST_OUTPUT = 2 ** 20;
const PLAIN_IMAGE = /^[a-z0-9][\w./:@-]*$/;

interface Call {
  readonly seconds?: number;
  readonly signal?: AbortSignal | undefined;
}

interface Answer {
  readonly output: string;
  readonly code: number;
}

/** Builds the image of a task, unless it is there, and starts a container of it. */
export async function openContainer(
  task: HarborFolder,
  program: ContainerProgram,
): Promise<Container> {
  const { config, path } = task;
  const call = (args: readonly string[], options?: Call) => callProgram(program, args, options);
  const must = async (args: readonly string[], what: string, options?: Call): Promise<string> => {
    const { output, code } = await call(args, options);
    if (code === 0) return output.trim();
    throw new EnvError(
      `terminal: ${path}: ${program} could not ${what}: ${output.trim().slice(-500)}`,
    );
  };
  const image = await imageOf(task, call, must);
  const { environment, verifier } = config;
  const network =
    environment.network_mode ?? (environment.allow_internet ? "public" : "no-network");
  const id = await must(
    [
      ...["run", "--detach", "--rm", "--init", "--pids-limit", "1024", "--label", "pawl"],
      ...(network === "public" ? [] : ["--network", "none"]),
      ...(environment.cpus === undefined ? [] : ["--cpus", String(environment.cpus)]),
      ...(environment.memory_mb === undefined ? [] : ["--memory", `${environment.memory_mb}m`]),
      ...(environment.workdir === undefined ? [] : ["--workdir", environment.workdir]),
      ...Object.entries(environment.env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      ...["--entrypoint", "sleep", image, String(LONGEST_LIFE_SECONDS)],
    ],
    "start a container",
  );
  const close = async (): Promise<void> => {
    await call(["rm", "--force", id]);
  };
  const inside = (script: string, what: string): Promise<string> =>
    must(["exec", id, "bash", "-c", script], what);
  try {
    const start = await inside("pwd", "run bash in it");
    return { ...commands(call, id, start), score: () => score(), close };
  } catch (error) {
    await close();
    throw error;
  }

  async function score(): Promise<number> {
    await inside("rm -rf /tests /logs/verifier && mkdir -p /tests /logs/verifier", "clear /tests");
    await must(["cp", `${join(path, "tests")}/.`, `${id}:/tests`], "copy the tests");
    const env = Object.entries(verifier.env).flatMap(([name, value]) => [
      "--env",
      `${name}=${value}`,
    ]);
    await call(["exec", ...env, id, "bash", "/tests/test.sh"], { seconds: verifier.timeout_sec });
    const read = (file: string) => inside(`cat /logs/verifier/${file} 2>/dev/null || true`, "read");
    return rewardOf(await read("reward.json"), await read("reward.txt"), path);
  }
}

/** The image of a task: the one it names, or the one built from its `environment/`. */
async function imageOf(
  { config, path, environment }: HarborFolder,
  call: (args: readonly string[]) => Promise<Answer>,
  must: (args: readonly string[], what: string, options?: Call) => Promise<string>,
): Promise<string> {
  const named = config.environment.docker_image;
  if (named !== undefined) {
    if (PLAIN_IMAGE.test(named)) return named;
    throw new EnvError(
      `terminal: ${path}: environment.docker_image is ${JSON.stringify(named)}; expected the name of an image`,
    );
  }
  if (!environment.has("Dockerfile"))
    throw new EnvError(
      `terminal: ${path}: expected environment/Dockerfile, or environment.docker_image in task.toml`,
    );
  const tag = `pawl-task:${contentHash(environment)}`;
  const { code } = await call(["image", "inspect", tag]);
  if (code === 0) return tag;
  await must(["build", "--quiet", "--tag", tag, join(path, "environment")], "build its image", {
    seconds: config.environment.build_timeout_sec,
  });
  return tag;
}

function contentHash(files: FolderFiles): string {
  const hash = createHash("sha256");
  for (const [path, { bytes, mode }] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`${path}\0${mode}\0${bytes.length}\0`).update(bytes);
  return hash.digest("hex").slice(0, 24);
}

/** Runs commands one after the other, each where the one before it left off. */
function commands(
  call: (args: readonly string[], options?: Call) => Promise<Answer>,
  id: string,
  start: string,
): Pick<Container, "run"> {
  let folder = start;
  return {
    async run(command, signal) {
      const mark = randomUUID();
      // One stream for both outputs keeps their order; the trap also tells the folder after `exit`.
      const script = `exec 2>&1; cd -- "$1"; trap 'printf "%s%s" "$3" "$PWD"' EXIT; eval "$2"`;
      const { output, code } = await call(
        ["exec", id, "bash", "-c", script, "bash", folder, command, mark],
        { signal },
      );
      const at = output.lastIndexOf(mark);
      if (at < 0) return { output, code };
      folder = output.slice(at + mark.length);
      return { output: output.slice(0, at), code };
    },
  };
}

const number = z.number();
const numbers = z.record(z.string(), number);

/** The reward that a test wrote, read as Harbor reads it: `reward.json` before `reward.txt`. */
export function rewardOf(json: string, text: string, path: string): number {
  const fail = (message: string): never => {
    throw new EnvError(`terminal: ${path}: ${message}`);
  };
  if (json.trim() !== "") {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      return fail("its test wrote a reward.json that is no JSON");
    }
    const single = number.safeParse(value);
    if (single.success) return single.data;
    const several = numbers.safeParse(value);
    const rewards = several.success ? several.data : {};
    return (
      rewards.reward ??
      (Object.keys(rewards).length === 1
        ? Object.values(rewards)[0]!
        : fail("its test wrote a reward.json without one number named reward"))
    );
  }
  if (text.trim() === "") return fail("its test wrote no /logs/verifier/reward.json or reward.txt");
  const value = Number(text);
  return Number.isFinite(value)
    ? value
    : fail(`its test wrote ${JSON.stringify(text.trim().slice(0, 40))} as its reward`);
}

/** Whether a program is on the path. */
export function isInstalled(program: string): boolean {
  return (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, program)));
}

/** Runs `docker` or `podman`; what it writes beyond a megabyte is dropped. */
function callProgram(
  program: ContainerProgram,
  args: readonly string[],
  { seconds, signal }: Call = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    const parts: Buffer[] = [];
    let size = 0;
    const take = (part: Buffer): void => {
      if (size < LARGEST_OUTPUT) parts.push(part.subarray(0, LARGEST_OUTPUT - size));
      size += part.length;
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const end = (): void => {
      child.kill("SIGKILL");
      done();
      reject(new EnvError(`terminal: ${program} ${args[0]} took too long and was stopped`));
    };
    const timer = seconds === undefined ? undefined : setTimeout(end, seconds * 1000);
    signal?.addEventListener("abort", end, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      child.stdout.destroy();
      child.stderr.destroy();
    }
    child.once("error", (error) => {
      done();
      reject(
        new EnvError(
          `terminal: cannot start ${program}: ${error.message}. Install it, or leave env.runner out`,
          { cause: error },
        ),
      );
    });
    child.once("close", (code) => {
      done();
      resolve({ output: Buffer.concat(parts).toString(), code: code ?? 137 });
    });
  });
}
