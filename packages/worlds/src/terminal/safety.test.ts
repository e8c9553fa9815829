/** The shell is tried: it reaches nothing real, and nothing that it is given hangs or kills it. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runLines } from "./shell/lines-testing.js";
import { cloneSession, runCommand } from "./shell/session.js";
import type { TerminalTask } from "./task.js";
import { scoreTask, startTask } from "./tasks-session.js";
import { createTerminalEnv } from "./terminal-env.js";

const SECRET = "a-secret-of-this-machine";

describe("the real machine", () => {
  let folder: string;
  let file: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "pawl-real-"));
    file = join(folder, "secret.txt");
    writeFileSync(file, SECRET);
    process.env.PAWL_TERMINAL_SECRET = SECRET;
  });
  afterAll(() => {
    delete process.env.PAWL_TERMINAL_SECRET;
    rmSync(folder, { recursive: true, force: true });
  });

  it("has files that are neither read nor written", () => {
    const up = `${"../".repeat(12)}${file}`;
    const said = runLines(
      `cat ${file}; cat < ${file}; cat ${up}; head ${file}; . ${file}; bash ${file}; cp ${file} x`,
      `ls ${folder} / /proc/1 /proc/self; find / -name secret.txt; grep -r secret /; ln -s ${file} l; cat l`,
      `awk '{print}' ${file}; awk 'BEGIN{while((getline x < "${file}")>0) print x}'; sed -n p ${file}`,
      `sed 'r ${file}' /etc/passwd; sort ${file}; diff ${file} /dev/null; read x < ${file}; echo $x`,
      `mapfile y < ${file}; echo \${y[@]}; xargs cat <<< ${file}; find ${folder} -exec cat {} +`,
      `mkdir -p ${folder}/made; echo written > ${file}; touch ${folder}/touched; rm -rf ${folder}; rm -rf /tmp`,
      `echo x > x; awk 'BEGIN{print "x" > "${file}"}'; sed 'w ${file}' x; tee ${file} < x; mv x ${file}`,
    );
    expect(said).not.toContain(SECRET);
    expect(readFileSync(file, "utf8")).toBe(SECRET);
    expect(readdirSync(folder)).toEqual(["secret.txt"]);
  });

  it("has variables that are not told", () => {
    const said = runLines(
      "env; printenv; set; export -p; declare -p; echo $PAWL_TERMINAL_SECRET; cat /proc/self/environ",
      "awk 'BEGIN{for (k in ENVIRON) print k, ENVIRON[k]; print ENVIRON[\"PAWL_TERMINAL_SECRET\"]}'",
      'x=PAWL_TERMINAL_SECRET; echo ${!x} "$(eval echo \\$$x)" ${process} ${globalThis}; env -i env; id; hostname',
    );
    expect(said).not.toContain(SECRET);
  });

  it("has programs that are not started", () => {
    const made = join(folder, "made");
    const said = runLines(
      `/bin/touch ${made}; bash -c 'touch ${made}'; sh -c "/usr/bin/touch ${made}"; exec /bin/touch ${made}`,
      `awk 'BEGIN{system("touch ${made}"); print "x" | "cat > ${made}"; "touch ${made}" | getline}'`,
      `echo x | sed 's/x/touch ${made.replaceAll("/", "\\/")}/e'; sed '1e touch ${made}' /etc/passwd`,
      `find / -maxdepth 1 -exec touch ${made} \\;; echo ${made} | xargs touch; env touch ${made}; timeout 1 touch ${made}`,
      "node -e 1; python3 -c 1; perl -e 1; git status; docker ps; kill -9 -1; kill 1",
    );
    expect(existsSync(made)).toBe(false);
    expect(said).toContain("node: command not found");
  });

  it("has a network that is not reached", async () => {
    let calls = 0;
    const server = createServer((socket) => {
      calls += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const at = `127.0.0.1:${port}`;
    runLines(
      `cat < /dev/tcp/127.0.0.1/${port}; echo x > /dev/udp/127.0.0.1/${port}; exec 3<>/dev/tcp/127.0.0.1/${port}`,
      `curl http://${at}; wget http://${at}; nc 127.0.0.1 ${port}; telnet 127.0.0.1 ${port}`,
      `awk 'BEGIN{"/inet/tcp/0/127.0.0.1/${port}" |& getline x; print x}'`,
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    server.close();
    expect(calls).toBe(0);
  });

  it("is not imported: the shell and its programs know no module of Node's but its hashes", () => {
    const imports = ["shell", "commands"].flatMap((room) =>
      readdirSync(join(import.meta.dirname, room))
        .filter(
          (name) =>
            name.endsWith(".ts") && !name.endsWith("testing.ts") && !name.includes(".test."),
        )
        .flatMap((name) => {
          const text = readFileSync(join(import.meta.dirname, room, name), "utf8");
          expect(text, name).not.toMatch(
            /\bimport\(|\brequire\(|\beval\(|new Function|\bprocess\.(?!\n|$)\w/,
          );
          return [...text.matchAll(/from "(node:[^"]+|[^.@"][^"]*)"/g)].map(([, from]) => from);
        }),
    );
    expect([...new Set(imports)]).toEqual(["node:crypto"]);
  });
});

it("names that mean something to JavaScript mean nothing here", () => {
  const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"];
  const before = Object.getOwnPropertyNames(Object.prototype).sort();
  for (const name of names) {
    expect(runLines(name)).toBe(`bash: line 1: ${name}: command not found\n`);
    expect(runLines(`echo "[$${name}]" $((${name}))`)).toBe("[] 0\n");
    expect(
      runLines(
        `${name}=1; export ${name}; declare -A m; m[${name}]=2; echo $${name} \${m[${name}]} \${#m[@]}`,
        `${name}() { echo f; }; ${name}; touch ${name}; cat ${name}; trap ${name} ${name}; set -o ${name}`,
        `awk 'BEGIN{a["${name}"]=1; for (k in a) print k; ${name}=2; print ${name}}' 2>&1 | head -1`,
        `echo '{"${name}":{"polluted":1}}' > j; sort -k ${name} j; printf %${name} 1; test -${name} x; local ${name}`,
      ),
    ).toMatch(/^1 2 1\nf\n/);
  }
  runLines(
    'echo $((constructor.constructor("return process")())) ${x.constructor} `${process.env}`',
  );
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

describe("a hidden test", () => {
  const base: TerminalTask = {
    ...{ id: "x", family: "x", difficulty: 1, instruction: "x", folder: "/app", solution: [] },
    files: { "/app/f": "1\n" },
    test: "grep -q done /app/f && echo 1 > /logs/verifier/reward.txt",
  };
  const failed = { success: false, reward: 0 };

  it("that hangs, writes without end, or gives no number is failed", () => {
    for (const test of [
      "while :; do :; done",
      "yes",
      "sleep infinity; echo 1 > /logs/verifier/reward.txt",
      "echo nan > /logs/verifier/reward.txt",
      "echo '{' > /logs/verifier/reward.json",
      "mkdir /logs/verifier/reward.txt",
      "exit 0",
      "'",
    ])
      expect(scoreTask({ ...base, test }, startTask(base, 0)), test).toEqual(failed);
  });

  it("is not fooled by what was left for it", () => {
    for (const line of [
      "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
      "rm -rf /logs; ln -s /app /logs; ln -s /app /tests",
      "mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; chmod 444 /tests/test.sh",
      "rm -rf /*; rm -rf --no-preserve-root /",
      "yes > a; yes > b; yes > c; yes > d; yes > e",
      "echo 'exit 0' > /usr/local/bin/mkdir; chmod +x /usr/local/bin/mkdir",
    ]) {
      const { session } = runCommand(startTask(base, 0), line);
      expect(scoreTask(base, session), line).toEqual(failed);
    }
  });

  it("changes nothing, and is not seen", () => {
    const session = startTask(base, 0);
    const before = runCommand(cloneSession(session), "ls -laR /; date +%N").result;
    scoreTask(base, session);
    expect(runCommand(session, "ls -laR /; date +%N").result).toEqual(before);
    expect(before.output).not.toContain("test.sh");
  });
});

it("what our limits have not met breaks the episode", () => {
  const task: TerminalTask = {
    ...{ id: "x", family: "x", difficulty: 1, instruction: "x", folder: "/app", solution: [] },
    ...{ files: {}, test: "" },
  };
  const env = createTerminalEnv({
    taskOf: () => task,
    output: 1000,
    reward: "success",
    noise: "off",
  });
  env.reset({ id: "x", split: "x", type: "x" });
  const { machine } = env.episode.session;
  Object.defineProperty(machine, "work", {
    get: () => Number.POSITIVE_INFINITY,
    set: () => undefined,
  });
  expect(() => env.step("while :; do :; done")).toThrow(/busy for more than/);
});
