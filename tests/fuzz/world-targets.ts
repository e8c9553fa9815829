/** Fuzzed readers of the worlds that run other people's files and programs: TextWorld, ScienceWorld. */
import { createServer } from "node:net";
import { EnvError } from "@pawl/core/envs/env.js";
import { connectGateway } from "@pawl/worlds/scienceworld/gateway.js";
import {
  type Line,
  PARSE,
  ROUTINE,
  storyOf,
  TEXT,
  v,
} from "@pawl/worlds/textworld/fixtures/assemble.js";
import { loadGame } from "@pawl/worlds/textworld/game.js";
import { parseLogic } from "@pawl/worlds/textworld/logic.js";
import { createPlayer } from "@pawl/worlds/textworld/zmachine/compiled.js";
import { feedLine, startStory } from "@pawl/worlds/textworld/zmachine/interpreter.js";
import {
  createMachine,
  restoreSnapshot,
  takeSnapshot,
} from "@pawl/worlds/textworld/zmachine/machine.js";
import { readStory } from "@pawl/worlds/textworld/zmachine/story.js";
import { put, type Target, text } from "./target.js";

/** Reads lines for ever; after each, calls the routine often enough to have it compiled. */
const story: readonly Line[] = [
  "line",
  { op: 68, operands: [TEXT, PARSE], store: 20 },
  { op: 13, operands: [21, 110] },
  "again",
  { op: 64, operands: [ROUTINE, v(21), v(22)], store: 23 },
  { op: 20, operands: [v(22), v(23)], store: 22 },
  { op: 4, operands: [21, 1], branch: { to: "again", unless: true } },
  { op: 70, operands: [v(22)] },
  { op: 44, jump: "line" },
];
/** Objects, properties, tables, the stack, output, random numbers and a loop. */
const routine: readonly Line[] = [
  { op: 14, operands: [1, 2] },
  { op: 11, operands: [1, 5] },
  { op: 17, operands: [2, 5], store: 3 },
  { op: 67, operands: [1, 5, v(1)] },
  { op: 65, operands: [0x4c0, 1, v(2)] },
  { op: 15, operands: [0x4c0, 1], store: 4 },
  { op: 72, operands: [v(3)] },
  { op: 73, operands: [2] },
  { op: 71, operands: [9], store: 3 },
  { op: 69, operands: [65] },
  { op: 13, operands: [4, 3] },
  "round",
  { op: 20, operands: [v(1), v(4)], store: 1 },
  { op: 4, operands: [4, 1], branch: { to: "round", unless: true } },
  { op: 43, operands: [v(1)] },
];
/** Where the routine begins in the image, and where everything that is not zero ends. */
const START = ROUTINE * 8;
const END = START + 0x100;
/** Instructions of a turn. */
const LIMIT = 20_000;

/** What three turns print, or the fault that ends them. */
function turnsOf(image: Buffer, compiled: boolean): readonly string[] {
  const machine = createMachine(readStory("story.z8", image), LIMIT);
  startStory(machine);
  const player = createPlayer(machine, 0);
  const said: string[] = [];
  try {
    for (let turn = 0; turn < 3; turn++) {
      const snapshot = takeSnapshot(machine);
      restoreSnapshot(machine, snapshot);
      const line = [..."look at it."].map((letter) => letter.charCodeAt(0));
      if (compiled) player.turn(snapshot, line);
      else feedLine(machine, line);
      said.push(machine.transcript);
    }
  } catch (error) {
    if (!(error instanceof EnvError)) throw error;
    said.push(error.message);
  }
  return said;
}

/** Plays a story both ways: compiled code must say what the interpreter says. */
function play(image: Buffer): void {
  const [interpreted, compiled] = [turnsOf(image, false), turnsOf(image, true)];
  // Compiled code counts fewer instructions than the interpreter.
  if (interpreted.some((one) => one.includes("instructions"))) return;
  if (interpreted.join("\n") !== compiled.join("\n"))
    throw new Error(`compiled: ${compiled.at(-1)}, interpreted: ${interpreted.at(-1)}`);
}

const game = {
  world: [
    {
      name: "at",
      arguments: [
        { name: "P", type: "P" },
        { name: "r_0", type: "r" },
      ],
    },
  ],
  infos: [["r_0", { id: "r_0", type: "r", name: "attic" }]],
  quests: [{ reward: 1 }],
  KB: {
    logic:
      'type r { rules { look/r :: $at(P, r) -> ; } inform7 { commands { look/r :: "look" :: "looking"; } } } type P {}',
  },
  metadata: { uuid: "tw-simple-x", walkthrough: ["look"] },
  objective: "Look.",
};

/** All targets by name. */
export const worldTargets: Readonly<Record<string, Target>> = {
  "textworld-logic": {
    inputs: () =>
      text(
        "type t { predicates { open(t); } rules { open/t :: $at(P, r) & closed(t) -> open(t); } }",
      ),
    run: (bytes) => parseLogic("logic", bytes.toString()),
  },
  "textworld-stories": {
    inputs: () => [Buffer.from(storyOf(story, routine).subarray(0, END))],
    run(bytes) {
      // Padded, or nearly every damaged one would be refused for its length.
      const whole = Buffer.alloc(storyOf([]).length);
      bytes.copy(whole);
      play(bytes.length % 8 === 7 ? bytes : whole);
    },
  },
  "textworld-programs": {
    inputs: () => [Buffer.from(storyOf(story, routine).subarray(START, END))],
    run(bytes) {
      const image = Buffer.from(storyOf(story));
      bytes.copy(image, START);
      play(image);
    },
  },
  "textworld-worlds": {
    inputs: () => text(game),
    run(bytes, folder) {
      put(folder, "game.json", bytes);
      const { tracker, world } = loadGame(
        put(folder, "game.z8", Buffer.from(storyOf(story, routine))),
      );
      tracker.commands(world);
      tracker.readable(world);
    },
  },
  "gateway-answers": {
    inputs: () => text("!ysa lamp\\nis here\n", "!yro3\n!yi7\n", "!xro4\n!ysno such task\n"),
    /** A JVM that says this and goes. */
    async run(bytes) {
      const server = createServer((socket) => {
        socket.on("error", () => undefined);
        socket.end(bytes);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = server.address() as { port: number };
        const gateway = await connectGateway({ port, seconds: 5 });
        await gateway.call({ id: "o0" }, "look");
      } finally {
        server.close();
      }
    },
  },
};
