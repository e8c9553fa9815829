/**
 * A story file of the Z-machine, version 8, as the Z-Machine Standards Document 1.1 describes it:
 * the image is checked when it is read, so that the machine may trust its tables.
 */
import { EnvError } from "../../env.js";

/** A checked story. */
export interface Story {
  /** How errors name it. */
  readonly file: string;
  /** All of memory, with zeros up to 64 KiB if the file is shorter. Its machine changes it. */
  readonly bytes: Uint8Array;
  /** The part of memory that can change, as it is at the start. */
  readonly initial: Uint8Array;
  /** Bytes of the file. */
  readonly size: number;
  /** The first address that cannot be written. */
  readonly staticMark: number;
  /** Address of global variable 16, less 32: variable v is at `globals + 2 v`. */
  readonly globals: number;
  /** Address of the defaults of properties, less 2: property p's is at `defaults + 2 p`. */
  readonly defaults: number;
  /** Address of object 0, were there one: object n is at `objects + 14 n`. */
  readonly objects: number;
  /** The largest object number whose entry is inside dynamic memory. */
  readonly lastObject: number;
  readonly dictionary: number;
  readonly abbreviations: number;
  /** Address of the first instruction. */
  readonly start: number;
}

const VERSION = 8;
const HEADER = 64;
const ADDRESS_SPACE = 0x10000;
const LARGEST = 0x10000 * 8;
const GLOBALS = 240;
const PROPERTY_DEFAULTS = 63;
/** Bytes of an object's entry. */
export const OBJECT_SIZE = 14;

/** Checks a story file; one that is broken or of another version is an `EnvError`. */
export function readStory(file: string, image: Uint8Array): Story {
  const wrong = (problem: string): EnvError => new EnvError(`${file}: ${problem}`);
  const made = "make the game again (pawl env make textworld)";
  if (image.length < HEADER)
    throw wrong(
      `not a story file: it has ${image.length} bytes, and a header takes ${HEADER}; ${made}`,
    );
  if (image[0] !== VERSION)
    throw wrong(
      `a story of Z-machine version ${image[0]}, expected ${VERSION}: TextWorld makes .z8 files`,
    );
  if (image.length > LARGEST)
    throw wrong(
      `${image.length} bytes, more than the ${LARGEST} that a story of version 8 can have`,
    );
  const word = (address: number): number => (image[address]! << 8) | image[address + 1]!;
  const declared = word(0x1a) * 8;
  // The file may be padded, but not cut.
  if (declared > image.length)
    throw wrong(
      `the file is cut: its header promises ${declared} bytes, it has ${image.length}; ${made}`,
    );
  const staticMark = word(0x0e);
  const inside = (name: string, address: number, bytes: number, end: number): number => {
    if (address < HEADER || address + bytes > end)
      throw wrong(`its header puts the ${name} at ${address}, outside the memory for it; ${made}`);
    return address;
  };
  inside("static memory", staticMark, 0, image.length);
  const objectTable = inside("objects", word(0x0a), PROPERTY_DEFAULTS * 2, staticMark);
  const objects = objectTable + PROPERTY_DEFAULTS * 2 - OBJECT_SIZE;
  const bytes = new Uint8Array(Math.max(image.length, ADDRESS_SPACE) + 2);
  bytes.set(image);
  describeInterpreter(bytes);
  return {
    file,
    bytes,
    initial: bytes.slice(0, staticMark),
    size: image.length,
    staticMark,
    globals: inside("global variables", word(0x0c), GLOBALS * 2, staticMark) - 32,
    defaults: objectTable - 2,
    objects,
    lastObject: Math.floor((staticMark - objects) / OBJECT_SIZE) - 1,
    dictionary: inside("dictionary", word(0x08), 4, image.length),
    abbreviations: inside("abbreviations", word(0x18), 0, image.length),
    start: inside("first instruction", word(0x06), 1, image.length),
  };
}

/** What the original's interpreter says of itself in the header; `version` prints it. */
function describeInterpreter(bytes: Uint8Array): void {
  const columns = 128;
  const rows = 24;
  bytes[0x1e] = 1; // interpreter number
  bytes[0x1f] = "F".charCodeAt(0); // interpreter version
  bytes[0x20] = rows;
  bytes[0x21] = columns;
  bytes[0x23] = columns; // in units
  bytes[0x25] = rows;
  bytes[0x26] = 1; // font height
  bytes[0x27] = 1; // font width
  bytes[0x32] = 1; // standard 1.0
  bytes[0x33] = 0;
}

/** The error for something that no correct story does: it breaks the episode, and says where. */
export function storyFault(story: Story, address: number, problem: string): EnvError {
  return new EnvError(
    `${story.file}: at address 0x${address.toString(16)}: ${problem}; the story file is damaged, or not made by TextWorld`,
  );
}
