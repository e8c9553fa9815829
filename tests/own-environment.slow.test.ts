/**
 * Follows docs/tutorials/own-environment.md to the letter, in a folder of its own: writes its files,
 * runs its commands. A link to this package stands for `npm install pawl`.
 */
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-own-"));
const environment = {
  ...process.env,
  PATH: `${join(folder, "bin")}${delimiter}${process.env.PATH}`,
  XDG_CACHE_HOME: join(folder, "cache"),
  NO_COLOR: "1",
};

/** What is typed where a command asks. */
const TYPED = "?\nguess 4\nquit\n";

function bash(script: string, env: NodeJS.ProcessEnv = environment) {
  const { status, stdout, stderr } = spawnSync("bash", ["-e", "-c", script], {
    cwd: folder,
    env,
    encoding: "utf8",
    input: TYPED,
  });
  return { status, stdout, stderr };
}

interface Block {
  readonly language: string;
  readonly text: string;
}

const blocks: readonly Block[] = [
  ...readFileSync("docs/tutorials/own-environment.md", "utf8").matchAll(
    /^```(\w+)\n([\s\S]*?)^```$/gm,
  ),
].map(([, language, text]) => ({ language: language!, text: text! }));

/** The file that a block is to be saved as, named in its first line. */
const fileOf = ({ text }: Block): string | undefined => /^(?:#|\/\/) (\S+\.\w+)\n/.exec(text)?.[1];

/** What the commands of a block must print. */
const prints: readonly (readonly [start: string, ...printed: readonly RegExp[]])[] = [
  ["npm install pawl", /wrote guess\.ts/, /✓ carries out every admissible action/],
  ["node --test", /# fail 0/],
  ["npx pawl play", /guess 8/, /Higher\.|Lower\.|Right!/, /^all +50 /m],
  ["npx pawl train --config", /recorded to runs\/guess/],
  [
    "npx pawl eval --checkpoint",
    // A lucky random player solves some; this one has learnt.
    /^all +50 +(?:[89]\d\.\d|100\.0) %/m,
    /6 updates, \d+ numbers compared, 0 diverged/,
    /Right!/,
    /wrote report\.html/,
  ],
  ["cat > questions.jsonl", /^all +2 +100\.0 %/m],
  ["npx pawl env check --plugin ./judge.ts", /✓ keeps episodes apart/],
];

describe("the tutorial", () => {
  beforeAll(() => {
    mkdirSync(join(folder, "bin"));
    writeFileSync(join(folder, "bin", "npm"), "#!/bin/sh\n");
    chmodSync(join(folder, "bin", "npm"), 0o755);
    mkdirSync(join(folder, "node_modules", ".bin"), { recursive: true });
    symlinkSync(resolve("."), join(folder, "node_modules", "pawl"));
    symlinkSync(resolve("dist/lib/main.js"), join(folder, "node_modules", ".bin", "pawl"));
  });

  it("has a line here for every block of commands", () => {
    const commands = blocks.filter(({ language }) => language === "sh");
    expect(commands.map(({ text }, i) => text.startsWith(prints[i]?.[0] ?? "none"))).toEqual(
      prints.map(() => true),
    );
  });

  it.each(blocks.map((block) => [block.text.split("\n")[0], block] as const))("%s", (_, block) => {
    const file = fileOf(block);
    if (file !== undefined) {
      writeFileSync(join(folder, file), block.text);
      return;
    }
    expect(block.language).toBe("sh");
    const { status, stdout, stderr } = bash(block.text);
    expect(status, stdout + stderr).toBe(0);
    const [, ...printed] = prints.find(([start]) => block.text.startsWith(start))!;
    for (const pattern of printed) expect(stdout + stderr).toMatch(pattern);
  });

  it("has a starter that the compiler accepts", () => {
    const tsc = resolve("node_modules/typescript/bin/tsc");
    const types = `--types node --typeRoots ${resolve("node_modules/@types")}`;
    symlinkSync(resolve("node_modules/zod"), join(folder, "node_modules", "zod"));
    const { status, stdout } = bash(
      `node ${tsc} --noEmit --strict --skipLibCheck --module nodenext --target es2023 ${types} guess.ts judge.ts`,
    );
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });
});

describe("afterwards", () => {
  const evaluate = "node_modules/.bin/pawl eval --checkpoint runs/guess --split valid --tasks 2";
  const plugin = join(folder, "guess.ts");

  it("pawl env new leaves existing files alone, and says what a name may be", () => {
    const again = bash("node_modules/.bin/pawl env new guess");
    expect(again.stderr).toMatch(/guess\.ts exists already: choose another name/);
    expect(again.status).toBe(2);
    expect(bash("node_modules/.bin/pawl env new Guess").stderr).toMatch(
      /lowercase letters, digits and dashes/,
    );
    expect(bash("node_modules/.bin/pawl env new tasks").stderr).toMatch(
      /an environment "tasks" already/,
    );
  });

  it("who has never named the plugin must do so", () => {
    const other = { ...environment, XDG_CACHE_HOME: join(folder, "other-user") };
    const refused = bash(evaluate, other);
    expect(refused.stderr).toMatch(
      /runs\/guess was made with the plugin .*guess\.ts, which you have not used/,
    );
    expect(refused.status).toBe(1);
    const shown = bash("node_modules/.bin/pawl show runs/guess", other);
    expect(shown.status).toBe(0);
    expect(bash(`${evaluate} --plugin ./guess.ts`, other).status).toBe(0);
    expect(bash(evaluate, other).status).toBe(0);
  });

  it("a changed plugin must be named, and the change is said and recorded", () => {
    appendFileSync(plugin, "// changed\n");
    const refused = bash(evaluate);
    expect(refused.stderr).toMatch(/guess\.ts, which has changed since: .* name it with --plugin/);
    expect(refused.status).toBe(1);
    const resumed = bash(
      "node_modules/.bin/pawl train --resume runs/guess --updates 7 --plugin ./guess.ts",
    );
    expect(resumed.stderr).toMatch(
      /warning: the plugin .*guess\.ts has changed since it was recorded/,
    );
    expect(resumed.status, resumed.stderr).toBe(0);
    const manifest = JSON.parse(readFileSync(join(folder, "runs/guess/manifest.json"), "utf8"));
    const [first, last] = manifest.resumes;
    expect(first.plugins[0].path).toBe(plugin);
    expect(last.plugins[0].sha256).not.toBe(first.plugins[0].sha256);
    expect(manifest.plugins).toEqual(last.plugins);
    // Named once as it is now, it is known.
    expect(bash(evaluate).status).toBe(0);
  });

  it("a plugin that has moved is found by naming it, and one that is gone is refused", () => {
    renameSync(plugin, join(folder, "moved.ts"));
    const refused = bash(evaluate);
    expect(refused.stderr).toMatch(
      /guess\.ts, which is not there: put it back, or say where it is/,
    );
    expect(refused.status).toBe(1);
    expect(bash(`${evaluate} --plugin moved.ts`).status).toBe(0);
    expect(existsSync(plugin)).toBe(false);
  });
});
