/**
 * `npm run pack [-- FOLDER [this-platform]]`: the packages as they are published, as tarballs in a folder (default:
 * this one); the native library for every platform, or only for this one.
 *
 * onnxruntime-node holds the native library of five platforms, 300 MB, and a script that downloads CUDA. So there is a
 * package for each platform, with onnxruntime-node's own code and that platform's library, and pawl has them as
 * optional dependencies: npm installs the one that fits. They have the version of onnxruntime-node.
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const root = join(import.meta.dirname, "..");
const out = resolve(process.argv[2] ?? root);
const json = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));

const manifest = json("package.json");
const onnx = "node_modules/onnxruntime-node";
const { version, license, repository } = json(`${onnx}/package.json`);
const natives = join(root, onnx, "bin/napi-v6");
const platforms = readdirSync(natives).flatMap((os) =>
  readdirSync(join(natives, os)).map((cpu) => ({ os, cpu, name: `@pawl/onnx-${os}-${cpu}` })),
);

const isWanted = ({ os, cpu }) =>
  process.argv[3] !== "this-platform" || (os === process.platform && cpu === process.arch);

const scratch = mkdtempSync(join(tmpdir(), "pawl-pack-"));
try {
  mkdirSync(out, { recursive: true });
  npm(root, "run", "build");
  packMain();
  packCore();
  for (const platform of platforms) if (isWanted(platform)) packPlatform(platform);
} finally {
  rmSync(scratch, { recursive: true });
}

/** What `npm pack` would take, with the platforms' packages among its dependencies. */
function packMain() {
  const folder = join(scratch, "pawl");
  const [{ files }] = JSON.parse(npm(root, "pack", "--dry-run", "--json", "--ignore-scripts"));
  for (const { path } of files) copy(join(root, path), join(folder, path));
  const { scripts: _, devDependencies: __, workspaces: ___, ...published } = manifest;
  pack(folder, {
    ...published,
    optionalDependencies: Object.fromEntries(platforms.map(({ name }) => [name, version])),
  });
}

/** The room `core` alone, for programs that bring their own engine. */
function packCore() {
  run(root, process.execPath, "packaging/core.js");
  pack(join(root, "dist/core"), json("dist/core/package.json"));
}

function packPlatform({ os, cpu, name }) {
  const folder = join(scratch, `${os}-${cpu}`);
  copy(join(root, onnx, "dist"), join(folder, "dist"));
  copy(join(natives, os, cpu), join(folder, "bin/napi-v6", os, cpu));
  copy(join(root, onnx, "README.md"), join(folder, "README.md"));
  pack(folder, {
    name,
    version,
    description: `ONNX Runtime for Node.js on ${os} ${cpu}, from onnxruntime-node ${version}`,
    license,
    repository,
    os: [os],
    cpu: [cpu],
    // Its libraries are linked with glibc.
    ...(os === "linux" && { libc: ["glibc"] }),
    main: "dist/index.js",
    files: ["bin", "dist/*.js"],
    dependencies: { "onnxruntime-common": version },
  });
}

function pack(folder, published) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
  const [{ filename, size }] = JSON.parse(
    npm(folder, "pack", "--json", "--ignore-scripts", "--pack-destination", out),
  );
  console.log(`${filename} ${(size / 1e6).toFixed(1)} MB`);
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true });
}

function npm(cwd, ...args) {
  return run(cwd, "npm", ...args);
}

function run(cwd, program, ...args) {
  const shell = process.platform === "win32";
  const stdio = ["ignore", "pipe", "inherit"];
  const { status, stdout, error } = spawnSync(program, args, {
    ...{ cwd, shell, stdio },
    ...{ encoding: "utf8", maxBuffer: 2 ** 28 },
  });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
  return stdout;
}
