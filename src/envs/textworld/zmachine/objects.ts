/** The table of objects: attributes, a tree, and properties. All of it is in dynamic memory. */
import { OBJECT_SIZE, type Story, storyFault } from "./story.js";
import { decodeText } from "./text.js";

const PARENT = 6;
const SIBLING = 8;
const CHILD = 10;
const PROPERTIES = 12;
const ATTRIBUTES = 48;

/** Operations on the objects of a memory image. Object 0 is nothing: it has no relatives. */
export interface Objects {
  parent(object: number): number;
  sibling(object: number): number;
  child(object: number): number;
  has(object: number, attribute: number): boolean;
  give(object: number, attribute: number, on: boolean): void;
  remove(object: number): void;
  insert(object: number, into: number): void;
  /** The value of a property, or its default. */
  property(object: number, property: number): number;
  setProperty(object: number, property: number, value: number): void;
  /** The address of a property's value, or 0. */
  propertyAddress(object: number, property: number): number;
  /** The length of the property whose value is at an address. */
  propertyLength(address: number): number;
  /** The property after one in an object's list; 0 asks for the first, and is after the last. */
  nextProperty(object: number, property: number): number;
  name(object: number): string;
}

/** The objects of a story in a memory image. */
export function createObjects(story: Story, memory: Uint8Array): Objects {
  const { objects, lastObject, staticMark } = story;
  const word = (address: number): number => (memory[address]! << 8) | memory[address + 1]!;
  const entry = (object: number): number => {
    if (object > lastObject) throw storyFault(story, objects, `there is no object ${object}`);
    return objects + object * OBJECT_SIZE;
  };
  const link = (object: number, field: number): number =>
    object === 0 ? 0 : word(entry(object) + field);
  const setLink = (object: number, field: number, value: number): void => {
    const address = entry(object) + field;
    memory[address] = value >> 8;
    memory[address + 1] = value & 0xff;
  };
  const attributeAddress = (object: number, attribute: number): number => {
    if (attribute >= ATTRIBUTES)
      throw storyFault(story, objects, `there is no attribute ${attribute}`);
    return entry(object) + (attribute >> 3);
  };
  /** The address of the size byte of an object's first property. */
  const firstProperty = (object: number): number => {
    const table = link(object, PROPERTIES);
    return table + 1 + 2 * memory[table]!;
  };
  const find = (object: number, property: number): number => {
    if (object === 0) return 0;
    for (let at = firstProperty(object); at < story.size; ) {
      const size = memory[at]!;
      const number = size & 63;
      if (number <= property) {
        if (number < property || property === 0) return 0;
        return at + (size & 0x80 ? 2 : 1);
      }
      at += size & 0x80 ? 2 + (memory[at + 1]! & 63 || 64) : size & 0x40 ? 3 : 2;
    }
    throw storyFault(story, objects, `the properties of object ${object} never end`);
  };
  const propertyLength = (address: number): number => {
    if (address === 0) return 0;
    const size = memory[address - 1]!;
    return size & 0x80 ? size & 63 || 64 : size & 0x40 ? 2 : 1;
  };
  const remove = (object: number): void => {
    const parent = link(object, PARENT);
    if (parent === 0) return;
    const next = link(object, SIBLING);
    let child = link(parent, CHILD);
    if (child === object) setLink(parent, CHILD, next);
    else {
      for (let steps = 0; link(child, SIBLING) !== object; steps++) {
        child = link(child, SIBLING);
        if (child === 0 || steps > lastObject)
          throw storyFault(story, objects, `object ${object} is not among its parent's children`);
      }
      setLink(child, SIBLING, next);
    }
    setLink(object, PARENT, 0);
    setLink(object, SIBLING, 0);
  };
  return {
    parent: (object) => link(object, PARENT),
    sibling: (object) => link(object, SIBLING),
    child: (object) => link(object, CHILD),
    has(object, attribute) {
      if (object === 0) return false;
      return (memory[attributeAddress(object, attribute)]! & (0x80 >> (attribute & 7))) !== 0;
    },
    give(object, attribute, on) {
      if (object === 0) return;
      const address = attributeAddress(object, attribute);
      const bit = 0x80 >> (attribute & 7);
      memory[address] = on ? memory[address]! | bit : memory[address]! & ~bit;
    },
    remove,
    insert(object, into) {
      if (object === 0 || into === 0) return;
      remove(object);
      setLink(object, PARENT, into);
      setLink(object, SIBLING, link(into, CHILD));
      setLink(into, CHILD, object);
    },
    property(object, property) {
      const address = find(object, property);
      if (address === 0) return word(story.defaults + 2 * (property & 63));
      return propertyLength(address) === 1 ? memory[address]! : word(address);
    },
    setProperty(object, property, value) {
      const address = find(object, property);
      if (address === 0 || address + 2 > staticMark)
        throw storyFault(story, objects, `object ${object} has no property ${property} to change`);
      if (propertyLength(address) === 1) memory[address] = value & 0xff;
      else {
        memory[address] = value >> 8;
        memory[address + 1] = value & 0xff;
      }
    },
    propertyAddress: find,
    propertyLength,
    nextProperty(object, property) {
      if (object === 0) return 0;
      if (property === 0) return memory[firstProperty(object)]! & 63;
      const address = find(object, property);
      if (address === 0)
        throw storyFault(story, objects, `object ${object} has no property ${property}`);
      return memory[address + propertyLength(address)]! & 63;
    },
    name(object) {
      if (object === 0) return "";
      const table = link(object, PROPERTIES);
      return memory[table] === 0 ? "" : decodeText(story, memory, table + 1).text;
    },
  };
}
