/**
 * The catalogue of the original environment, read from its official files.
 *
 * Products stay in their file and are read one by one. The search index and what is needed of every
 * product are built in one pass and, for a large catalogue, kept on disk.
 */
import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { type Bm25Index, createSearcher, type Searcher } from "../retrieval/bm25.js";
import { createIndexBuilder } from "../retrieval/bm25-build.js";
import type { ByteFile } from "../retrieval/byte-file.js";
import {
  asBytes,
  type Blocks,
  checkWritable,
  loadIndex,
  saveIndex,
} from "../retrieval/index-file.js";
import {
  type Catalogue,
  createCatalogue,
  createWordColumn,
  type Product,
  parseProduct,
  searchText,
  type Wish,
  type WordColumn,
} from "./catalogue.js";
import { eachRecord, openRecords, parseRecord, type RecordForm } from "./record-file.js";

/** From this size on the index is kept on disk: below, building it takes only a few seconds. */
const KEEP_INDEX_FROM = 2 ** 26;
/** Change it whenever the meaning of the blocks next to the index changes. */
const LAYOUT = "webshop-1";

/** The files that may hold the products, best first. */
const productFiles: readonly string[] = [
  "items_shuffle.json",
  "items_shuffle_1000.json",
  "products-1000.jsonl.gz",
];

/** Which wishes to use: one for every combination of options, or those that people wrote. */
export type WishKind = "synthetic" | "human";

/** How to open an official catalogue. */
export interface OfficialOptions {
  /** The folder with the files, or the file with the products. */
  readonly data: string;
  readonly wishes: WishKind;
  /** Use only the first this many products. */
  readonly products?: number | undefined;
  /** Where large indexes are kept. */
  readonly cache?: string | undefined;
  /** Keep the index of a catalogue from this many bytes on. */
  readonly keepIndexFrom?: number;
}

interface Offsets {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

interface Columns extends Offsets {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly categories: WordColumn;
  readonly queries: WordColumn;
}

/** Opens the official catalogue in a folder. */
export function openOfficialCatalogue(options: OfficialOptions): Catalogue {
  const path = findProductFile(options.data);
  const source = openRecords(path);
  const { searcher, columns } = loadOrBuild(source, options);
  const { ids } = searcher.index;
  const numbers = new Map(ids.map((asin, number) => [asin, number]));
  const own = findAttributes(path, numbers, ids.length);
  const record = (number: number): unknown =>
    productRecord(
      parseRecord(source, columns.starts[number]!, columns.ends[number]!, `product ${number + 1}`),
    );
  // Prepared catalogues have what people wrote in the product itself.
  const human = (): EntryReader =>
    findHumanWishes(path, numbers, ids.length) ??
    ((number) => fieldOf(record(number), "instructions"));
  return createCatalogue({
    searcher,
    prices: columns,
    categories: columns.categories,
    queries: columns.queries,
    product: (number) => parseProduct(record(number), whereIs(source, number)) as Product,
    attributes: (number) => stringsOf(own(number), "attributes") ?? ["DUMMY_ATTR"],
    wishes:
      options.wishes === "human" ? wishesBy(human(), humanWishes) : wishesBy(own, syntheticWishes),
  });
}

/** The file with the products; an `EnvError` says what was looked for. */
export function findProductFile(data: string): string {
  if (!existsSync(data))
    throw new EnvError(
      `There is no ${data}. Set the option data (or WEBSHOP_DATA) to the folder with the official files, or leave it out for a made-up catalogue.`,
    );
  if (!statSync(data).isDirectory()) return data;
  const found = productFiles.map((name) => join(data, name)).find((path) => existsSync(path));
  if (found === undefined)
    throw new EnvError(
      `${data} has none of ${productFiles.join(", ")}. Download the products from the WebShop repository (its setup.sh has the addresses).`,
    );
  return found;
}

function loadOrBuild(
  source: ByteFile,
  options: OfficialOptions,
): { readonly searcher: Searcher; readonly columns: Columns } {
  const kept = source.size >= (options.keepIndexFrom ?? KEEP_INDEX_FROM);
  const path = indexPath(source.path, options);
  const { mtimeMs } = statSync(source.path);
  const key = [LAYOUT, source.size, mtimeMs, options.products ?? "all"].join(" ");
  if (kept) {
    const loaded = loadIndex(path, key);
    if ("index" in loaded)
      return { searcher: createSearcher(loaded.index), columns: fromBlocks(loaded.extra) };
  }
  // Before the minutes of work, not after.
  if (kept) checkWritable(dirname(path));
  const { index, columns } = build(source, options.products ?? Number.POSITIVE_INFINITY);
  if (kept) saveIndex(path, key, index, toBlocks(columns));
  return { searcher: createSearcher(index), columns };
}

/** Where the index of a catalogue is kept. */
export function indexPath(
  productFile: string,
  options: Pick<OfficialOptions, "cache" | "products">,
): string {
  const cache =
    options.cache ?? join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
  const part = options.products === undefined ? "" : `-${options.products}`;
  return join(cache, `webshop-${basename(productFile).replace(/\..*$/, "")}${part}.index`);
}

function build(
  source: ByteFile,
  limit: number,
): { readonly index: Bm25Index; readonly columns: Columns } {
  const builder = createIndexBuilder();
  const starts: number[] = [];
  const ends: number[] = [];
  const low: number[] = [];
  const high: number[] = [];
  const categories = createWordColumn();
  const queries = createWordColumn();
  const seen = new Set<string>();
  let records = 0;
  const form: RecordForm = /\.jsonl(\.gz)?$/.test(source.path) ? "lines" : "array";
  eachRecord(source, form, (start, end) => {
    // The limit counts records, because the original cuts the list before it leaves any out.
    if (records++ >= limit) return;
    const record = productRecord(parseRecord(source, start, end, `product ${records}`));
    const product = parseProduct(record, whereIs(source, records - 1));
    if (product === undefined || seen.has(product.asin)) return;
    seen.add(product.asin);
    builder.add(product.asin, searchText(product));
    starts.push(start);
    ends.push(end);
    low.push(product.prices[0]);
    high.push(product.prices[1] ?? Number.NaN);
    categories.add(product.category);
    queries.add(product.query);
  });
  if (seen.size === 0) throw new EnvError(`${source.path} contains no products.`);
  return {
    index: builder.finish(),
    columns: {
      starts: Float64Array.from(starts),
      ends: Float64Array.from(ends),
      low: Float64Array.from(low),
      high: Float64Array.from(high),
      categories: categories.finish(),
      queries: queries.finish(),
    },
  };
}

function toBlocks(columns: Columns): Blocks {
  const json = (words: readonly string[]): Uint8Array => Buffer.from(JSON.stringify(words));
  return {
    recordStarts: asBytes(columns.starts),
    recordEnds: asBytes(columns.ends),
    low: asBytes(columns.low),
    high: asBytes(columns.high),
    categories: json(columns.categories.words),
    categoryCodes: asBytes(columns.categories.codes),
    queries: json(columns.queries.words),
    queryCodes: asBytes(columns.queries.codes),
  };
}

function fromBlocks(blocks: Blocks): Columns {
  const floats = (name: string): Float64Array => new Float64Array(blocks[name]!.buffer);
  const column = (words: string, codes: string): WordColumn => ({
    words: JSON.parse(Buffer.from(blocks[words]!).toString("utf8")) as string[],
    codes: new Uint32Array(blocks[codes]!.buffer),
  });
  return {
    starts: floats("recordStarts"),
    ends: floats("recordEnds"),
    low: floats("low"),
    high: floats("high"),
    categories: column("categories", "categoryCodes"),
    queries: column("queries", "queryCodes"),
  };
}

function whereIs(source: ByteFile, number: number): string {
  return `${source.path}, product ${number + 1}`;
}

/** Prepared catalogues wrap the official record: `{id, contents, product}`. */
function productRecord(record: unknown): unknown {
  return fieldOf(record, "product") ?? record;
}

function fieldOf(record: unknown, name: string): unknown {
  if (typeof record !== "object" || record === null) return undefined;
  return (record as Readonly<Record<string, unknown>>)[name];
}

function stringsOf(record: unknown, name: string): readonly string[] | undefined {
  const list = fieldOf(record, name);
  return Array.isArray(list) ? list.filter((one) => typeof one === "string") : undefined;
}

/** Reads one product's entry of a file whose keys are asins. */
type EntryReader = (number: number) => unknown;

function findAttributes(
  productFile: string,
  numbers: ReadonlyMap<string, number>,
  count: number,
): EntryReader {
  const name =
    basename(productFile) === "items_shuffle.json" ? "items_ins_v2.json" : "items_ins_v2_1000.json";
  const path = join(dirname(productFile), name);
  if (!existsSync(path))
    throw new EnvError(
      `${path} is missing: it holds the attributes and instructions for ${basename(productFile)}. Download it from the WebShop repository (its setup.sh has the addresses).`,
    );
  return entriesOf(path, numbers, count);
}

function findHumanWishes(
  productFile: string,
  numbers: ReadonlyMap<string, number>,
  count: number,
): EntryReader | undefined {
  const path = join(dirname(productFile), "items_human_ins.json");
  return existsSync(path) ? entriesOf(path, numbers, count) : undefined;
}

function entriesOf(path: string, numbers: ReadonlyMap<string, number>, count: number): EntryReader {
  const source = openRecords(path);
  const starts = new Float64Array(count);
  const ends = new Float64Array(count);
  eachRecord(source, "object", (start, end, keyStart, keyEnd) => {
    const key = String(parseRecord(source, keyStart, keyEnd, "the name of an entry"));
    const number = numbers.get(key);
    if (number === undefined) return;
    starts[number] = start;
    ends[number] = end;
  });
  return (number) =>
    ends[number] === 0
      ? undefined
      : parseRecord(source, starts[number]!, ends[number]!, `the entry of product ${number + 1}`);
}

function wishesBy(
  entry: EntryReader,
  read: (entry: unknown) => readonly Wish[],
): (number: number) => readonly Wish[] {
  return (number) => read(entry(number));
}

function syntheticWishes(entry: unknown): readonly Wish[] {
  const text = fieldOf(entry, "instruction");
  if (typeof text !== "string") return [];
  return [{ text, attributes: stringsOf(entry, "instruction_attributes") ?? [] }];
}

function humanWishes(entries: unknown): readonly Wish[] {
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry): readonly Wish[] => {
    const text = fieldOf(entry, "instruction");
    const attributes = stringsOf(entry, "instruction_attributes") ?? [];
    if (typeof text !== "string" || attributes.length === 0) return [];
    const bare = text.replace(/^\.+|\.+$/g, "");
    return [{ text: bare, attributes, options: stringsOf(entry, "instruction_options") ?? [] }];
  });
}
