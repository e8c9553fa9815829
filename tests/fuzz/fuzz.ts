/**
 * `npm run fuzz -- NAME… [--minutes M] [--seed S]`: damages good inputs of the named targets
 * (targets.ts; all of them without a name) for M minutes in all. A reader may accept an input or
 * refuse it with a message for people; anything else is a failure, and its input is kept in findings/,
 * where findings.test.ts reads it again.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "@pawl/core/errors.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { mutate } from "./mutate.js";
import type { Target } from "./target.js";
import { targets } from "./targets.js";

/** Longer than this for one small input is a failure too: something is not linear. */
const SLOW_MS = 10_000;

/** What is wrong with how a target reads an input; undefined if nothing. */
export async function failureOf(target: Target, bytes: Buffer): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-fuzz-"));
  try {
    await target.run(bytes, folder);
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return undefined;
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function main(args: readonly string[]): Promise<number> {
  const numberOf = (flag: string, usual: number): number => {
    const at = args.indexOf(flag);
    return at < 0 ? usual : Number(args[at + 1]);
  };
  const minutes = numberOf("--minutes", 1);
  const seed = numberOf("--seed", Date.now() % 2 ** 31);
  const named = args.filter((arg, i) => !arg.startsWith("--") && !args[i - 1]?.startsWith("--"));
  const unknown = named.filter((name) => targets[name] === undefined);
  if (unknown.length > 0 || !(minutes > 0) || !Number.isInteger(seed)) {
    process.stderr.write(
      `usage: npm run fuzz -- [NAME…] [--minutes M] [--seed S], where NAME is one of: ${Object.keys(targets).join(", ")}\n`,
    );
    return 2;
  }
  const chosen = named.length > 0 ? named : Object.keys(targets);
  let failures = 0;
  for (const name of chosen) {
    const target = targets[name]!;
    const inputs = target.inputs();
    for (const input of inputs) {
      const problem = await failureOf(target, input);
      if (problem !== undefined) throw new Error(`${name}: a good input fails: ${problem}`);
    }
    const end = performance.now() + (minutes * 60_000) / chosen.length;
    const seen = new Set<string>();
    let tried = 0;
    for (; performance.now() < end; tried++) {
      const bytes = mutate(createRandom(mixSeed(seed, name, tried)), inputs);
      const started = performance.now();
      const problem = await failureOf(target, bytes);
      const slow = performance.now() - started > SLOW_MS ? "took longer than 10 s" : undefined;
      const failure = problem ?? slow;
      // The same place in our code once.
      const place = failure?.split("\n").find((line) => line.includes("/src/")) ?? failure ?? "";
      if (failure === undefined || seen.has(place)) continue;
      seen.add(place);
      failures++;
      const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
      const file = fileURLToPath(new URL(`findings/${name}.${hash}`, import.meta.url));
      writeFileSync(file, bytes);
      process.stderr.write(
        `${name}: ${failure}\n  kept as ${file} (seed ${seed}, number ${tried})\n`,
      );
    }
    process.stderr.write(`${name}: ${tried} inputs, ${seen.size} failures\n`);
  }
  process.stdout.write(`${JSON.stringify({ targets: chosen.length, failures, seed })}\n`);
  return failures === 0 ? 0 : 1;
}
