/**
 * The household world: a procedurally generated house in text, in which an agent finds objects,
 * treats them and brings them where they belong.
 *
 * Splits: `valid_seen` draws new houses like those of `train`. `valid_unseen` has room types that
 * `train` never has, and no object starts at a kind of place where it ever starts in `train`; all
 * its words are words of `train`, so the same word-level vocabulary covers both. `test_unseen` is
 * drawn the same way as `valid_unseen`: choose settings on one, report on the other.
 */
import { z } from "zod";
import { createRandom, mixSeed } from "../../random.js";
import { defineEnv } from "../define-env.js";
import { begun, type Env, EnvError, type Environment, type StepResult, type Task } from "../env.js";
import { numberedLists } from "../task-lists.js";
import { act, admissible } from "./actions.js";
import { expertCommand, seekerCommand } from "./expert.js";
import {
  families,
  familyOf,
  generateHouse,
  type House,
  type HouseSettings,
  splitSizes,
} from "./house.js";
import { housePrompt } from "./prompt.js";
import {
  copyState,
  describeHand,
  describeHouse,
  describeStart,
  goalReached,
  type HouseState,
  initialState,
} from "./state.js";

/** Which noise observations carry. */
const noiseKinds = ["off", "ids", "brands", "all"] as const;
type Noise = (typeof noiseKinds)[number];

const firstSyllables = "Bel Dor Fen Gal Jun Kor Lum Mer Nov Pel Ros Tav".split(" ");
const lastSyllables = "ano dex ella go ira lux mo nix ora tek una vio".split(" ");

/** The number of different ids, so that a word-level vocabulary of them stays finite. */
const idCount = 1_000;

/**
 * What observations call each object of a house in one episode: the name alone, or with a
 * brand-like word before it (one of 144) and an id after it (#0 to #999), both drawn from the
 * episode's seed.
 */
function drawLabels(house: House, noise: Noise, seed: number): readonly string[] {
  if (noise === "off") return house.objects.map((object) => object.name);
  const random = createRandom(mixSeed("household noise", seed));
  return house.objects.map(({ name }) => {
    const brand = `${random.pick(firstSyllables)}${random.pick(lastSyllables)}`;
    const id = random.int(idCount);
    if (noise === "ids") return `${name} #${id}`;
    return noise === "brands" ? `${brand} ${name}` : `${brand} ${name} #${id}`;
  });
}

const stepLimit = 50;
const successReward = 10;

/** The options of the household world. */
const householdOptions = z
  .strictObject({
    rooms: z.int().min(1).max(4).default(2).describe("rooms per house"),
    receptacles: z
      .int()
      .min(3)
      .max(24)
      .default(8)
      .describe("receptacles per house, including appliances and lamps: 3 to 6 per room"),
    objects: z
      .int()
      .min(2)
      .max(24)
      .default(8)
      .describe("movable objects per house: at most 2 per receptacle"),
    families: z
      .array(z.enum(families))
      .min(1)
      .default([...families])
      .describe("task families to include"),
    noise: z
      .enum(noiseKinds)
      .default("off")
      .describe("add random ids or brand-like words to observations, different in every episode"),
    seed: z.int().default(0).describe("random seed of the houses"),
  })
  .superRefine((options, context) => {
    const refuse = (key: string, message: string) =>
      context.addIssue({ code: "custom", path: [key], message });
    const { rooms, receptacles, objects } = options;
    if (receptacles < 3 * rooms || receptacles > 6 * rooms)
      refuse(
        "receptacles",
        `expected ${3 * rooms} to ${6 * rooms} receptacles for rooms: ${rooms}, got ${receptacles}`,
      );
    if (objects > 2 * receptacles)
      refuse(
        "objects",
        `expected at most ${2 * receptacles} objects for receptacles: ${receptacles}, got ${objects}`,
      );
    const twice = options.families.find((family, at) => options.families.indexOf(family) < at);
    if (twice !== undefined) refuse("families", `"${twice}" is listed twice; list each once`);
  });

/** The parsed options. */
interface Settings extends HouseSettings {
  readonly noise: Noise;
}

/** A running household, with the state that its expert sees. */
interface HouseholdEnv extends Env {
  readonly household: HouseState;
}

/** The household world, for the registry. */
export const household = defineEnv({
  name: "household",
  summary: "a generated house in text: find objects, treat them, bring them where they belong",
  options: householdOptions,
  open,
  describe: (options) => [
    `${options.rooms} rooms, ${options.receptacles} receptacles, ${options.objects} objects`,
    `families: ${options.families.join(", ")}; noise: ${options.noise}; seed: ${options.seed}`,
    "generated, so there is nothing to download",
  ],
});

function open(settings: Settings): Environment {
  const { lists, placeOf } = numberedLists("household", splitSizes, (index) =>
    familyOf(index, settings),
  );
  const houseOf = (task: Task): House => {
    const { split, index } = placeOf(task);
    return generateHouse(split, index, settings);
  };
  return {
    name: "household",
    ...lists,
    stepLimit,
    madeUp: true,
    maxReturn: successReward,
    whiteSpace: "collapse",
    prompt: housePrompt,
    create: () => createEnv(houseOf, settings.noise, undefined, false),
    expert: (env: Env) => expertCommand(stateOf(env)),
    seeker: (env: Env) => seekerCommand(stateOf(env)),
  };
}

/** The true state of a running household, for its scripted players. */
function stateOf(env: Env): HouseState {
  if ("household" in env) return (env as HouseholdEnv).household;
  throw new EnvError(
    "The household's expert and seeker play household environments only, unwrapped.",
  );
}

const infos = {
  valid: { valid: true, success: false },
  invalid: { valid: false, success: false },
  success: { valid: true, success: true },
} as const;

function createEnv(
  houseOf: (task: Task) => House,
  noise: Noise,
  started: HouseState | undefined,
  startedOver: boolean,
): HouseholdEnv {
  let state = started;
  let over = startedOver;
  let commands: readonly string[] | undefined;
  const current = (asked: string): HouseState => begun(state, "household", asked);
  return {
    get goal() {
      return current("goal").house.goal;
    },
    get taskType() {
      return current("taskType").house.family;
    },
    get household() {
      return current("the expert");
    },
    reset(task, seed = 0) {
      const house = houseOf(task);
      state = initialState(house, drawLabels(house, noise, seed));
      over = false;
      commands = undefined;
      return `${describeHouse(state)} ${describeHand(state)}`;
    },
    step(action): StepResult {
      const now = current("step");
      if (over)
        throw new EnvError(
          "household: step was called after the episode was over; call reset(task).",
        );
      const { valid, text } = act(now, action.trim());
      const observation = `${text} ${describeHand(now)}`;
      if (!valid) return { observation, reward: 0, done: false, info: infos.invalid };
      commands = undefined;
      over = goalReached(now);
      return over
        ? { observation, reward: successReward, done: true, info: infos.success }
        : { observation, reward: 0, done: false, info: infos.valid };
    },
    admissibleActions() {
      commands ??= over ? [] : admissible(current("admissibleActions"));
      return commands;
    },
    initialContext: () => describeStart(current("initialContext").house),
    clone: () =>
      createEnv(houseOf, noise, state === undefined ? undefined : copyState(state), over),
  };
}
