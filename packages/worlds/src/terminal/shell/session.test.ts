import { describe, expect, it } from "vitest";
import { makeFolders, readFile, writeFile } from "./file-system.js";
import { cloneSession, createSession, runCommand, type Session } from "./session.js";

const inApp = (seed = 0): Session => {
  const session = createSession(seed);
  makeFolders(session.machine.fs, "/app");
  return { ...session, folder: "/app" };
};
const run = (command: string, session = inApp()) => runCommand(session, command).result;
const say = (command: string): string => run(command).output;

describe("a command line", () => {
  it.each([
    ["echo $((2 ** 10)) {a,b}{1,2}", "1024 a1 a2 b1 b2\n"],
    [
      'x=dir/name.tar.gz; echo "${x##*/}" ${x%%.*} ${x/name/new}',
      "name.tar.gz dir/name dir/new.tar.gz\n",
    ],
    ["seq 3 | while read -r n; do echo $((n * n)); done", "1\n4\n9\n"],
    ["f() { local x=$1; return 3; }; f a; echo $?", "3\n"],
    ["printf 'b 2\\na 1\\n' > f; sort f | awk '{print $2}'", "1\n2\n"],
    ["cat <<E\n$(echo hi) \\$x\nE", "hi $x\n"],
    ["a=(1 '2 3'); a+=(4); echo ${#a[@]} \"${a[1]}\"", "3 2 3\n"],
    ["set -e; false || echo on; false; echo never", "on\n"],
    ["for f in *.none; do echo $f; done; touch x.none; echo *.none", "*.none\nx.none\n"],
    ["nothing-here", "bash: line 1: nothing-here: command not found\n"],
    ["echo 'é' | wc -c; echo 'é'", "3\né\n"],
  ])("%s", (command, output) => {
    expect(say(command)).toBe(output);
  });

  it.each([
    ["yes | head -n 2", "y\ny\n"],
    ["yes | cat | head -n 1", "y\n"],
    ["cat /dev/urandom | tr -dc a-z | head -c 8 | wc -c", "8\n"],
    ["head -c 100000 /dev/zero | wc -c; head -c 3 < /dev/zero | wc -c", "100000\n3\n"],
    ["seq 400000 | tail -n 1", "400000\n"],
  ])("takes the beginning of what is endless or long: %s", (command, output) => {
    expect(run(command)).toMatchObject({ output, code: 0, stopped: undefined });
  });

  it.each([
    "seq 1000000 | tail -n 1",
    "yes | tail -n 1; echo on",
    "(yes | cat) | (cat; echo on) | wc -l",
    "head -c 99999999 /dev/zero > big; ls -l big",
    "printf '%9999999s' x | wc -c",
  ])("is stopped rather than wrong where a pipe was cut: %s", (command) => {
    expect(run(command).stopped).toBe("it wrote too much");
  });

  it("begins in the folder where the last one ended, and knows none of its variables", () => {
    const { session } = runCommand(inApp(), "mkdir -p a/b; cd a/b; x=1; export y=2");
    expect(run('pwd; echo "[$x$y]"', session).output).toBe("/app/a/b\n[]\n");
  });

  it("sees times, process ids and random numbers that follow from the seed", () => {
    const command =
      "date +%s; echo $$ $RANDOM; mktemp; head -c 8 /dev/urandom | base64; touch t; ls -l t";
    expect(run(command, inApp(1))).toEqual(run(command, inApp(1)));
    const [one, two] = [run(command, inApp(1)), run(command, inApp(2))].map(({ output }) =>
      output.split("\n"),
    );
    expect(one!.map((line, n) => line === two![n])).toEqual([...Array(5).fill(false), true]);
  });

  it("in a copy changes nothing in the original, and goes on as it would have", () => {
    const session = inApp();
    writeFile(session.machine.fs, "/app/f", "1\n");
    const copy = cloneSession(session);
    const command = "echo 2 >> f; echo $RANDOM; date +%N";
    expect(runCommand(copy, command).result).toEqual(runCommand(session, command).result);
    runCommand(copy, "rm f");
    expect(readFile(session.machine.fs, "/app/f")).toBe("1\n2\n");
  });
});
