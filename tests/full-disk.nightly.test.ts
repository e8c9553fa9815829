/**
 * A disk that is too small, for commands that write: a sentence says where, what was kept and how to
 * go on, and nothing that was written before is lost. Needs Linux with user namespaces.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { startHub } from "../src/hub/hub-testing.js";
import { readGgufModel, writeGgufModel } from "../src/models/gguf-convert.js";
import { openGguf } from "../src/models/gguf-file.js";
import { tinyModel, writeGguf } from "../src/models/gguf-testing.js";

const cli = join(process.cwd(), "dist/lib/main.js");
const folder = mkdtempSync(join(tmpdir(), "pawl-full-"));
const disk = join(folder, "disk");
const canMount =
  spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "tmpfs", folder]).status === 0;

const tiny = [
  ...["--warm-start.episodes", "8", "--warm-start.sft.epochs", "1", "--updates", "1"],
  ...["--groups", "2", "--group-size", "2", "--evaluation.every", "0", "--engine.threads", "1"],
];
const played = join(folder, "played");

/** Runs `pawl ARGS` with an empty disk of this size, and then shell commands that look at it. */
function onDisk(size: string, args: readonly string[], then = "true") {
  const script = `mkdir -p ${disk} && mount -t tmpfs -o size=${size} tmpfs ${disk} && cd ${disk} && "$@"; code=$?; cd /; ${then}; exit $code`;
  const command = [process.execPath, cli, ...args];
  return spawnSync("unshare", ["-rm", "sh", "-c", script, "sh", ...command], {
    encoding: "utf8",
    env: { ...process.env, TMPDIR: disk, XDG_CACHE_HOME: join(disk, "cache") },
  });
}

/** The same for commands that talk to this process; `look` is told what the command writes. */
function besideDisk(
  script: string,
  environment: Readonly<Record<string, string>>,
  look: (text: string, child: ReturnType<typeof spawn>) => void = () => undefined,
) {
  const child = spawn("unshare", ["-rm", "sh", "-c", `mkdir -p ${disk} && ${script}`], {
    env: { ...process.env, TMPDIR: disk, XDG_CACHE_HOME: join(disk, "cache"), ...environment },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      look(text, child);
    });
  return new Promise<{ code: number | null; text: string }>((done) =>
    child.on("close", (code) => done({ code, text })),
  );
}

beforeAll(() => {
  const made = spawnSync(process.execPath, [cli, "rollout", "--groups", "2", "--out", played]);
  expect(made.status).toBe(0);
});

it.skipIf(!canMount).each([
  ["while a run begins", "8k", ["rollout", "--groups", "2", "--out", join(disk, "run")]],
  ["while episodes are recorded", "40k", ["rollout", "--groups", "60", "--out", join(disk, "run")]],
  ["while weights are written", "400k", ["train", "--quick", ...tiny, "--out", join(disk, "run")]],
  [
    "while data is written",
    "16k",
    ["wm", "data", "--mix", "expert:40", "--out", join(disk, "data")],
  ],
  [
    "while a data set is exported",
    "4k",
    ["wm", "data", "--from", played, "--format", "sharegpt", "--out", join(disk, "data")],
  ],
  ["while a starter is written", "4k", ["env", "new", "mine", "--dir", join(disk, "mine")]],
])("%s", (_, size, args) => {
  const { status, stderr } = onDisk(size, args, `ls -laR ${disk}`);
  expect(status, stderr).toBe(1);
  expect(stderr).toMatch(/^error: .*the disk is full: free some space/m);
  expect(stderr).toContain(disk);
  expect(stderr).not.toMatch(/\n\s+at /);
});

it.skipIf(!canMount)("keeps the checkpoint before, says so, and goes on when there is room", () => {
  const run = join(disk, "run");
  const kept = join(folder, "kept");
  // Room for the start and one checkpoint, but not for two.
  const size = "9m";
  const args = [
    "train",
    "--quick",
    ...tiny.map((arg, i) => (tiny[i - 1] === "--updates" ? "3" : arg)),
  ];
  const { status, stderr } = onDisk(size, [...args, "--out", run], `cp -r ${run} ${kept}`);
  expect(status, stderr).toBe(1);
  const [, update] =
    /Everything up to update (\d) is kept in \S+\. When there is room again, --resume/.exec(
      stderr,
    ) ?? [];
  expect(["1", "2"], stderr).toContain(update);
  expect(JSON.parse(readFileSync(join(kept, "manifest.json"), "utf8"))).toMatchObject({
    status: "failed",
  });
  const resumed = spawnSync(process.execPath, [cli, "train", "--resume", kept], {
    encoding: "utf8",
  });
  expect(resumed.status, resumed.stderr).toBe(0);
});

it.skipIf(!canMount)(
  "while a model is fetched: it says where, and with room the next try works",
  async () => {
    const [gguf, model] = [join(folder, "tiny.gguf"), join(folder, "model")];
    const { metadata, tensors } = tinyModel();
    writeGguf(gguf, metadata, tensors);
    await writeGgufModel(await readGgufModel(openGguf(gguf)), model);
    const files = readdirSync(model).map((name) => [name, readFileSync(join(model, name))]);
    const hub = await startHub({ "owner/tiny": Object.fromEntries(files) });
    const [home, kept] = [join(disk, "hub"), join(folder, "fetched")];
    const pull = (where: string, then = "") =>
      besideDisk(
        `mount -t tmpfs -o size=${where === home ? "8k" : "1m"} tmpfs ${disk}; ${process.execPath} ${cli} model pull owner/tiny; code=$?; ${then} exit $code`,
        { HF_ENDPOINT: hub.endpoint, HF_HOME: where },
      );
    const { code, text } = await pull(home, `cp -r ${home} ${kept};`);
    expect(code, text).toBe(1);
    expect(text).toMatch(/^error: .*(the disk is full: free some space|no room for)/m);
    expect(text).toContain(disk);
    expect(text).not.toMatch(/\n\s+at /);
    const again = await pull(kept);
    expect(again.code, again.text).toBe(0);
    await hub.close();
  },
);

it.skipIf(!canMount)(
  "under pawl ui: runs are shown although their index cannot be written",
  async () => {
    let answer: Promise<{ status: number; body: string }> | undefined;
    const { code, text } = await besideDisk(
      `mount -t tmpfs -o size=400k tmpfs ${disk} && cp -r ${played} ${disk}/run && (cat /dev/zero >${disk}/full 2>/dev/null; true) && exec ${process.execPath} ${cli} ui ${disk} --port 0`,
      {},
      (written, child) => {
        const address = /http:\/\/\S+\//.exec(written)?.[0];
        if (address === undefined || answer !== undefined) return;
        answer = fetch(new URL("api/episodes?run=run", address))
          .then(async (reply) => ({ status: reply.status, body: await reply.text() }))
          .finally(() => child.kill("SIGINT"));
      },
    );
    const { status, body } = (await answer) ?? { status: 0, body: "no answer" };
    expect(status, `${body}${text}`).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ matching: 16, problems: [] });
    expect(text).not.toMatch(/\n\s+at /);
    expect(code).toBe(0);
  },
);

it.skipIf(!canMount)(
  "while a result is written: the error holds it, since it may have taken hours",
  () => {
    const args = ["--env", "webshop", "--policy", "expert", "--tasks", "1", "--budgets", "1"];
    const out = join(disk, "verifier.json");
    const script = `mkdir -p ${disk} && mount -t tmpfs -o size=4k tmpfs ${disk} && head -c 4096 /dev/zero >${disk}/full && exec "$@"`;
    const { status, stderr } = spawnSync(
      "unshare",
      [
        ...["-rm", "sh", "-c", script, "sh", process.execPath, cli, "wm", "eval", "verifier"],
        ...[...args, "--out", out],
      ],
      { encoding: "utf8", env: { ...process.env, XDG_CACHE_HOME: join(folder, "cache") } },
    );
    expect(status, stderr).toBe(1);
    expect(stderr).toContain(`could not write ${out}: the disk is full`);
    const [line] = /^\{.*\}$/m.exec(stderr) ?? [];
    expect(JSON.parse(line ?? "null"), stderr).toHaveProperty("createdAt");
    expect(stderr).not.toMatch(/\n\s+at /);
  },
);
