/**
 * A running ScienceWorld episode: a simulator from the pool, loaded with a variation, and stepped
 * as the Python package does. Which calls are made, and in which order, is fixed by the options:
 * some draw from the simulator's random generator.
 */
import {
  begun,
  EnvError,
  type RemoteEnv,
  type StepResult,
  type Task,
} from "@pawl/core/envs/env.js";
import type { Moment, Pool, Scene, Simulator } from "./simulator.js";

// What a world model may know about the initial state, in the order of Word-to-World: goal
// progress, patterns of actions, and every place as it looks from inside. It is collected on a tour
// in a world of its own, because visiting takes time and asking for objects draws random numbers.

/**
 * The places to visit. The original tour also visits two hidden terminals, whose names are
 * ambiguous: the question about the first swallows the next input, and in the published data a
 * room's description with it.
 */
const PLACES = [
  "kitchen",
  "living room",
  "bedroom",
  "bathroom",
  "workshop",
  "greenhouse",
  "art studio",
  "hallway",
  "outside",
  "foundry",
] as const;

const TELEPORT = "teleportAction";

/** A place of the tour. */
interface Place {
  readonly name: string;
  /** What teleporting there says. */
  readonly reply: string;
  readonly look: string;
  readonly objects: readonly string[];
}

/** What the tour sees. */
interface Tour {
  readonly goalProgress: string;
  readonly possibleActions: readonly string[];
  readonly places: readonly Place[];
}

/** Loads the scene, with teleporting, and visits the places one after another. */
export async function tour(
  simulator: Simulator,
  scene: Scene,
  names: readonly string[] = PLACES,
): Promise<Tour> {
  const given = scene.simplifications.split(",").filter((name) => name !== "");
  const simplifications = [...new Set([...given, TELEPORT])].join(",");
  await simulator.load({ ...scene, simplifications });
  await simulator.step("look around");
  const goalProgress = await simulator.goalProgress();
  const possibleActions = await simulator.possibleActions();
  const places: Place[] = [];
  for (const name of names) {
    const { observation: reply } = await simulator.step(`teleport ${name}`);
    const look = await simulator.freeLook();
    places.push({ name, reply, look, objects: await simulator.possibleObjects() });
  }
  return { goalProgress, possibleActions, places };
}

/** The tour as text. */
function writeContext({ goalProgress, possibleActions, places }: Tour): string {
  const actions = [...possibleActions].sort().map((action) => ` - ${action}`);
  const rooms = places.map(
    ({ look, objects }) => `${look.trim()}\nPossible Objects: ${[...objects].sort().join(", ")}`,
  );
  return [
    `Goal Progress:\n${goalProgress.trim()}`,
    `Possible Actions:\n${actions.join("\n")}`,
    `Per-Room Observations:\n${rooms.join("\n\n")}`,
  ].join("\n\n");
}

/** What the episodes of one opened environment share. */
export interface ScienceWorld {
  readonly pool: Pool;
  readonly settings: EpisodeSettings;
  /** What a task is for the simulator. */
  scene(task: Task): Scene;
  /** Gold paths and contexts that are already known, by scene. */
  readonly gold: Map<string, readonly string[]>;
  readonly contexts: Map<string, string>;
}

/** The rules of an episode. */
interface EpisodeSettings {
  /** Ask for the valid actions after every step. */
  readonly validActions: boolean;
  /** Collect the context for world models. */
  readonly context: boolean;
  /** The episode is over after more moves than this; 0 is no limit. */
  readonly moveLimit: number;
  readonly reward: "score" | "success";
}

/** A running episode, with what its expert sees. */
export interface ScienceEnv extends RemoteEnv {
  /** The Java process in which it runs. */
  readonly pid: number;
  /** Finds out how the task is solved; the expert asks for it before it acts. */
  prepareTeacher(): Promise<void>;
  /** The actions of the gold path, once they are prepared, and those taken so far. */
  readonly progress: { readonly gold?: readonly string[]; readonly actions: readonly string[] };
  /** The table of subgoals and whether they are reached. */
  goalProgress(): Promise<string>;
  /** A copy, made by repeating the actions in another process. */
  clone(): Promise<ScienceEnv>;
}

const LOOK = "look around";
const FULL_SCORE = 100;

/** Inputs that the simulator does not know. */
const NOT_KNOWN = /^(Unknown action\.|No known action matches that input\.)/;

interface Episode {
  readonly task: Task;
  readonly scene: Scene;
  readonly simulator: Simulator;
  readonly goal: string;
  readonly context: string | undefined;
  readonly actions: readonly string[];
  readonly valid: readonly string[] | undefined;
  readonly score: number;
  readonly over: boolean;
}

/** The score as the Python package rounds it: half to even. */
export function scoreOf(rawScore: number): number {
  const points = 100 * rawScore;
  const below = Math.floor(points);
  const rest = points - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

/** Whether an episode is over, by the Python package's rules. */
export function isOver({ completed, moves }: Moment, score: number, moveLimit: number): boolean {
  return completed || score < 0 || (moveLimit > 0 && moves > moveLimit);
}

/** Creates an environment; `start` continues a copied episode. */
export function createScienceEnv(world: ScienceWorld, start?: Episode): ScienceEnv {
  const { pool, settings } = world;
  let episode = start;
  const current = (asked: string): Episode => begun(episode, "scienceworld", asked);
  const release = (): void => {
    if (episode !== undefined) pool.give(episode.simulator);
    episode = undefined;
  };

  /** Loads a scene and looks around, as the original's reset does; some tasks give points for it. */
  const begin = async (simulator: Simulator, scene: Scene) => {
    await simulator.load(scene);
    const { observation, rawScore } = await simulator.step(LOOK);
    return { observation, score: scoreOf(rawScore), valid: await validOf(simulator) };
  };
  const validOf = async (simulator: Simulator): Promise<readonly string[] | undefined> =>
    settings.validActions ? [...new Set(await simulator.validActions())].sort() : undefined;
  /** Makes a world as it was: the same calls in the same order. */
  const repeat = async (simulator: Simulator, { scene, actions }: Episode): Promise<void> => {
    await begin(simulator, scene);
    for (const action of actions) {
      await simulator.step(action);
      await validOf(simulator);
    }
  };
  const contextOf = async (simulator: Simulator, scene: Scene): Promise<string> => {
    const known = world.contexts.get(keyOf(scene));
    if (known !== undefined) return known;
    const context = writeContext(await tour(simulator, scene));
    remember(world.contexts, keyOf(scene), context);
    return context;
  };

  return {
    get goal() {
      return current("goal").goal;
    },
    get taskType() {
      return current("taskType").task.type;
    },
    get pid() {
      return current("pid").simulator.pid;
    },
    get progress() {
      const { scene, actions } = current("the expert");
      const gold = world.gold.get(keyOf(scene));
      return { gold, actions };
    },
    async reset(task, _seed, signal) {
      const scene = world.scene(task);
      release();
      const simulator = await pool.take();
      try {
        return await heeding(signal, simulator, async () => {
          const context = settings.context ? await contextOf(simulator, scene) : undefined;
          const { observation, score, valid } = await begin(simulator, scene);
          const goal = await simulator.taskDescription();
          const fresh = { actions: [], score, over: false };
          episode = { task, scene, simulator, goal, context, valid, ...fresh };
          return observation;
        });
      } catch (error) {
        simulator.end("its world could not be started");
        throw error;
      }
    },
    async step(action, signal): Promise<StepResult> {
      const now = current("step");
      if (now.over)
        throw new EnvError(
          "scienceworld: step was called after the episode was over; call reset(task).",
        );
      return heeding(signal, now.simulator, async () => {
        const moment = await now.simulator.step(action);
        const valid = await validOf(now.simulator);
        const score = scoreOf(moment.rawScore);
        const over = isOver(moment, score, settings.moveLimit);
        // Both a fatal mistake and a fault of the simulator's own are scored like this.
        const failure = score < 0 ? await now.simulator.failure() : "";
        if (failure !== "") throw new EnvError(`scienceworld: the simulator failed: ${failure}`);
        episode = { ...now, actions: [...now.actions, action], valid, score, over };
        return result(moment, now.score, score, over, settings);
      });
    },
    ...(settings.validActions && {
      admissibleActions() {
        const { over, valid } = current("admissibleActions");
        return over ? [] : valid!;
      },
    }),
    ...(settings.context && { initialContext: () => current("initialContext").context }),
    goalProgress: () => current("goalProgress").simulator.goalProgress(),
    async prepareTeacher() {
      const now = current("the expert");
      if (world.gold.has(keyOf(now.scene))) return;
      // In this very process, which then repeats the episode: another one would cost memory.
      try {
        remember(world.gold, keyOf(now.scene), await now.simulator.loadGold(now.scene));
        await repeat(now.simulator, now);
      } catch (error) {
        now.simulator.end("its world was lost while its gold path was made");
        throw error;
      }
    },
    async clone() {
      const now = episode;
      if (now === undefined) return createScienceEnv(world);
      const simulator = await pool.take();
      try {
        await repeat(simulator, now);
      } catch (error) {
        simulator.end("its world could not be copied");
        throw error;
      }
      return createScienceEnv(world, { ...now, simulator });
    },
    async close() {
      release();
    },
  };
}

/** Entries kept: the episodes of a group are of the same scene. */
const MOST_KEPT = 512;

function remember<T>(known: Map<string, T>, key: string, value: T): void {
  const [oldest] = known.keys();
  if (known.size >= MOST_KEPT && oldest !== undefined) known.delete(oldest);
  known.set(key, value);
}

const keyOf = ({ task, variation, simplifications }: Scene): string =>
  `${task} ${variation} ${simplifications}`;

function result(
  { observation }: Moment,
  before: number,
  score: number,
  done: boolean,
  settings: EpisodeSettings,
): StepResult {
  const success = score === FULL_SCORE;
  const gained = (score - before) / FULL_SCORE;
  return {
    observation,
    reward: settings.reward === "score" ? gained : Number(success && before !== FULL_SCORE),
    done,
    info: {
      valid: !NOT_KNOWN.test(observation),
      success,
      score: Math.max(0, score) / FULL_SCORE,
    },
  };
}

/** Ends a simulator whose answer nobody waits for any more: it is in an unknown state. */
async function heeding<T>(
  signal: AbortSignal | undefined,
  simulator: Simulator,
  work: () => Promise<T>,
): Promise<T> {
  const stop = (): void => simulator.end("nobody waits for the simulator's answer any more");
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await work();
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
