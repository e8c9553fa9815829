import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findHarborTasks, readHarborFolder } from "./harbor-folder.js";
import { imageOf } from "./harbor-image.js";
import { writeHarborTask } from "./harbor-write.js";
import { madeTasks, taskKinds } from "./tasks.js";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-harbor-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function someTasks(count: number) {
  const source = madeTasks({ seed: 5, difficulty: 2, kinds: taskKinds });
  return source.lists.test!().slice(0, count).map(source.load);
}

/** A smallest task, with some of its files replaced. */
function smallest(files: Readonly<Record<string, string>> = {}): void {
  const all = {
    "task.toml": 'version = "1.0"\n',
    "instruction.md": "Make a file.\n",
    "environment/Dockerfile": "FROM debian:12-slim\n",
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    ...files,
  };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(join(folder, "one", path, ".."), { recursive: true });
    writeFileSync(join(folder, "one", path), text);
  }
}

const reading = () => readHarborFolder(folder, "one");

describe("Harbor's folders", () => {
  it("are written for made-up tasks, and read as they were written", async () => {
    const tasks = someTasks(16);
    for (const task of tasks) await writeHarborTask(folder, task);
    expect(findHarborTasks(folder)).toEqual(tasks.map(({ id }) => id).sort());
    for (const task of tasks) {
      const read = readHarborFolder(folder, task.id);
      expect(read.instruction).toBe(task.instruction);
      expect(read.config.environment.workdir).toBe(task.folder);
      expect(read.config.metadata.family).toBe(task.family);
      expect(read.tests.get("test.sh")!.bytes.toString()).toBe(task.test);
      expect(imageOf(read)).toMatchObject({ files: task.files, folder: task.folder });
    }
  });

  it("may be of older schemas, and say more than is read", () => {
    smallest({
      "task.toml": `version = "1.0"
[metadata]
author_name = "somebody" # not read
tags = [
  "shell",
]
[environment]
cpus = 2
allow_internet = false
mcp_servers = []
`,
    });
    expect(reading().config.environment.cpus).toBe(2);
  });

  it.each([
    ["another schema", 'schema_version = "2.0"', /schema_version is 2.0; expected 1.0 to 1.4/],
    ["a damaged file", "[environment\n", /task.toml: line 1/],
    ["windows", '[environment]\nos = "windows"', /environment.os/],
    ["GPUs", "[environment]\ngpus = 1", /environment.gpus/],
    ["lists of hosts", '[environment]\nnetwork_mode = "allowlist"', /environment.network_mode/],
    ["servers", '[[environment.mcp_servers]]\nname = "x"', /environment.mcp_servers/],
    ["a verifier apart", '[verifier]\nenvironment_mode = "separate"', /verifier.environment_mode/],
    ["several steps", '[[steps]]\nname = "x"', /steps/],
    ["keys of this machine", `[verifier.env]\nKEY = "\${OPENAI_API_KEY}"`, /verifier.env.KEY/],
  ])("with %s are refused by name", (_, toml, message) => {
    smallest({ "task.toml": toml });
    expect(reading).toThrow(message);
  });

  it("with links, huge files or no test are refused by name", () => {
    smallest();
    const link = join(folder, "one/environment/passwd");
    symlinkSync("/etc/passwd", link);
    expect(reading).toThrow(/environment\/passwd: links are not followed/);
    rmSync(link);
    symlinkSync("/etc", link);
    expect(reading).toThrow(/environment\/passwd: links are not followed/);
    rmSync(link);
    writeFileSync(link, "");
    truncateSync(link, 5 * 2 ** 20);
    expect(reading).toThrow(/environment\/passwd: has 5242880 bytes/);
    rmSync(link);
    rmSync(join(folder, "one/tests"), { recursive: true });
    symlinkSync("/etc", join(folder, "one/tests"));
    expect(reading).toThrow(/one\/tests: expected a folder, and no link/);
    rmSync(join(folder, "one/tests"));
    expect(reading).toThrow(/tests\/test.sh: there is no such file/);
  });

  it("with several containers are refused by name", () => {
    smallest({ "environment/docker-compose.yaml": "services: {}\n" });
    expect(reading).toThrow(/docker-compose.yaml: tasks of several containers/);
  });

  it("are expected where the user says", () => {
    expect(() => findHarborTasks(folder)).toThrow(/no task is there/);
    expect(() => findHarborTasks(join(folder, "none"))).toThrow(/cannot read .*none/);
  });

  const image = (dockerfile: string, files: Readonly<Record<string, string>> = {}) => {
    smallest({ "environment/Dockerfile": dockerfile, ...files });
    return imageOf(reading());
  };

  it("with a Dockerfile of copies and commands are made in process", () => {
    expect(
      image(
        `# an image
FROM ubuntu:24.04
WORKDIR /srv
ENV NAME=value
COPY --chmod=755 run.sh .
COPY data logs/old.log kept/
RUN echo one > a.txt \\
  && echo two > b.txt
CMD ["bash"]
`,
        {
          "environment/run.sh": "true\n",
          "environment/data/one.csv": "1\n",
          "environment/data/in/two.csv": "2\n",
          "environment/logs/old.log": "3\n",
        },
      ),
    ).toEqual({
      folder: "/srv",
      files: {
        "/srv/run.sh": "true\n",
        "/srv/kept/one.csv": "1\n",
        "/srv/kept/in/two.csv": "2\n",
        "/srv/kept/old.log": "3\n",
      },
      modes: { "/srv/run.sh": 0o755 },
      prepare: [
        "mkdir -p '/srv' && cd '/srv'",
        "export NAME=value",
        "echo one > a.txt    && echo two > b.txt",
      ],
    });
  });

  it.each([
    ["FROM a\nFROM b\n", /line 2: several stages/],
    ["FROM a\nCOPY ../secret .\n", /line 2: environment\/ has no ..\/secret/],
    ["FROM a\nCOPY --from=b /x /y\n", /line 2: --from=b is not done in process/],
    ["FROM a\nRUN <<EOF\ntrue\nEOF\n", /line 2: this form of RUN/],
    ["FROM a\nUSER agent\n", /line 2: there is no user agent/],
    ["FROM a\nVOLUME /x\n", /line 2: VOLUME is not done in process; play it with --env.runner/],
  ])("with what no shell does are refused by line", (dockerfile, message) => {
    expect(() => image(dockerfile)).toThrow(message);
  });
});
