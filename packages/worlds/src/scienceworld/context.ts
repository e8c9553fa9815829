/**
 * What a world model may know about the initial state, in the order of Word-to-World: goal
 * progress, patterns of actions, and every place as it looks from inside. It is collected on a tour
 * in a world of its own, because visiting takes time and asking for objects draws random numbers.
 */
import type { Scene, Simulator } from "./simulator.js";

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
export interface Tour {
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
export function writeContext({ goalProgress, possibleActions, places }: Tour): string {
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
