/** Runs tasks in the machine's own bash, in a temporary folder in place of `/`. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { REWARD_FILE, type TerminalTask } from "./task.js";

/** What a task's test says of a state. */
interface Verdict {
  readonly success: boolean;
  readonly reward: number;
}

/** Whether there is a bash here with the tools that tasks are made for (GNU's). */
export const hasBash = spawnSync("sed", ["--version"]).stdout?.includes("GNU") === true;

/** What the test says before the solution and after it. */
export function solveInBash(task: TerminalTask): {
  readonly before: Verdict;
  readonly after: Verdict;
} {
  const root = mkdtempSync(join(tmpdir(), "pawl-bash-"));
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  try {
    mkdirSync(join(root, task.folder), { recursive: true });
    for (const [path, text] of Object.entries(task.files)) put(path, text);
    put("/test.sh", task.test.replaceAll("/logs/verifier", join(root, "logs/verifier")));
    const test = `bash '${root}/test.sh'; echo "verdict $? $(cat '${root}${REWARD_FILE}')"`;
    const { stdout } = spawnSync("bash", ["-s"], {
      cwd: join(root, task.folder),
      env: { PATH: process.env.PATH, HOME: root, LC_ALL: "C", TZ: "UTC" },
      input: [test, ...task.solution, test, ""].join("\n"),
      encoding: "utf8",
    });
    const verdicts = [...stdout.matchAll(/^verdict (\d+) (.*)$/gm)].map(([, code, reward]) => ({
      success: code === "0",
      reward: Number(reward),
    }));
    return { before: verdicts[0]!, after: verdicts[1]! };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
