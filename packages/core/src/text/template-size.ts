/** The sizes of values in a chat template. */

/** A value of the template's interpreter. */
export interface TemplateValue {
  readonly type: string;
  readonly value: unknown;
}

/** The size of a value. */
export interface TemplateSize {
  /** Characters of a text, or of everything in a list, each time that it is there. */
  readonly characters: number;
  /** Lists or objects inside each other. */
  readonly nesting: number;
  /** What the list or object takes besides its items. */
  readonly own: number;
  /** Whether it stays the same: a namespace can be assigned to. */
  readonly fixed: boolean;
}

const ITEM = 16;
const plain: TemplateSize = { characters: 1, nesting: 0, own: 0, fixed: true };

/**
 * Measures values, and remembers those that cannot change. A list that holds another twice is
 * counted as twice as large, as it is when it is written out; `tooLarge` is thrown as soon as a
 * limit is passed.
 */
export function templateSizes(
  limits: { readonly characters: number; readonly nesting: number },
  tooLarge: (what: "characters" | "nesting") => Error,
): (value: TemplateValue) => TemplateSize {
  const known = new WeakMap<TemplateValue, TemplateSize>();
  const measure = (value: TemplateValue, level: number): TemplateSize => {
    const inside = value.value;
    if (typeof inside === "string") {
      if (inside.length > limits.characters) throw tooLarge("characters");
      return { characters: inside.length, nesting: 0, own: inside.length, fixed: true };
    }
    if (!Array.isArray(inside) && !(inside instanceof Map)) return plain;
    const before = known.get(value);
    if (before !== undefined) {
      if (before.nesting + level > limits.nesting) throw tooLarge("nesting");
      return before;
    }
    if (level >= limits.nesting) throw tooLarge("nesting");
    let [characters, nesting, own, fixed] = [1, 0, 1, value.type !== "NamespaceValue"];
    const add = (item: TemplateValue | undefined, key = ""): void => {
      const size = item === undefined ? plain : measure(item, level + 1);
      characters += ITEM + key.length + size.characters;
      own += ITEM + key.length;
      nesting = Math.max(nesting, size.nesting);
      fixed &&= size.fixed;
      if (characters > limits.characters) throw tooLarge("characters");
    };
    if (Array.isArray(inside)) for (const item of inside as TemplateValue[]) add(item);
    else for (const [key, item] of inside as Map<string, TemplateValue>) add(item, key);
    const size = { characters, nesting: nesting + 1, own, fixed };
    // Made a moment ago, it counts; met again, it does not.
    if (fixed) known.set(value, { ...size, own: 0 });
    return size;
  };
  return (value) => measure(value, 0);
}
