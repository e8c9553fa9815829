import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EnvError } from "../env.js";
import { alfworld, openAlfworld } from "./alfworld.js";
import { shedGame, writeGame } from "./fixtures/shed.js";

let data: string;

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "pawl-games-"));
  const root = join(data, "json_2.1.1");
  writeGame(root, "train/water_all-Fern-1/trial_b", shedGame());
  writeGame(root, "train/water_all-Fern-1/trial_a", shedGame());
  writeGame(root, "train/look_only-Can-2/trial_c", shedGame());
  writeGame(root, "train/water_all-Moss-3/trial_d", shedGame({ solvable: false }));
  writeGame(root, "valid_seen/water_all-Fern-9/trial_e", shedGame().slice(0, 900));
  writeGame(root, "valid_seen/water_all-Fern-9/trial_f", shedGame());
  mkdirSync(join(root, "valid_seen/water_all-Fern-9/trial_without_game"));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(data, { recursive: true });
});

const ids = (options: Parameters<typeof openAlfworld>[0], split: string) =>
  openAlfworld(options)
    .tasks(split)
    .map(({ id }) => id);

describe("task lists", () => {
  it("contain each solvable game once, in the order of paths, with the type from its folder", () => {
    const environment = openAlfworld({ data });
    expect(environment.splits).toEqual(["train", "valid_seen"]);
    expect(environment.tasks("train")).toEqual([
      { id: "train/look_only-Can-2/trial_c", split: "train", type: "look_only" },
      { id: "train/water_all-Fern-1/trial_a", split: "train", type: "water_all" },
      { id: "train/water_all-Fern-1/trial_b", split: "train", type: "water_all" },
    ]);
    expect(environment.unsolvable("train")).toBe(1);
    expect(environment.unsolvable("valid_seen")).toBe(0);
  });

  it("are found in the data folder itself and by ALFWORLD_DATA", () => {
    const wanted = ids({ data }, "train");
    expect(ids({ data: join(data, "json_2.1.1") }, "train")).toEqual(wanted);
    vi.stubEnv("ALFWORLD_DATA", data);
    expect(ids({}, "train")).toEqual(wanted);
  });

  it("can be filtered by type and shuffled by a seed", () => {
    expect(ids({ data, types: ["look_only"] }, "train")).toEqual(["train/look_only-Can-2/trial_c"]);
    const orders = Array.from({ length: 20 }, (_, order) => ids({ data, order }, "train").join());
    expect(new Set(orders).size).toBeGreaterThan(1);
    expect(ids({ data, order: 7 }, "train").join()).toBe(orders[7]);
    for (const order of orders) expect(order.split(",").sort()).toEqual(ids({ data }, "train"));
    expect(() => openAlfworld({ data, types: ["look_only", "fly"] })).toThrow(
      'alfworld has no tasks of type "fly"; it has look_only, water_all',
    );
    const seen = openAlfworld({ data, types: ["look_only"] });
    expect(() => seen.tasks("valid_seen")).toThrow("valid_seen has no tasks of look_only");
  });

  it("find a task by its id or its file", () => {
    const environment = openAlfworld({ data });
    const [task] = environment.tasks("train");
    expect(environment.task(task!.id)).toEqual(task);
    expect(() => environment.task("train/water_all-Moss-3/trial_d")).toThrow(
      'alfworld has no task "train/water_all-Moss-3/trial_d"',
    );
    expect(() => environment.task("nowhere")).toThrow(EnvError);
    expect(environment.traceWorld(`${task!.id}/game.tw-pddl`).start().won).toBe(false);
  });

  it("say what is missing and how to get it", () => {
    const environment = openAlfworld({ data });
    expect(() => environment.tasks("valid_unseen")).toThrow(
      /no split "valid_unseen".*alfworld-download/,
    );
    expect(() => environment.tasks("trian")).toThrow(/no split "trian".*train/);
    vi.stubEnv("ALFWORLD_DATA", "");
    expect(() => openAlfworld({})).toThrow(/no data folder is given.*ALFWORLD_DATA/);
    expect(() => openAlfworld({ data: join(data, "absent") })).toThrow(/absent cannot be read/);
    const empty = join(data, "empty");
    mkdirSync(empty);
    expect(() => openAlfworld({ data: empty })).toThrow(/holds none of the splits/);
  });
});

describe("a broken game", () => {
  it("is listed, reported when it is opened, and does not keep the others from loading", () => {
    const environment = openAlfworld({ data });
    const [broken, whole] = environment.tasks("valid_seen");
    const env = environment.create();
    expect(() => env.reset(broken!)).toThrow(
      /trial_e.game\.tw-pddl: game file, line 1: this is not valid JSON: /,
    );
    expect(env.reset(whole!)).toBe("There is a crate 2 ahead.");
  });
});

describe("env info", () => {
  it("counts the games of each split and opens one of each", () => {
    const lines = alfworld.describe!({ data });
    expect(lines[0]).toContain(join(data, "json_2.1.1"));
    expect(lines).toContain(
      "train: 3 games (look_only 1, water_all 2); 1 unsolvable ones left out; the full download has 3553",
    );
    expect(lines).toContain("valid_seen: 2 games (water_all 2); the full download has 140");
    expect(lines).toContain("valid_unseen: missing; the full download has 134 games");
    expect(lines.find((line) => line.includes("does not load"))).toContain("trial_e");
    expect(lines.at(-1)).toContain("alfworld-download");
  });

  it("explains how to get the data if there is none", () => {
    vi.stubEnv("ALFWORLD_DATA", "");
    expect(alfworld.describe!({})).toEqual([expect.stringContaining("alfworld-download")]);
  });
});
