import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import { type Env, EnvError } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { parseProduct, priceTag, searchText } from "./catalogue.js";
import { indexPath, openOfficialCatalogue } from "./official-catalogue.js";
import { webshop } from "./webshop.js";

const root = mkdtempSync(join(tmpdir(), "pawl-webshop-"));
afterAll(() => rmSync(root, { recursive: true }));

const lamp = {
  asin: "A1",
  name: "Oak Lamp",
  full_description: "A lamp of oak.",
  small_description: ["Warm light", "Oak"],
  pricing: "$20.00 - $1,030.50",
  customization_options: { Size: [{ value: " Big/Tall " }, { value: "S" }], Color: null },
  category: "garden",
  query: " Lamps ",
  product_category: "Home › Lamps",
  images: [],
};
const hat = {
  asin: "A2",
  name: "Red hat [ünï]",
  full_description: "",
  small_description: "For heads",
  pricing: "",
  customization_options: "",
  category: "fashion",
  query: "hats",
  product_category: "Clothing › Hats",
};

const wishes = {
  A1: {
    attributes: ["oak wood"],
    instruction: "Find me lamps with oak wood",
    instruction_attributes: ["oak wood"],
  },
  A2: { attributes: [] },
};
const humanWishes = {
  A2: [
    {
      instruction: ".a hat please.",
      instruction_attributes: ["red"],
      instruction_options: ["blue"],
    },
    { instruction: "nothing asked", instruction_attributes: [], instruction_options: [] },
  ],
};

let folders = 0;
function folder(products: string, name = "items_shuffle_1000.json"): string {
  const path = join(root, `data${folders++}`);
  mkdirSync(path);
  writeFileSync(join(path, name), products);
  writeFileSync(join(path, "items_ins_v2_1000.json"), JSON.stringify(wishes));
  writeFileSync(join(path, "items_human_ins.json"), JSON.stringify(humanWishes));
  return path;
}

const both = JSON.stringify([lamp, hat, { ...lamp, name: "again" }, { ...hat, asin: "nan" }]);

describe("products of the official files", () => {
  it("are read as the original reads them", () => {
    const product = parseProduct(lamp, "here")!;
    expect(product.options).toEqual([{ name: "size", values: ["big | tall", "s"] }]);
    expect(product.prices).toEqual([20, 1030.5]);
    expect(priceTag(product)).toBe("$20.0 to $1030.5");
    expect(product.query).toBe("lamps");
    expect(searchText(product)).toBe("oak lamp a lamp of oak. warm light size: big | tall, s");
    const other = parseProduct(hat, "here")!;
    expect(priceTag(other)).toBe("$100.0");
    expect(other.bullets).toEqual(["For heads"]);
    expect(searchText(other)).toBe("red hat [ünï]  for heads ");
  });

  it("never break the shop, whatever their fields hold", () => {
    const strange = fc.record(
      {
        asin: fc.constant("X1"),
        name: fc.jsonValue(),
        pricing: fc.oneof(fc.jsonValue(), fc.constantFrom("$", "$$1", "free", "$1.2.3")),
        customization_options: fc.jsonValue(),
        small_description: fc.jsonValue(),
        query: fc.jsonValue(),
      },
      { requiredKeys: ["asin"] },
    );
    fc.assert(
      fc.property(strange, (record) => {
        const product = parseProduct(record, "here")!;
        expect(product.prices.every(Number.isFinite)).toBe(true);
        expect(priceTag(product)).toMatch(/^\$/);
        expect(typeof searchText(product)).toBe("string");
      }),
    );
  });
});

describe("an official catalogue", () => {
  it("opens from an array, leaving out what the original leaves out", () => {
    const catalogue = openOfficialCatalogue({ data: folder(both), wishes: "synthetic" });
    expect(catalogue.count).toBe(2);
    expect(catalogue.product(0).title).toBe("Oak Lamp");
    expect(catalogue.search("oak lamps").map((number) => catalogue.product(number).asin)).toEqual([
      "A1",
    ]);
    expect(catalogue.attributes(0)).toEqual(["oak wood"]);
    expect(catalogue.wishes(0)).toEqual([
      { text: "Find me lamps with oak wood", attributes: ["oak wood"] },
    ]);
    expect(catalogue.wishes(1)).toEqual([]);
    expect([catalogue.inCategory("fashion"), catalogue.withQuery("lamps")]).toEqual([[1], [0]]);
  });

  it("takes goals that people wrote, except those that ask for no attribute", () => {
    const catalogue = openOfficialCatalogue({ data: folder(both), wishes: "human" });
    expect(catalogue.wishes(1)).toEqual([
      { text: "a hat please", attributes: ["red"], options: ["blue"] },
    ]);
  });

  it("keeps the index of a large one on disk, and rebuilds it when the file changes", () => {
    const data = folder(both);
    const cache = join(root, "cache");
    const options = { data, wishes: "synthetic", cache, keepIndexFrom: 0 } as const;
    const built = openOfficialCatalogue(options);
    const kept = indexPath(join(data, "items_shuffle_1000.json"), { cache });
    expect(existsSync(kept)).toBe(true);
    const loaded = openOfficialCatalogue(options);
    expect(loaded.search("lamp hat")).toEqual(built.search("lamp hat"));
    expect([loaded.product(1), loaded.prices.high[0]]).toEqual([built.product(1), 1030.5]);
    expect([loaded.category(1), loaded.withQuery("hats")]).toEqual(["fashion", [1]]);
    const before = readFileSync(kept);
    writeFileSync(kept, before.subarray(0, before.length - 3));
    expect(openOfficialCatalogue(options).search("lamp hat")).toEqual(built.search("lamp hat"));
    expect(readFileSync(kept).equals(before)).toBe(true);
    writeFileSync(join(data, "items_shuffle_1000.json"), JSON.stringify([hat]));
    expect(openOfficialCatalogue(options).count).toBe(1);
  });

  it("fails before the work if the index cannot be stored", () => {
    const file = join(root, "a-file");
    writeFileSync(file, "");
    const data = folder(both);
    const open = () =>
      openOfficialCatalogue({ data, wishes: "synthetic", cache: file, keepIndexFrom: 0 });
    expect(open).toThrow(/cannot be stored in .*a-file.*Set the option cache/);
  });

  it("uses only the first products if asked to", () => {
    const data = folder(both);
    expect(openOfficialCatalogue({ data, wishes: "synthetic", products: 1 }).count).toBe(1);
  });

  it("reads Python's NaN", () => {
    const data = folder(both.replace('"images":[]', '"images":[NaN, -Infinity, "NaN"]'));
    expect(openOfficialCatalogue({ data, wishes: "synthetic" }).count).toBe(2);
  });

  it.each([
    ["cut off", both.slice(0, -40), /ends in the middle of record 4: the file was cut off/],
    ["no array", JSON.stringify(lamp), /should hold one JSON array/],
    ["no JSON", "<html></html>", /should hold one JSON array/],
    ["empty", "", /cut off/],
    ["without products", "[]", /contains no products/],
    [
      "a damaged product",
      both.replace('"asin":"A2"', '"asin":A2'),
      /product 2 at byte \d+ is damaged/,
    ],
    ["without an asin", both.replace('"asin":"A2",', ""), /product 2: a product needs an "asin"/],
  ])("says what is wrong with a file that is %s", (_, content, message) => {
    const open = () => openOfficialCatalogue({ data: folder(content), wishes: "synthetic" });
    expect(open).toThrow(EnvError);
    expect(open).toThrow(message);
  });

  it("names the damaged line of a file of lines", () => {
    const lines = [JSON.stringify({ id: "A1", product: lamp }), "{oops", ""].join("\n");
    const data = folder(lines, "products-1000.jsonl");
    const open = () =>
      openOfficialCatalogue({ data: join(data, "products-1000.jsonl"), wishes: "synthetic" });
    expect(open).toThrow(/products-1000\.jsonl: product 2 at byte \d+ is damaged/);
  });

  it("either opens or says why, wherever the file is cut or changed", () => {
    fc.assert(
      fc.property(fc.nat(both.length), fc.string({ maxLength: 3 }), fc.nat(3), (at, put, taken) => {
        const content = both.slice(0, at) + put + both.slice(at + taken);
        try {
          const data = folder(content);
          expect(openOfficialCatalogue({ data, wishes: "synthetic" }).count).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(EnvError);
        }
      }),
      { numRuns: dose(60) },
    );
  });

  it("says which files are missing", () => {
    const open = (data: string) => () => openOfficialCatalogue({ data, wishes: "synthetic" });
    expect(open(join(root, "nowhere"))).toThrow(/There is no .*nowhere.*WEBSHOP_DATA/);
    const empty = join(root, "empty");
    mkdirSync(empty);
    expect(open(empty)).toThrow(/has none of items_shuffle\.json/);
    writeFileSync(join(empty, "items_shuffle.json"), both);
    expect(open(empty)).toThrow(/items_ins_v2\.json is missing/);
  });
});

describe("webshop with official files", () => {
  const open = (options: Record<string, unknown>) =>
    webshop.open(webshop.options.parse({ data: folder(both), ...options }));

  it("has an expert who may fail, lists no queries, and scores with the original's colours if available", () => {
    const environment = open({});
    expect(environment.expertMayFail).toBe(true);
    const env = environment.create() as Env;
    env.reset(environment.tasks("test")[0]!);
    expect(env.admissibleActions!()).toEqual(["search[<your query>]"]);
    const data = folder(both);
    writeFileSync(join(data, "normalize.py"), "COLOR_SET = ['teal',\n 'ash']\nOTHER = ['x']\n");
    expect(webshop.describe!(webshop.options.parse({ data })).join("\n")).toContain(
      "from normalize.py",
    );
    writeFileSync(join(data, "normalize.py"), "nothing here");
    expect(() => webshop.open(webshop.options.parse({ data }))).toThrow(/no list COLOR_SET/);
  });

  it("says so if there are no goals of the requested kind", () => {
    const data = folder(both);
    rmSync(join(data, "items_human_ins.json"));
    const human = () => webshop.open(webshop.options.parse({ data, goals: "human" }));
    expect(human).toThrow(/no goals of the kind human.*items_human_ins\.json/);
    const madeUp = () => webshop.open(webshop.options.parse({ data: "made-up", goals: "human" }));
    expect(madeUp).toThrow(/goals that people wrote come with the official files/);
  });

  it("refuses what only one of the catalogues could use", () => {
    const data = folder(both);
    const plain = () => webshop.open(webshop.options.parse({ data, wording: "plain" }));
    expect(plain).toThrow(/wording is about the made-up catalogue/);
    const kept = () => webshop.open(webshop.options.parse({ data: "made-up", cache: data }));
    expect(kept).toThrow(/cache is for the index of the official products/);
  });

  it("describes what is there and what is missing", () => {
    const tell = (data: string) => webshop.describe!(webshop.options.parse({ data })).join("\n");
    expect(tell(folder(both))).toMatch(
      /products from .*items_shuffle_1000\.json.*goals: synthetic/,
    );
    expect(tell(join(root, "nowhere"))).toMatch(/There is no [\s\S]*WEBSHOP_DATA/);
    expect(tell("made-up")).toMatch(/made-up catalogue of 1000 products/);
  });
});
