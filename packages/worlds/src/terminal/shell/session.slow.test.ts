import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hasBash } from "../bash-testing.js";
import { runBoth } from "./bash-testing.js";

const scripts = readFileSync("packages/worlds/src/terminal/fixtures/scripts.txt", "utf8");

describe.skipIf(!hasBash)("commands here and in bash", () => {
  it.each(scripts.split(/^----\n/m))("write the same: %s", (script) => {
    const { bash, ours } = runBoth(script);
    expect(ours).toEqual(bash);
  });
});
