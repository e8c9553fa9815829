/**
 * Follows a game by its rules: which actions its facts allow, which commands those are, and what a
 * reported event changes. It believes the events alone, as the original does.
 */
import {
  type Atom,
  CONSTANTS,
  changeFacts,
  type Fact,
  type Facts,
  fact,
  type Logic,
  placeholdersOf,
  type Rule,
} from "./logic.js";

/** What a tracker knows of an entity. */
export interface Entity {
  readonly type: string;
  /** How players call it. */
  readonly name: string;
}

/** The rules of one game, ready to be applied. */
export interface Tracker {
  /** The commands that the facts allow, sorted, each once. */
  commands(facts: Facts): readonly string[];
  /** The facts after an event; undefined if no action that is possible reports it. */
  apply(facts: Facts, event: string): Facts | undefined;
  /** What a command does, and the event that says so; undefined if the facts do not allow it. */
  act(facts: Facts, command: string): { readonly facts: Facts; readonly event: string } | undefined;
  /** The facts in readable names, sorted. */
  readable(facts: Facts): readonly string[];
}

/** An atom of a rule, with the places of its arguments among the rule's placeholders. */
interface Pattern {
  readonly predicate: string;
  readonly slots: readonly number[];
  /** The entities that may stand in each place. */
  readonly allowed: readonly ReadonlySet<string>[];
  /** Whether the place is bound here, and not before. */
  readonly fresh: readonly boolean[];
}

interface Template {
  readonly texts: readonly string[];
  readonly slots: readonly number[];
}

interface TrackedRule {
  readonly before: readonly Pattern[];
  readonly after: readonly Pattern[];
  readonly command: Template | undefined;
  readonly event: Template | undefined;
  /** Placeholders that no precondition binds: any entity of their type will do. */
  readonly free: readonly { readonly slot: number; readonly allowed: ReadonlySet<string> }[];
  /** What the placeholders start with: the constants are bound. */
  readonly bound: readonly (string | undefined)[];
}

/** A tracker for the entities of a game, by id. */
export function createTracker(logic: Logic, entities: ReadonlyMap<string, Entity>): Tracker {
  const byType = new Map<string, ReadonlySet<string>>();
  const ofType = (type: string): ReadonlySet<string> => {
    const known = byType.get(type) ?? entitiesOf(type, logic, entities);
    byType.set(type, known);
    return known;
  };
  const rules = logic.rules.map((rule) => prepare(rule, ofType));
  // Events belong to the action that needs most; the sort keeps the order of names among equals.
  const byNeed = rules
    .filter(({ event }) => event !== undefined)
    .sort((left, right) => right.before.length - left.before.length);
  const nameOf = (id: string): string => entities.get(id)?.name ?? id;
  const fill = ({ texts, slots }: Template, bound: readonly string[]): string =>
    slots.reduce((text, slot, index) => text + nameOf(bound[slot]!) + texts[index + 1]!, texts[0]!);
  // Most turns change no fact.
  const listed = new WeakMap<Facts, readonly string[]>();
  return {
    commands(facts) {
      const known = listed.get(facts);
      if (known !== undefined) return known;
      const found = new Set<string>();
      for (const rule of rules) {
        const { command } = rule;
        if (command === undefined) continue;
        matches(rule, facts, (bound) => {
          found.add(fill(command, bound));
          return false;
        });
      }
      const commands = [...found].sort(byCodePoint);
      listed.set(facts, commands);
      return commands;
    },
    apply(facts, event) {
      const wanted = event.toLowerCase();
      for (const rule of byNeed) {
        const bound = firstMatch(
          rule,
          facts,
          (one) => fill(rule.event!, one).toLowerCase() === wanted,
        );
        if (bound !== undefined) return effect(rule, facts, bound);
      }
      return undefined;
    },
    act(facts, command) {
      for (const rule of byNeed) {
        if (rule.command === undefined) continue;
        const bound = firstMatch(rule, facts, (one) => fill(rule.command!, one) === command);
        if (bound !== undefined)
          return { facts: effect(rule, facts, bound), event: fill(rule.event!, bound) };
      }
      return undefined;
    },
    readable: (facts) =>
      [...facts.values()]
        .flat()
        .map((one) => `${one.predicate}(${one.arguments.map(nameOf).join(", ")})`)
        .sort(byCodePoint),
  };
}

function prepare(rule: Rule, ofType: (type: string) => ReadonlySet<string>): TrackedRule {
  const names = new Map<string, number>();
  const bound: (string | undefined)[] = [];
  const slotOf = (name: string, type: string): number => {
    let slot = names.get(name);
    if (slot === undefined) {
      slot = names.size;
      names.set(name, slot);
      bound.push(CONSTANTS.includes(type) ? type : undefined);
    }
    return slot;
  };
  const pattern = (atom: Atom): Pattern => ({
    predicate: atom.predicate,
    fresh: atom.arguments.map(({ name, type }, at) => {
      const again = atom.arguments.slice(0, at).some((other) => other.name === name);
      return !(again || names.has(name) || CONSTANTS.includes(type));
    }),
    slots: atom.arguments.map(({ name, type }) => slotOf(name, type)),
    allowed: atom.arguments.map(({ type }) => ofType(type)),
  });
  const template = (text: string | undefined): Template | undefined =>
    text === undefined
      ? undefined
      : {
          texts: text.split(/\{[^{}]*\}/),
          slots: placeholdersOf(text).map((name) => slotOf(name, name)),
        };
  const before = rule.before.map(pattern);
  const preconditioned = names.size;
  const after = rule.after.map(pattern);
  const free = [...names.values()]
    .filter((slot) => slot >= preconditioned && bound[slot] === undefined)
    .map((slot) => {
      const typed = after.find(({ slots }) => slots.includes(slot))!;
      return { slot, allowed: typed.allowed[typed.slots.indexOf(slot)]! };
    });
  return {
    free,
    before,
    after,
    command: template(rule.command),
    event: template(rule.event),
    bound,
  };
}

function entitiesOf(
  type: string,
  { ancestors }: Logic,
  entities: ReadonlyMap<string, Entity>,
): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const [id, entity] of entities)
    if (entity.type === type || ancestors.get(entity.type)?.has(type)) ids.add(id);
  return new Set([...ids].sort(byCodePoint));
}

/** Calls `found` with every way to meet a rule's preconditions, until it says that it has enough. */
function matches(
  { before, free, bound }: TrackedRule,
  facts: Facts,
  found: (bound: readonly string[]) => boolean,
): void {
  const values = bound.slice();
  const choose = (at: number): boolean => {
    const chosen = free[at];
    if (chosen === undefined) return found(values as readonly string[]);
    for (const id of chosen.allowed) {
      if (values.includes(id)) continue;
      values[chosen.slot] = id;
      if (choose(at + 1)) return true;
      values[chosen.slot] = undefined;
    }
    return false;
  };
  const meet = (depth: number): boolean => {
    const pattern = before[depth];
    if (pattern === undefined) return choose(0);
    const { predicate, slots } = pattern;
    for (const { arguments: ids } of facts.get(predicate) ?? NO_FACTS) {
      if (ids.length === slots.length && fits(pattern, ids, values) && meet(depth + 1)) return true;
    }
    return false;
  };
  meet(0);
}

/** The first way to meet a rule's preconditions that is wanted. */
function firstMatch(
  rule: TrackedRule,
  facts: Facts,
  wanted: (bound: readonly string[]) => boolean,
): readonly string[] | undefined {
  let first: readonly string[] | undefined;
  matches(rule, facts, (bound) => {
    if (wanted(bound)) first = bound.slice();
    return first !== undefined;
  });
  return first;
}

const NO_FACTS: readonly Fact[] = [];

/** Whether a fact fits a pattern; places that were free are then bound. */
function fits(
  { slots, allowed, fresh }: Pattern,
  ids: readonly string[],
  values: (string | undefined)[],
): boolean {
  for (let at = 0; at < slots.length; at++) {
    const slot = slots[at]!;
    const id = ids[at]!;
    if (!fresh[at]) {
      if (values[slot] !== id) return false;
      continue;
    }
    if (!allowed[at]!.has(id)) return false;
    // Two placeholders never stand for the same entity; those bound before have lower numbers.
    for (let other = 0; other < slot; other++) if (values[other] === id) return false;
    values[slot] = id;
  }
  return true;
}

function effect(rule: TrackedRule, facts: Facts, bound: readonly string[]): Facts {
  const filled = (patterns: readonly Pattern[]): readonly Fact[] =>
    patterns.map(({ predicate, slots }) =>
      fact(
        predicate,
        slots.map((slot) => bound[slot]!),
      ),
    );
  const without = (some: readonly Fact[], others: readonly Fact[]): readonly Fact[] =>
    some.filter(({ key }) => others.every((other) => other.key !== key));
  const before = filled(rule.before);
  const after = filled(rule.after);
  return changeFacts(facts, without(before, after), without(after, before));
}

/** Compares as Python sorts texts. */
function byCodePoint(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
