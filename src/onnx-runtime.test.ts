import { expect, it } from "vitest";
import { loadRuntime } from "./onnx-runtime.js";

const missing = (name: string): never => {
  throw Object.assign(new Error(`Cannot find module '${name}'`), { code: "MODULE_NOT_FOUND" });
};

it("is the platform's own package, or the one that holds all platforms", () => {
  const requested: string[] = [];
  const runtime = { env: {} };
  loadRuntime("linux-x64", (name) => {
    requested.push(name);
    return name === "onnxruntime-node" ? runtime : missing(name);
  });
  expect(requested).toEqual(["@pawl/onnx-linux-x64", "onnxruntime-node"]);
});

it("says what to install where there is none", () => {
  expect(() => loadRuntime("linux-x64", missing)).toThrow("npm install @pawl/onnx-linux-x64");
  expect(() => loadRuntime("darwin-x64", missing)).toThrow(
    /no ONNX Runtime for darwin-x64, only for darwin-arm64, .*: install onnxruntime-node built for it/,
  );
});

it("tells a package that is there and does not load from one that is missing", () => {
  const broken = () => {
    throw new Error("libonnxruntime.so.1: invalid ELF header");
  };
  expect(() => loadRuntime("linux-x64", broken)).toThrow(/does not load here: .*invalid ELF/);
});
