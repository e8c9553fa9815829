/**
 * How the cost of an update grows with parameters, context, episodes and environments.
 *
 *   npm run bench -- cost              tables from the model, and its errors; nothing is run
 *   npm run bench -- cost --measure    measures the embedded engine and texts of environments first
 *
 * The model counts operations, bytes of memory and bytes over HTTP (`cost/work.ts`, `cost/wire.ts`), and
 * has a few constants for each machine (`cost/machines.ts`). Measurements of the embedded engine and of
 * environments are kept in `cost/measured.json`; those of the GPU are from docs/gpu.md.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { embeddedMachine, embeddedPoints, gpuMachine, gpuPoints } from "./cost/machines.js";
import { type Measurements, measure } from "./cost/measure.js";
import { rowsOf } from "./cost/rows.js";
import { SHAPES, type ShapeName } from "./cost/shape.js";
import {
  checks,
  checksTable,
  costs,
  costsTable,
  memories,
  memoriesTable,
  several,
  severalTable,
} from "./cost/tables.js";
import { measureTexts, type Texts } from "./cost/texts.js";

const FILE = fileURLToPath(new URL("./cost/measured.json", import.meta.url));

/** What `measured.json` holds. */
export interface Recorded {
  readonly engine: Measurements;
  readonly texts: readonly Texts[];
}

/** The recorded measurements. */
export function recorded(): Recorded {
  return JSON.parse(readFileSync(FILE, "utf8")) as Recorded;
}

/** Prints the tables and returns their numbers. */
export async function main(args: readonly string[]) {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      measure: { type: "boolean", default: false },
      repetitions: { type: "string", default: "3" },
    },
  });
  if (options.measure) {
    const say = (line: string) => void process.stderr.write(`${line}\n`);
    const found: Recorded = {
      texts: await measureTexts(),
      engine: await measure(Number(options.repetitions), say),
    };
    writeFileSync(FILE, `${JSON.stringify(found, null, 2)}\n`);
  }
  const { engine, texts } = recorded();
  const gpu = { points: await gpuPoints() };
  const machines = {
    H200: { ...gpu, machine: gpuMachine(gpu.points) },
    "2 cores": { points: embeddedPoints(engine), machine: embeddedMachine(engine) },
  };
  const checked = Object.values(machines).flatMap(({ machine, points }) => checks(machine, points));
  const cost = await costs(rowsOf(texts), machines);
  const memory = memories(Object.keys(SHAPES) as ShapeName[]);
  const shared = await several(machines.H200.machine, [1, 2, 4, 8, 16]);
  const constants = Object.values(machines).map(
    ({ machine: { limits: _, ...numbers } }) => numbers,
  );
  const tables = [
    checksTable(checked),
    costsTable(cost),
    memoriesTable(memory),
    severalTable(shared),
  ];
  process.stdout.write(`${tables.map((lines) => lines.join("\n")).join("\n\n")}\n\n`);
  const { points: _, ...measurement } = engine;
  return { constants, measurement, texts, checks: checked, costs: cost, memory, several: shared };
}
