/**
 * A stand-in for AgentGym's servers, which are not published as packages. It is written from what
 * is known about each server, and not from the client's table: it refuses bodies that the server
 * would refuse. In its world, three times "good" is the goal.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseJson, readBody, sendJson } from "@pawl/core/http/http-server.js";

interface World {
  readonly number: number;
  good: number;
  steps: number;
}

type Body = Record<string, unknown>;

/** How one server answers. */
interface Manners {
  readonly at?: string;
  readonly id: "id" | "env_idx";
  /** The keys of a create's body; undefined: it takes none. */
  readonly create?: readonly string[];
  created(id: number): unknown;
  /** The keys of a reset's body. */
  readonly reset: readonly string[];
  first(world: World, id: number): unknown;
  step(world: World): unknown;
  readonly closes?: boolean;
  readonly observes?: boolean;
}

const text = ({ number, steps }: World): string => `task ${number}, step ${steps}`;
const over = ({ good }: World): boolean => good === 3;
const won = (world: World): number => Number(over(world));
const seen = (world: World) => ({
  observation: text(world),
  reward: won(world),
  done: over(world),
});
const byId = (id: number) => ({ id });
const bare = (id: number) => id;

const toolServer: Manners = {
  id: "env_idx",
  create: ["id"],
  created: bare,
  reset: ["env_idx", "id"],
  first: text,
  step: seen,
};

const manners: Readonly<Record<string, Manners>> = {
  alfworld: {
    id: "id",
    created: byId,
    reset: ["game", "id", "world_type"],
    first: (world, id) => ({
      id,
      observation: `${text(world)}\nYour task is to: be good.`,
      available_actions: ["good", "bad"],
      task_type: "pick",
    }),
    step: (world) => ({ ...seen(world), available_actions: ["good", "bad", "good"] }),
  },
  sciworld: {
    id: "id",
    created: byId,
    reset: ["data_idx", "id"],
    first: (world) => ({
      ...{ task_name: "boil", var_num: 1, task_description: "Be good three times." },
      ...{ observation: text(world), reward: 0, score: 0, done: false, deleted: false },
    }),
    // The reward is the change; the score is what counts.
    step: (world) => ({
      ...seen(world),
      reward: 7,
      score: Math.min(100, 33 * world.good + won(world)),
    }),
    closes: true,
  },
  babyai: {
    id: "id",
    created: byId,
    reset: ["data_idx", "id"],
    first: (world) => ({
      observation: `Your goal: be good\n${text(world)}`,
      reward: 0,
      score: 0,
      done: false,
    }),
    step: (world) => ({ ...seen(world), reward: 0, score: world.good / 3 }),
    closes: true,
  },
  textcraft: {
    id: "id",
    create: [],
    created: (id) => ({ id, observation: "Goal: craft.", done: false, reward: 0 }),
    reset: ["data_idx", "id"],
    first: (world, id) => ({
      id,
      observation: `${text(world)}\nGoal: be good.`,
      done: false,
      reward: 0,
    }),
    step: seen,
    closes: true,
  },
  maze: {
    at: "/maze",
    id: "id",
    created: byId,
    reset: ["game", "id"],
    first: (world) => ({ observation: text(world), reward: 0, done: false }),
    // Each step costs one, but for the last.
    step: (world) => ({ ...seen(world), reward: over(world) ? 0 : -1 }),
  },
  wordle: {
    at: "/wordle",
    id: "id",
    created: byId,
    reset: ["id", "seed"],
    first: (world) => ({ observation: text(world), reward: 0, done: false }),
    step: seen,
  },
  webshop: {
    id: "env_idx",
    created: bare,
    reset: ["env_idx", "session_id"],
    first: () => ["", null],
    step: (world) => ({
      state: text(world),
      reward: world.good / 3,
      done: over(world),
      info: null,
    }),
    observes: true,
  },
  sqlgym: {
    id: "env_idx",
    created: bare,
    reset: ["env_idx", "item_id"],
    first: (world) => [text(world), null],
    step: (world) => ({ state: text(world), reward: won(world), done: over(world), info: {} }),
  },
  searchqa: { ...toolServer, step: (world) => ({ ...seen(world), info: {} }), closes: true },
  academia: toolServer,
  movie: toolServer,
  sheet: toolServer,
  todo: toolServer,
  weather: toolServer,
  webarena: {
    id: "env_idx",
    created: (id) => ({ env_idx: id }),
    reset: ["env_idx", "idx", "seed"],
    first: (world) => ({
      observation: world.number === 99 ? "TimeoutError" : text(world),
      ...{ sites: ["shop"], object: "be good" },
    }),
    step: (world) => ({
      ...{ observation: text(world), reward: won(world), terminated: over(world) },
      ...{ truncated: world.steps === 5, info: {} },
    }),
    closes: true,
  },
};

/** All servers that the stand-in can be. */
export const servers = Object.keys(manners);

/** What a test may do with it. */
export interface StandIn {
  readonly url: string;
  readonly open: () => number;
  readonly made: () => number;
  stop(): Promise<void>;
}

/** Starts it; `fault` may answer a call in its place. */
export async function standIn(
  name: string,
  fault: (path: string, body: Body) => [status: number, answer: unknown] | undefined = () =>
    undefined,
): Promise<StandIn> {
  const own = manners[name]!;
  const worlds = new Map<number, World>();
  let made = 0;
  const answer = (path: string, body: Body | undefined): [number, unknown] => {
    const keys = Object.keys(body ?? {}).sort();
    const same = (expected: readonly string[]): boolean => keys.join() === expected.join();
    const unprocessable: [number, unknown] = [422, { detail: `keys: ${keys}` }];
    if (path === "/create") {
      if (own.create === undefined ? body !== undefined : body === undefined || !same(own.create))
        return unprocessable;
      worlds.set(made, { number: -1, good: 0, steps: 0 });
      return [200, own.created(made++)];
    }
    const id = Number(body?.[own.id]);
    const world = worlds.get(id);
    if (world === undefined) return [200, { error: `The id ${id} is not valid.` }];
    if (path === "/reset") {
      if (!same(own.reset)) return unprocessable;
      const task = Object.entries(body!).find(
        ([key]) => !["world_type", own.id, "seed"].includes(key),
      );
      const number = Number(task?.[1] ?? body!.seed);
      worlds.set(id, { number, good: 0, steps: 0 });
      return [200, own.first(worlds.get(id)!, id)];
    }
    if (path === "/step") {
      if (!same(["action", own.id].sort())) return unprocessable;
      if (over(world)) return [200, { error: "the task has finished" }];
      world.steps++;
      if (body!.action === "good") world.good++;
      return [200, own.step(world)];
    }
    if (path === "/close" && own.closes) return [200, worlds.delete(id)];
    return [404, { detail: "Not Found" }];
  };
  const server = createServer(async (asked, reply) => {
    const url = new URL(asked.url!, "http://localhost");
    const path = url.pathname.slice((own.at ?? "").length);
    const sent = await readBody(asked, 2 ** 20);
    const body = sent === "" ? undefined : (parseJson(sent) as Body);
    const world = worlds.get(Number(url.searchParams.get(own.id)));
    const other = fault(path, body ?? {});
    if (other !== undefined) sendJson(reply, ...other);
    else if (path === "/observation" && own.observes && world !== undefined)
      sendJson(reply, 200, `Instruction: [SEP] be good [SEP] ${text(world)}`);
    else if (!url.pathname.startsWith(own.at ?? "")) sendJson(reply, 404, {});
    else sendJson(reply, ...answer(path, body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => worlds.size,
    made: () => made,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
