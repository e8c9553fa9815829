import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { beforeEach, describe, expect, it } from "vitest";
import { commands } from "./commands.js";
import { candidates } from "./completion.js";
import { runCli } from "./testing.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-cli-"));
});

const small = ["--groups", "2", "--group-size", "2"];

describe("help", () => {
  it("lists every command, and each has help with examples that name it", async () => {
    const { code, stdout } = await runCli(["--help"]);
    expect(code).toBe(0);
    for (const entry of commands) {
      const command = await entry.load();
      expect(command.name).toBe(entry.name);
      expect(stdout).toContain(command.name);
      const help = await runCli([...command.name.split(" "), "--help"]);
      expect(help.code).toBe(0);
      expect(help.stdout).toContain(`pawl ${command.name}`);
      expect(help.stdout).toContain("Examples");
    }
    expect((await runCli([])).stdout).toBe(stdout);
    expect((await runCli(["help", "show"])).stdout).toContain("pawl show RUN [EPISODE]");
  });

  it("shows defaults, choices and the options of the chosen environment", async () => {
    const { stdout } = await runCli(["rollout", "--help", "all"]);
    expect(stdout).toMatch(/--group-size NUMBER +episodes per task \(default: 8\)/);
    expect(stdout).toMatch(/--env\.noise off\|ids\|brands\|all/);
    expect(stdout).toMatch(/--policy expert\|[\s\S]{0,90}default: expert/);
  });
});

describe("wrong usage", () => {
  it.each([
    [["rolout"], 'unknown command "rolout". Did you mean "rollout"?'],
    [["bench", "paw", "--jobs", "2"], "pawl bench paw is now called pawl bench observations"],
    [
      ["bench", "observations", "--at", "5"],
      "--at: compares runs that are there; name their folders",
    ],
    [
      ["bench", "observations", "runs/a", "--at", "5", "--seeds", "0,1"],
      "--seeds: has no effect with FOLDERs",
    ],
    [["env"], "pawl env needs one of: list, info, new, make, export, prompt, check, replay"],
    [["env", "chek"], 'prompt, check, replay, got "chek". Did you mean "check"?'],
    [["train", "--wandb"], 'unknown option --wandb. Did you mean "--track"?'],
    [["rollout", "--grups", "3"], 'unknown option --grups. Did you mean "--groups"?'],
    [["rollout", "--env", "housolde"], 'There is no environment "housolde"'],
    [["rollout", "--split", "trian"], 'household has no split "trian"'],
    [["rollout", "--tasks", "train/0", "--groups", "2"], "--groups: contradicts tasks"],
    [["rollout", "--tasks", "train/99999999"], 'no task "train/99999999"'],
    [["rollout", "--env.objects", "24"], "--env.objects: expected at most 16 objects"],
    [["rollout", "extra"], 'unexpected "extra"'],
    [["rollout", "--config", "nowhere.yaml"], "there is no file nowhere.yaml"],
    [["rollout", "--config", "nowhere.ts"], "there is no file nowhere.ts"],
    [
      ["train", "--quick", "--config", "recipes/paper-alfworld.ts"],
      "--quick stands for the settings of recipes/quick.ts",
    ],
    [["train", "--quick", "--resume", "x"], "and --resume gives others"],
    [["show"], "pawl show needs a run folder"],
    [["show", "nowhere"], "nowhere is not a run folder"],
    [["completion", "tcsh"], "expected bash, zsh, fish, got tcsh"],
    [["env", "make", "household"], "makes games of textworld only; got household"],
    [["env", "make", "textworld", "--test", "11"], "--test 11 is more than --count 10"],
    [
      ["env", "make", "textworld", "--out", tmpdir(), "--tw-make", "/no/tw-make"],
      "/no/tw-make was not found. TextWorld's generator is a Python package",
    ],
    [["env", "replay"], "--file: required, but not given"],
    [["env", "replay", "--file", "x", "--data", "y"], "household environment does not read data"],
    [["env", "replay", "--file", "no-such.jsonl"], "no-such.jsonl"],
  ])("%j", async (args, message) => {
    const { code, stderr, stdout } = await runCli(args);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("    at ");
    expect(stdout).toBe("");
    expect(code).toBeGreaterThan(0);
  });

  it("refuses a file of settings where nothing would use them", async () => {
    const file = join(folder, "bench.yaml");
    writeFileSync(file, "seeds: [0]\n");
    const merged = await runCli(["bench", "observations", folder, "--config", file]);
    expect(merged.code).toBe(2);
    expect(merged.stderr).toContain("--config: has no effect with FOLDERs");
  });

  it("refuses a second agent by name", async () => {
    const twice = ["train", "--agent", "a.ts", "--agent=b.ts"];
    expect((await runCli(twice)).stderr).toContain(
      "--agent: given twice; expected one agent's file",
    );
  });
});

describe("rollout, runs and show", () => {
  it("records a rollout and shows it again", async () => {
    const out = join(folder, "first");
    const rollout = await runCli(["rollout", ...small, "--out", out]);
    expect(rollout.code).toBe(0);
    expect(rollout.stdout).toMatch(/^all +4 +100\.0 %/m);
    expect(rollout.stderr).toContain("4/4 episodes");

    const runs = await runCli(["runs", folder]);
    expect(runs.stdout).toMatch(/first +rollout +done .* household .* 100\.0 %/);

    const shown = await runCli(["show", out]);
    expect(shown.stdout).toMatch(/✓ 1\.1 /);
    const episode = await runCli(["show", out, "0.1"]);
    expect(episode.stdout).toMatch(/episode 0\.1/);
    expect(episode.stdout).toMatch(/goal .*\n/);
    expect(episode.stdout).toMatch(/reward 10/);
    expect(episode.stdout).toMatch(/solved {2}after \d+ steps/);
    expect(episode.stdout).not.toContain("<action>");
    expect((await runCli(["show", out, "solved", "--full"])).stdout).toContain("<action>");
    expect(JSON.parse((await runCli(["show", out, "0.1", "--json"])).stdout)).toMatchObject({
      attempt: 1,
    });
    expect((await runCli(["show", out, "7.7"])).stderr).toContain('no episode "7.7" among its 4');
  });

  it("gives the same episodes with the same seed, and others with another", async () => {
    const episodes = async (name: string, seed: string) => {
      const out = join(folder, name);
      await runCli(["rollout", ...small, "--policy", "random", "--seed", seed, "--out", out]);
      return (await runCli(["show", out, "--json"])).stdout;
    };
    const first = await episodes("a", "1");
    expect(await episodes("b", "1")).toBe(first);
    expect(await episodes("c", "2")).not.toBe(first);
  });

  it("takes settings from a file and lets flags win", async () => {
    const file = join(folder, "run.yaml");
    writeFileSync(
      file,
      "env: { name: household, noise: ids }\ngroups: 1\ngroupSize: 3\npolicy: random\n",
    );
    const out = join(folder, "run");
    const { code } = await runCli(["rollout", "--config", file, "--group-size", "2", "--out", out]);
    expect(code).toBe(0);
    const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
    expect(manifest).toMatchObject({
      schema: 1,
      kind: "rollout",
      status: "done",
      config: { env: { name: "household", noise: "ids", rooms: 2 }, groups: 1, groupSize: 2 },
      summary: { episodes: 2 },
    });
  });

  it("does not overwrite a run or write into another folder", async () => {
    const out = join(folder, "run");
    await runCli(["rollout", ...small, "--out", out]);
    expect((await runCli(["rollout", ...small, "--out", out])).stderr).toContain(
      "already holds a run",
    );
    const other = join(folder);
    expect((await runCli(["rollout", ...small, "--out", other])).stderr).toContain("is not empty");
  });

  it("reads a damaged run as far as it is intact", async () => {
    const out = join(folder, "run");
    await runCli(["rollout", ...small, "--out", out]);
    const records = join(out, "episodes.jsonl.gz");
    truncateSync(records, readFileSync(records).length - 10);
    const torn = await runCli(["show", out]);
    expect(torn.code).toBe(0);
    expect(torn.stderr).toContain("the last record was cut off");
    expect(torn.stdout).toMatch(/^all +3 /m);

    writeFileSync(join(out, "manifest.json"), '{"schema": 1, "kind"');
    expect((await runCli(["show", out])).stderr).toContain("manifest.json is not JSON");
    expect((await runCli(["runs", folder])).stderr).toContain("manifest.json is not JSON");
    writeFileSync(join(out, "manifest.json"), '{"schema": 99}');
    expect((await runCli(["show", out])).stderr).toContain("expected schema 1, found 99");
  });

  it("lets a person play and records it", async () => {
    const environment = openEnvironment({ name: "household" });
    const env = environment.create();
    if ("close" in env) throw new Error("household is in-process");
    env.reset(environment.task("train/3"));
    const actions: string[] = [];
    for (let done = false; !done; ) {
      actions.push(environment.expert!(env));
      done = env.step(actions.at(-1)!).done;
    }
    const out = join(folder, "human");
    const args = ["--policy", "human", "--tasks", "train/3", "--group-size", "1", "--out", out];
    const { code, stdout } = await runCli(["rollout", ...args], {
      input: `${actions.join("\n")}\n`,
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^all +1 +100\.0 %/m);
    const cut = await runCli(["rollout", ...args.slice(0, -1), join(folder, "cut")], {
      input: "look\n",
    });
    expect(cut.stderr).toMatch(/the only episode broke\. The first error, of task train\/3: /);
    expect(cut.code).toBe(1);
  });
});

describe("play", () => {
  it("plays, lists actions, gives hints, takes back, and stops", async () => {
    const { code, stdout } = await runCli(["play", "--task", "train/0"], {
      input: "?\nhint\nfly to the moon\nlook\nundo\nundo\nundo\ngoal\nhelp\nquit\n",
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^go to \w+ \d$/m);
    expect(stdout).toMatch(/^> \w+/m);
    expect(stdout).toContain("Taken back.");
    expect(stdout).toContain("There is nothing to take back.");
    expect(stdout).toContain("Stopped.");
  });

  it("ends when the input ends", async () => {
    expect((await runCli(["play", "--task", "train/0"], { input: "look\n" })).stdout).toContain(
      "Stopped.",
    );
  });
});

describe("env", () => {
  it("lists, describes and checks environments", async () => {
    expect((await runCli(["env", "list"])).stdout).toMatch(/^household +\S+/m);
    const info = await runCli(["env", "info", "household"]);
    expect(info.stdout).toMatch(
      /train +10,000 +[0-9a-f]{12} +pick, look, clean, heat, cool, pick_two/,
    );
    // An option that only the named one has.
    const check = await runCli(["env", "check", "desk", "--env.level", "easy"]);
    expect(check.code).toBe(0);
    expect(check.stdout.match(/^✓/gm)!.length).toBeGreaterThan(5);
    const needs = await runCli(["env", "info", "openenv"]);
    expect(needs.stdout).toMatch(/It needs options to be opened:.*url/s);
  });

  it.each([
    [["check", "nowhere"], 'There is no environment "nowhere"'],
    [["info", "desk", "--env.rooms", "1"], "unknown option --env.rooms"],
    [["prompt", "--steps", "1", "desk"], 'unexpected "desk"'],
  ])("refuses env %j", async (args, message) => {
    const { code, stderr } = await runCli(["env", ...args]);
    expect(stderr).toContain(message);
    expect(code).not.toBe(0);
  });

  it("replays traces: none differ, and a changed one is found", async () => {
    const environment = openEnvironment({ name: "household" });
    const env = environment.create();
    if ("close" in env) throw new Error("household is in-process");
    const trace = {
      game: "train/5",
      steps: [{ obs: env.reset(environment.task("train/5")), won: false }],
    };
    for (let done = false; !done; ) {
      const action = environment.expert!(env);
      const result = env.step(action);
      const { success: won } = result.info;
      trace.steps.push({
        action,
        obs: result.observation,
        admissible: env.admissibleActions!(),
        done: result.done,
        won,
      } as never);
      done = result.done;
    }
    const file = join(folder, "traces.jsonl.gz");
    const line = JSON.stringify(trace);
    writeFileSync(file, gzipSync(`${line}\n${line}\n`));
    const same = await runCli(["env", "replay", "--file", file]);
    expect(same.stdout).toBe(`traces 2, states ${2 * trace.steps.length}, mismatches 0\n`);
    expect(same.code).toBe(0);

    trace.steps[2]!.obs = "Something else.";
    const changed = join(folder, "changed.jsonl");
    writeFileSync(changed, `${line}\n${JSON.stringify(trace)}\n`);
    const different = await runCli(["env", "replay", "--file", changed]);
    expect(different.code).toBe(1);
    expect(different.stdout).toMatch(/mismatches 1$/m);
    expect(different.stdout).toContain("line 2, train/5, step 2: obs");
    expect(different.stdout).toContain('expected "Something else."');

    writeFileSync(changed, "{}\n");
    expect((await runCli(["env", "replay", "--file", changed])).stderr).toMatch(
      /changed\.jsonl:1: expected a trace/,
    );
    writeFileSync(changed, "");
    expect((await runCli(["env", "replay", "--file", changed])).stderr).toContain("holds no trace");
    writeFileSync(file, gzipSync(`${line}\n`).subarray(0, 60));
    expect((await runCli(["env", "replay", "--file", file])).stderr).toMatch(
      /traces\.jsonl\.gz: unreadable/,
    );
  });
});

describe("completion", () => {
  it("completes commands, options and choices", async () => {
    expect(await candidates(commands, ["ro"])).toEqual(["rollout"]);
    expect(await candidates(commands, ["env", ""])).toEqual([
      "check",
      "export",
      "info",
      "list",
      "make",
      "new",
      "prompt",
      "replay",
    ]);
    expect(await candidates(commands, ["rollout", "--group"])).toEqual([
      "--group-size",
      "--groups",
    ]);
    expect(await candidates(commands, ["rollout", "--env.noise", ""])).toEqual([
      "all",
      "brands",
      "ids",
      "off",
    ]);
    expect(await candidates(commands, ["rollout", "--policy", "r"])).toEqual(["random"]);
    expect(await candidates(commands, ["nonsense", ""])).toEqual([]);
    expect(await candidates(commands, ["env", "info", "al"])).toEqual(["alfworld"]);
    expect(await candidates(commands, ["env", "info", "alfworld", "al"])).toEqual([]);
  });

  /** How a shell is told what has been typed, and made to say what it would offer. */
  const shells = {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's
    bash: 'COMP_WORDS=(pawl train --env ""); COMP_CWORD=3; _pawl; printf "%s\\n" "${COMPREPLY[@]}"',
    zsh: 'words=(pawl train --env ""); CURRENT=4; compadd() { shift; print -l "$@" }; _pawl',
    fish: 'complete --do-complete "pawl train --env "',
  };
  for (const [shell, offer] of Object.entries(shells)) {
    const there = spawnSync(shell, ["-c", "true"]).status === 0;
    it.skipIf(!there)(`offers in ${shell} what pawl complete says`, async () => {
      const { stdout: script } = await runCli(["completion", shell]);
      const pawl = `pawl() { "${process.execPath}" dist/lib/main.js "$@"; }`;
      const setup = {
        bash: pawl,
        zsh: `compdef() { : }; ${pawl}`,
        fish: `function pawl; "${process.execPath}" dist/lib/main.js $argv; end`,
      }[shell]!;
      const { stdout, stderr } = spawnSync(shell, ["-c", `${setup}\n${script}\n${offer}`], {
        encoding: "utf8",
      });
      expect(stderr).toBe("");
      expect(stdout.trim().split("\n")).toEqual(await candidates(commands, ["train", "--env", ""]));
    });
  }
});
