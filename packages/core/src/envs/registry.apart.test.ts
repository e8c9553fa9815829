import "@pawl/pawl/cli/all-worlds.js";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnv } from "./define-env.js";
import { EnvError } from "./env.js";
import { envKinds, findEnvKind, registerEnv } from "./registry.js";

function kindNamed(name: string) {
  return defineEnv({
    name,
    summary: "a test",
    options: z.strictObject({ size: z.int().default(3).describe("how large") }),
    open(options) {
      throw new EnvError(`not opened, size ${options.size}`);
    },
  });
}

describe("the registry", () => {
  it("knows the household world and finds it by name", () => {
    expect(envKinds().map((kind) => kind.name)).toContain("household");
    const kind = findEnvKind("household");
    const environment = kind.open(kind.options.parse({}));
    expect(environment.splits).toEqual(["train", "valid_seen", "valid_unseen", "test_unseen"]);
  });

  it("suggests the nearest and lists all kinds if the name is unknown", () => {
    expect(() => findEnvKind("houshold")).toThrow(EnvError);
    expect(() => findEnvKind("houshold")).toThrow(
      /no environment "houshold"\. Did you mean "household"\? Known: .*household/,
    );
    expect(() => findEnvKind("q")).toThrow(/no environment "q"\. Known: /);
  });

  it("accepts users' own kinds, once each, and lists them in order", () => {
    const mine = kindNamed("a-corridor");
    registerEnv(mine);
    registerEnv(mine);
    expect(findEnvKind("a-corridor")).toBe(mine);
    const names = envKinds().map((kind) => kind.name);
    expect(names).toEqual([...names].sort());
    expect(names.filter((name) => name === "a-corridor")).toHaveLength(1);
  });

  it("rejects a name that is taken or cannot be typed", () => {
    expect(() => registerEnv(kindNamed("household"))).toThrow(/"household" already/);
    expect(() => registerEnv(kindNamed("My World"))).toThrow(/not "My World"/);
    expect(envKinds().map((kind) => kind.name)).not.toContain("My World");
  });
});
