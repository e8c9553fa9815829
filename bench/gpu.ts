/**
 * Training and sampling speed of the PyTorch server's engine on a GPU, compared with plain
 * transformers.
 *
 *   PAWL_PYTHON=/path/to/python npm run bench -- gpu [--shape qwen2.5-1.5b] [--model FOLDER] \
 *     [SECTION ...]
 *
 * With a model folder it also measures a whole update (bench/update.ts). Everything else is
 * measured by bench/gpu/gpu_bench.py, which also runs on a machine without Node: there it reads
 * the objectives from a file that `--objectives FILE` alone writes, on a machine with Node.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { objectiveOptions, updateObjective } from "../src/objectives/objective.js";
import { pawOptions } from "../src/objectives/paw-options.js";
import { main as measureUpdate } from "./update.js";

const SCRIPT = fileURLToPath(new URL("./gpu/gpu_bench.py", import.meta.url));

/** Runs the benchmark and returns its results, or writes the objectives it needs to a file. */
export async function main(args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      shape: { type: "string", default: "qwen2.5-1.5b" },
      timeout: { type: "string", default: "600" },
      objectives: { type: "string" },
      model: { type: "string" },
    },
  });
  if (values.objectives !== undefined) {
    await writeFile(values.objectives, JSON.stringify(objectives()));
    return { objectives: values.objectives };
  }
  const folder = await mkdtemp(join(tmpdir(), "pawl-gpu-"));
  try {
    const file = join(folder, "objectives.json");
    await writeFile(file, JSON.stringify(objectives()));
    const { shape, timeout, model } = values;
    const whole = model === undefined ? {} : await measureUpdate(["--model", model]);
    const measured = await run([
      "--objectives",
      file,
      "--shape",
      shape,
      "--timeout",
      timeout,
      ...positionals,
    ]);
    return { ...measured, ...whole };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The objectives of an update without and with PaW, at the recipes' defaults. */
function objectives() {
  const options = objectiveOptions().parse({});
  const paw = pawOptions().parse({});
  const objective = (kind: "off" | "cmae") => {
    const { loss, metrics } = updateObjective(options, { ...paw, loss: kind }, { critic: false });
    return { loss, metrics };
  };
  return { grpo: objective("off"), paw: objective("cmae") };
}

/** The last line that the script prints; all its lines are passed on as they come. */
function run(args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const python = process.env.PAWL_PYTHON ?? "python3";
  const child = spawn(python, [SCRIPT, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data: Buffer) => {
    output += data.toString();
    process.stderr.write(data);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(output.trim().split("\n").at(-1)!));
      else
        reject(new Error(`${python} ${SCRIPT} ended with ${code}; it needs PyTorch (PAWL_PYTHON)`));
    });
  });
}
