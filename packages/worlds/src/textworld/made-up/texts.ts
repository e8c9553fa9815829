/** What the player reads of a made-up game besides the events. */
import type { Facts } from "../logic.js";
import { CUTS, factsWith, HEATS, holds, type MadeGame, roomOf } from "./made-game.js";

/** The room the player is in: its name, furniture, things and exits. */
export function roomText(game: MadeGame, facts: Facts): string {
  const room = roomOf(facts);
  const here = factsWith(facts, "at", 1, room).map((one) => one.arguments[0]!);
  const type = (id: string): string => game.entities.get(id)?.type ?? "";
  const furniture = here.filter((id) => "bcsvw".includes(type(id)) && type(id) !== "");
  const lying = here.filter((id) => "ofkn".includes(type(id)) && type(id) !== "");
  return [
    `-= ${room[0]!.toUpperCase()}${room.slice(1)} =-`,
    [
      `You are in the ${room}.`,
      ...furniture.map((id) => furnitureText(facts, id, type(id))),
      ...(lying.length > 0 ? [`On the floor: ${listed(facts, lying)}.`] : []),
      exitsText(facts, room),
    ].join(" "),
  ].join("\n");
}

function furnitureText(facts: Facts, id: string, type: string): string {
  if (type === "b") return `There is ${withArticle(id)}.`;
  if (type === "s" || type === "v") {
    const on = factsWith(facts, "on", 1, id).map((one) => one.arguments[0]!);
    return `There is ${withArticle(id)}${on.length > 0 ? ` with ${listed(facts, on)} on it` : ""}.`;
  }
  return holds(facts, "open", id)
    ? `There is an open ${id}. ${contentsText(facts, id)}`
    : `There is a ${holds(facts, "locked", id) ? "locked" : "closed"} ${id}.`;
}

/** What an open container holds. */
export function contentsText(facts: Facts, container: string): string {
  const inside = factsWith(facts, "in", 1, container).map((one) => one.arguments[0]!);
  return inside.length === 0 ? "It is empty." : `In it: ${listed(facts, inside)}.`;
}

/** What the player carries. */
export function inventoryText(facts: Facts): string {
  const carried = factsWith(facts, "in", 1, "I").map((one) => one.arguments[0]!);
  return carried.length === 0 ? "You carry nothing." : `You carry ${listed(facts, carried)}.`;
}

function exitsText(facts: Facts, room: string): string {
  const exits = factsWith(facts, "exit", 0, room).map(({ arguments: [, direction, to] }) => {
    const door = factsWith(facts, "door", 0, room).find((one) => one.arguments[2] === to)
      ?.arguments[1];
    if (door === undefined) return direction!;
    const state = ["open", "closed", "locked"].find((one) => holds(facts, one, door))!;
    return `${direction} (${state} ${door})`;
  });
  return `Exits: ${exits.join(", ")}.`;
}

/** Things with what was done to them: "an egg, a carrot (chopped, fried) and a key". */
function listed(facts: Facts, ids: readonly string[]): string {
  const named = ids.map((id) => {
    const done = [...Object.keys(CUTS), ...Object.keys(HEATS)].filter((one) =>
      holds(facts, one, id),
    );
    return done.length === 0 ? withArticle(id) : `${withArticle(id)} (${done.join(", ")})`;
  });
  return andList(named);
}

/** "a", "a and b", "a, b and c". */
export function andList(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}

/** A name with its indefinite article. */
function withArticle(name: string): string {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}
