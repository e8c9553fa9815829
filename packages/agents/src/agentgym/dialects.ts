/**
 * How AgentGym's environment servers differ. There is no common schema: names of fields, what a
 * reset takes and what comes back are each server's own.
 */

/** One server's way of speaking. */
export interface Dialect {
  /** What stands before its paths. */
  readonly path?: string;
  /** The body of `create`; most take none. */
  readonly create?: object;
  /** Where `create` answers with the id; undefined if the answer is the id. */
  readonly created?: string | undefined;
  /** The field with the id in every other call. */
  readonly id: "id" | "env_idx";
  /** The body of `reset` besides the id. */
  reset(task: number): object;
  /** What a reset answers: an object with an observation, a list that begins with it, or a text. */
  readonly first: "object" | "list" | "text";
  /** Where the first observation is asked for with a call of its own. */
  readonly asksFirst?: boolean;
  /** The observation's field in the answer of a step. */
  readonly seen: "observation" | "state";
  /** What is the level reached so far: the reward of the last step, or a score. */
  readonly level: "reward" | "score";
  /** The level that is a success. */
  readonly full: number;
  /** The fields of which any ends the episode. */
  readonly over: readonly string[];
  /** The field with the actions that are possible now. */
  readonly actions?: string;
  /** Whether an episode's world can be given back. */
  readonly closes: boolean;
  /** Observations that are a fault of the server's. */
  readonly faults?: readonly string[];
  /** Finds the goal in the first observation (default: all of it). */
  readonly goal?: RegExp;
  /** The field of a reset's answer with the goal. */
  readonly goalField?: string;
  /** How to act, in words: the servers themselves do not say. */
  readonly instructions: string;
}

const common = {
  created: "id",
  id: "id",
  first: "object",
  seen: "observation",
  level: "reward",
  full: 1,
  over: ["done"],
  closes: false,
} as const;

const bare = { ...common, created: undefined, id: "env_idx" } as const;

const byId = { create: { id: 0 }, reset: (id: number) => ({ id }), first: "text" } as const;

const toolUser = (about: string): Dialect => ({
  ...bare,
  ...byId,
  instructions: `${about} Act by calling its functions, one at a time, in this form: Action: NAME with Action Input: {"argument": value}. The function check_valid_actions with Action Input {} lists them. The function finish with the argument answer ends the task.`,
});

/** The servers by name. */
export const dialects: Readonly<Record<string, Dialect>> = {
  alfworld: {
    ...common,
    reset: (game) => ({ game, world_type: "Text" }),
    actions: "available_actions",
    goal: /Your task is to: *(.+)/,
    instructions: "You act in a house. Choose one of the actions that are possible now.",
  },
  sciworld: {
    ...common,
    reset: (data_idx) => ({ data_idx }),
    level: "score",
    full: 100,
    closes: true,
    goalField: "task_description",
    instructions:
      "You do experiments in a simulated house. Actions are short commands such as: look around, open door to kitchen, pick up thermometer, use thermometer on water, pour cup into pot, focus on water, wait.",
  },
  babyai: {
    ...common,
    reset: (data_idx) => ({ data_idx }),
    level: "score",
    closes: true,
    goal: /Your goal: *(.+)/,
    instructions:
      "You act in a grid of rooms. Actions are, for example: turn left, turn right, move forward, go to red ball 1, pick up green key 1, toggle; the observation says which are possible.",
  },
  textcraft: {
    ...common,
    create: {},
    reset: (data_idx) => ({ data_idx }),
    closes: true,
    goal: /Goal: *(.+)/,
    instructions:
      "You craft things by recipes. Actions are: get N ITEM, craft N ITEM using N ITEM, N ITEM, and inventory.",
  },
  maze: {
    ...common,
    path: "/maze",
    reset: (game) => ({ game }),
    instructions:
      "You walk through a maze to the goal. Actions are: move up, move down, move left, move right. Moving right increases y by 1, moving down increases x by 1.",
  },
  wordle: {
    ...common,
    path: "/wordle",
    reset: (seed) => ({ seed }),
    instructions:
      "You guess a hidden word of five letters in six attempts. An action is a guess, its letters apart: s h i r e. In the answer, g is a letter in its place, y one that is elsewhere in the word, b one that is not in it.",
  },
  webshop: {
    ...bare,
    reset: (session_id) => ({ session_id }),
    first: "list",
    asksFirst: true,
    seen: "state",
    goal: /Instruction:\s*(?:\[SEP\])?\s*([^[\n]+)/,
    instructions:
      "You shop on a web site. Actions are: search[keywords], where there is a search bar, and click[value], where value is a button of the page.",
  },
  sqlgym: {
    ...bare,
    reset: (item_id) => ({ item_id }),
    first: "list",
    seen: "state",
    instructions: "You answer a question about a database. An action is a query in SQL.",
  },
  searchqa: {
    ...bare,
    ...byId,
    closes: true,
    instructions:
      "You answer a question. Actions are: <search>keywords</search>, which returns passages, and <answer>your answer</answer>, which ends the task.",
  },
  academia: toolUser("You answer questions about researchers, papers and venues."),
  movie: toolUser("You answer questions about films and people."),
  sheet: toolUser("You work on spreadsheets."),
  todo: toolUser("You manage a list of projects and tasks."),
  weather: toolUser("You answer questions about the weather."),
  webarena: {
    ...bare,
    created: "env_idx",
    reset: (idx) => ({ seed: 0, idx }),
    over: ["terminated", "truncated"],
    closes: true,
    faults: ["TimeoutError"],
    instructions:
      "You use a web browser. Actions are: click [id], type [id] [text] [1], hover [id], press [keys], scroll [down], new_tab, tab_focus [number], close_tab, goto [address], go_back, go_forward, and stop [answer], which ends the task; write the action between three backticks.",
  },
};
