/**
 * WebAssembly with vector instructions, assembled when it is needed: loops over four floats at a time
 * that compute in one pass what a graph computes in one pass per operator.
 *
 * Only what such loops use is here. An expression is its instructions, operands first.
 */

/** Instructions that leave one vector of four floats. */
export type Vector = readonly number[];

/** What a loop computes: the arrays it writes, from its arrays and numbers. */
export interface VectorLoop<Array extends string, Scalar extends string> {
  readonly arrays: readonly Array[];
  readonly scalars: readonly Scalar[];
  /**
   * The new content of some arrays at one place, in the order in which they are written; `later`
   * holds a result that is used several times.
   */
  body(
    array: (name: Array) => Vector,
    scalar: (name: Scalar) => Vector,
    later: (value: Vector) => Vector,
  ): readonly (readonly [Array, Vector])[];
}

/** Runs a loop over arrays of equal length; those that it writes are changed in place. */
export type VectorFunction<Array extends string, Scalar extends string> = (
  arrays: Readonly<Record<Array, Float32Array>>,
  scalars: Readonly<Record<Scalar, number>>,
) => void;

/** Numbers copied in at a time, per array: so few that all arrays stay in the innermost caches. */
const CHUNK = 2048;
const CHUNK_BYTES = CHUNK * Float32Array.BYTES_PER_ELEMENT;
const PAGE_BYTES = 65_536;
const LANES = 4;

const TYPES = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;
const SECTIONS = { type: 1, function: 3, memory: 5, export: 7, code: 10 } as const;

/** Opcodes by their names in the standard; those of vectors follow a prefix. */
const [LOOP, END, BR_IF] = [0x03, 0x0b, 0x0d] as const;
const [LOCAL_GET, LOCAL_SET, LOCAL_TEE] = [0x20, 0x21, 0x22] as const;
const [I32_CONST, I32_LT_U, I32_ADD] = [0x41, 0x49, 0x6a] as const;
const [VECTOR_PREFIX, V128_LOAD, V128_STORE, F32X4_SPLAT] = [0xfd, 0x00, 0x0b, 0x13] as const;
const [F32X4_SQRT, F32X4_ADD, F32X4_SUB, F32X4_MUL, F32X4_DIV] = [
  0xe3, 0xe4, 0xe5, 0xe6, 0xe7,
] as const;
/** The type of a block without a result. */
const EMPTY = 0x40;
/** Memory is read and written at multiples of 2⁴ bytes. */
const ALIGNED = 4;

export const add = binary(F32X4_ADD);
export const sub = binary(F32X4_SUB);
export const mul = binary(F32X4_MUL);
export const div = binary(F32X4_DIV);
/** The square root of each float. */
export const sqrt = (x: Vector): Vector => [...x, ...vectorCode(F32X4_SQRT)];

/** Compiles a loop. Its arithmetic is that of single floats, each operation rounded by itself. */
export function compileLoop<Array extends string, Scalar extends string>(
  loop: VectorLoop<Array, Scalar>,
): VectorFunction<Array, Scalar> {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(assemble(loop)));
  const places = loop.arrays.map(
    (_, i) => new Float32Array(exports.memory.buffer, i * CHUNK_BYTES, CHUNK),
  );
  const written = new Set(loopBody(loop).stores.map(([name]) => name));
  return (arrays, scalars) => {
    const numbers = loop.scalars.map((name) => scalars[name]);
    const { length } = arrays[loop.arrays[0]!];
    for (let from = 0; from < length; from += CHUNK) {
      const to = Math.min(length, from + CHUNK);
      loop.arrays.forEach((name, i) => {
        places[i]!.set(arrays[name].subarray(from, to));
      });
      exports.run((to - from) * Float32Array.BYTES_PER_ELEMENT, ...numbers);
      loop.arrays.forEach((name, i) => {
        if (written.has(name)) arrays[name].set(places[i]!.subarray(0, to - from), from);
      });
    }
  };
}

/** Locals of the function: its parameters first, then the place, then vectors. */
function loopBody<Array extends string, Scalar extends string>(loop: VectorLoop<Array, Scalar>) {
  const place = 1 + loop.scalars.length;
  const spread = place + 1;
  let locals = spread + loop.scalars.length;
  const before: number[] = [];
  const array = (name: Array): Vector => [...localGet(place), ...load(loop.arrays.indexOf(name))];
  const scalar = (name: Scalar): Vector => localGet(spread + loop.scalars.indexOf(name));
  const later = (value: Vector): Vector => {
    const local = locals++;
    before.push(...value, ...localSet(local));
    return localGet(local);
  };
  const stores = loop.body(array, scalar, later);
  return { place, spread, vectors: locals - spread, before, stores };
}

/** A module with one memory and the function `run(bytes, ...scalars)`. */
function assemble<Array extends string, Scalar extends string>(
  loop: VectorLoop<Array, Scalar>,
): Uint8Array {
  const { place, spread, vectors, before, stores } = loopBody(loop);
  const code = [
    ...loop.scalars.flatMap((_, i) => [
      ...localGet(1 + i),
      ...vectorCode(F32X4_SPLAT),
      ...localSet(spread + i),
    ]),
    ...[LOOP, EMPTY],
    ...before,
    ...stores.flatMap(([name, value]) => [
      ...localGet(place),
      ...value,
      ...store(loop.arrays.indexOf(name)),
    ]),
    // The next four floats, as long as there are any.
    ...[...localGet(place), I32_CONST, LANES * 4, I32_ADD, LOCAL_TEE, ...leb(place)],
    ...[...localGet(0), I32_LT_U, BR_IF, 0],
    ...[END, END],
  ];
  const body = [
    ...vector([
      [...leb(1), TYPES.i32],
      [...leb(vectors), TYPES.v128],
    ]),
    ...code,
  ];
  const parameters = [TYPES.i32, ...loop.scalars.map(() => TYPES.f32)];
  const pages = Math.ceil((loop.arrays.length * CHUNK_BYTES) / PAGE_BYTES);
  return Uint8Array.from([
    ...[0, ...Buffer.from("asm"), 1, 0, 0, 0],
    ...section(SECTIONS.type, [[0x60, ...leb(parameters.length), ...parameters, 0]]),
    ...section(SECTIONS.function, [[0]]),
    ...section(SECTIONS.memory, [[0, ...leb(pages)]]),
    ...section(SECTIONS.export, [
      [...text("run"), 0, 0],
      [...text("memory"), 2, 0],
    ]),
    ...section(SECTIONS.code, [[...leb(body.length), ...body]]),
  ]);
}

function binary(code: number): (a: Vector, b: Vector) => Vector {
  return (a, b) => [...a, ...b, ...vectorCode(code)];
}

function vectorCode(code: number): readonly number[] {
  return [VECTOR_PREFIX, ...leb(code)];
}

function load(array: number): readonly number[] {
  return [...vectorCode(V128_LOAD), ALIGNED, ...leb(array * CHUNK_BYTES)];
}

function store(array: number): readonly number[] {
  return [...vectorCode(V128_STORE), ALIGNED, ...leb(array * CHUNK_BYTES)];
}

function localGet(local: number): readonly number[] {
  return [LOCAL_GET, ...leb(local)];
}

function localSet(local: number): readonly number[] {
  return [LOCAL_SET, ...leb(local)];
}

function section(id: number, items: readonly (readonly number[])[]): readonly number[] {
  const content = vector(items);
  return [id, ...leb(content.length), ...content];
}

function vector(items: readonly (readonly number[])[]): readonly number[] {
  return [...leb(items.length), ...items.flat()];
}

function text(value: string): readonly number[] {
  return [...leb(value.length), ...Buffer.from(value)];
}

/** A number of variable length, seven bits a byte. */
function leb(value: number): readonly number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)];
}

/** What is used of the global that neither TypeScript's ES2023 nor Node's types declare. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module);
    readonly exports: {
      readonly memory: { readonly buffer: ArrayBuffer };
      run(bytes: number, ...scalars: readonly number[]): void;
    };
  }
}
