/** The model's results as rows of numbers, and those as Markdown. */
import { table } from "../../src/bench/markdown-table.js";
import { LINKS, type Link, sharedUpdate, volumeOf } from "./fsdp.js";
import type { Machine } from "./machine.js";
import { type Point, predicted } from "./machines.js";
import { memoryOf } from "./memory.js";
import { paper, type Row } from "./rows.js";
import { parametersOf, SHAPES, type ShapeName } from "./shape.js";
import { costOf, phasesOf } from "./update.js";

/** Three digits. */
const short = (value: number): number => Number(value.toPrecision(3));
const shown = (value: number): string => short(value).toLocaleString("en");
const count = (parameters: number): string =>
  parameters < 1e9 ? `${shown(parameters / 1e6)} M` : `${shown(parameters / 1e9)} B`;
const percent = (value: number): string => `${value > 0 ? "+" : ""}${Math.round(100 * value)} %`;
const GIB = 2 ** 30;

/** Predictions beside measurements. */
export function checks(machine: Machine, points: readonly Point[]) {
  return points.map((point) => {
    const model = predicted(machine, point);
    const { what, shape, measured, fits } = point;
    return {
      machine: machine.name,
      shape,
      what,
      measured: short(measured),
      model: short(model),
      error: short(model / measured - 1),
      fits,
    };
  });
}

/** The checks as a table. */
export function checksTable(rows: ReturnType<typeof checks>): readonly string[] {
  return table(
    ["machine", "model", "what", "measured, s", "modelled, s", "error"],
    rows.map((row) => [
      row.machine,
      row.shape,
      row.what,
      shown(row.measured),
      shown(row.model),
      row.fits === undefined ? percent(row.error) : `fits ${row.fits}`,
    ]),
  );
}

/** The cost of every update; on two cores, wall time is half the processor time. */
export async function costs(
  rows: readonly Row[],
  machines: Readonly<
    Record<Row["machine"], { readonly machine: Machine; readonly points: readonly Point[] }>
  >,
) {
  return Promise.all(
    rows.map(async ({ machine: name, what, update, world }) => {
      const { machine, points } = machines[name];
      const cost = await costOf(machine, update);
      const cores = name === "2 cores" ? 2 : 1;
      const measured = measuredOf(points, update);
      return {
        machine: name,
        what,
        shape: update.shape,
        episodes: update.episodes,
        steps: update.steps,
        tokens: cost.tokens,
        tflop: short(cost.flops / 1e12),
        act: short(cost.act / cores),
        score: short(cost.score / cores),
        learn: short(cost.learn / cores),
        total: short(cost.total / cores),
        ...(measured && { measured: short(measured / cores) }),
        ...(world && { worlds: short(update.episodes * update.steps * world) }),
        wire_mb: short(cost.wire / 1e6),
        ...(name === "H200" && { gib: short(cost.memory / GIB) }),
      };
    }),
  );
}

/** The sum of an update's phases, if all of them were measured. */
function measuredOf(
  points: readonly Point[],
  { shape, ...update }: Row["update"],
): number | undefined {
  const { act, score, learn } = phasesOf({ shape, ...update });
  // How many tokens are targets and how many optimiser steps there are matters little.
  const key = ({ targets: _, steps: __, ...task }: Readonly<Record<string, unknown>>) =>
    JSON.stringify(Object.entries(task).sort());
  const found = [act, score, learn].flatMap((task) => {
    if (task === undefined) return [];
    const same = (point: Point) =>
      point.shape === shape && key({ ...point.task }) === key({ ...task });
    return [points.find(same)?.measured];
  });
  return found.reduce((all, one) =>
    all === undefined || one === undefined ? undefined : all + one,
  );
}

/** The costs as a table. */
export function costsTable(rows: Awaited<ReturnType<typeof costs>>): readonly string[] {
  return table(
    [
      "machine, what varies",
      "model",
      "episodes × steps",
      "tokens learnt",
      "TFLOP",
      "acting + scoring + learning, s",
      "update, s",
      "measured, s",
      "worlds, s",
      "HTTP, MB",
      "GPU, GiB",
    ],
    rows.map((row) => [
      `${row.machine}, ${row.what}`,
      `${row.shape} (${count(parametersOf(SHAPES[row.shape]))})`,
      `${row.episodes.toLocaleString("en")} × ${row.steps}`,
      row.tokens < 1e6 ? `${shown(row.tokens / 1e3)} k` : `${shown(row.tokens / 1e6)} M`,
      shown(row.tflop),
      [row.act, row.score, row.learn].map(shown).join(" + "),
      shown(row.total),
      row.measured === undefined
        ? ""
        : `${shown(row.measured)} (${percent(row.total / row.measured - 1)})`,
      row.worlds === undefined ? "" : shown(row.worlds),
      row.wire_mb === 0 ? "" : shown(row.wire_mb),
      row.gib === undefined ? "" : shown(row.gib),
    ]),
  );
}

/** The memory of a model on a GPU, in GiB; 128 rows of 1,024 tokens in the KV cache. */
export function memories(names: readonly ShapeName[]) {
  return names.map((shape) => {
    const { batchTokens, ...bytes } = memoryOf(SHAPES[shape], { cached: 128 * 1024 });
    const parts = Object.entries(bytes).map(([name, value]) => [name, short(value / GIB)] as const);
    const total = short(Object.values(bytes).reduce((sum, value) => sum + value, 0) / GIB);
    return { shape, batchTokens, ...(Object.fromEntries(parts) as typeof bytes), total };
  });
}

/** The memories as a table. */
export function memoriesTable(rows: ReturnType<typeof memories>): readonly string[] {
  const names = ["weights", "gradients", "moments", "reference", "activations", "cache"] as const;
  return table(
    [
      "GiB",
      ...names.map((name) => (name === "cache" ? "KV cache" : name)),
      "all",
      "micro-batch, tokens",
    ],
    rows.map((row) => [
      row.shape,
      ...names.map((name) => shown(row[name])),
      shown(row.total),
      row.batchTokens.toLocaleString("en"),
    ]),
  );
}

/** The paper's update on several GPUs. */
export async function several(machine: Machine, counts: readonly number[]) {
  return Promise.all(
    counts.map(async (gpus) => {
      const shape = SHAPES[paper.shape];
      const volume = volumeOf(shape, gpus);
      const on = async (link: Link) => {
        const { hidden, exposed, ...rest } = await sharedUpdate(machine, paper, gpus, link);
        return { ...rest, update: [short(hidden), short(exposed)] as const };
      };
      const [nvlink, network] = [await on("nvlink"), await on("network")];
      return {
        gpus,
        gb_per_micro_batch: short(
          (volume.gatherForward + volume.gatherBackward + volume.reduceScatter) / 1e9,
        ),
        arithmetic_s: short(nvlink.pass),
        nvlink_s: short(nvlink.communication),
        network_s: short(network.communication),
        http_s: short(nvlink.wire),
        nvlink_update_s: nvlink.update,
        network_update_s: network.update,
      };
    }),
  );
}

/** The same as a table. */
export function severalTable(rows: Awaited<ReturnType<typeof several>>): readonly string[] {
  const range = ([hidden, exposed]: readonly [number, number]) =>
    hidden === exposed ? shown(hidden) : `${shown(hidden)} to ${shown(exposed)}`;
  const rate = (link: Link) => `${shown(LINKS[link] / 1e9)} GB/s`;
  return table(
    [
      "GPUs",
      "received per micro-batch, GB",
      "its arithmetic, s",
      `its communication, s: NVLink (${rate("nvlink")})`,
      `400 Gbit/s (${rate("network")})`,
      "update, s: NVLink",
      "400 Gbit/s",
    ],
    rows.map((row) => [
      String(row.gpus),
      shown(row.gb_per_micro_batch),
      shown(row.arithmetic_s),
      shown(row.nvlink_s),
      shown(row.network_s),
      range(row.nvlink_update_s),
      range(row.network_update_s),
    ]),
  );
}
