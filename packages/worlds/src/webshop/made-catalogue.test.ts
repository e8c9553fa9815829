import { describe, expect, it } from "vitest";
import { searchText } from "./catalogue.js";
import type { Goal } from "./goals.js";
import { makeProduct, openMadeCatalogue, productKinds, shopColours } from "./made-catalogue.js";
import { colours, scorePurchase } from "./score.js";

const anyGoal: Goal = {
  product: 0,
  asin: "",
  category: "",
  text: "",
  attributes: [],
  options: [],
  priceLimit: 1,
};

describe("the made-up catalogue", () => {
  it("is the same for the same seed, whatever its size, and different for another seed", () => {
    const small = openMadeCatalogue(20, 5);
    const large = openMadeCatalogue(40, 5);
    for (let number = 0; number < 20; number++) {
      expect(small.product(number)).toEqual(large.product(number));
      expect(small.wishes(number)).toEqual(large.wishes(number));
    }
    expect(makeProduct(6, 0)).not.toEqual(makeProduct(5, 0));
  });

  it("has every kind of product, in its own department, with prices in range", () => {
    expect(productKinds).toHaveLength(36);
    expect(new Set(productKinds.map((kind) => kind.name)).size).toBe(36);
    const seen = new Set<string>();
    for (let number = 0; number < 1000; number++) {
      const { product, kind, traits } = makeProduct(1, number);
      seen.add(kind.name);
      expect(product.asin).toMatch(/^M[0-9A-Z]{9}$/);
      expect(product.prices[0]).toBeGreaterThanOrEqual(kind.prices[0]);
      expect(product.prices[0]).toBeLessThanOrEqual(kind.prices[1]);
      expect(traits.every((trait) => kind.traits.includes(trait))).toBe(true);
      expect(product.options.map((group) => group.name)).toEqual(["color", kind.choice.name]);
      expect(product.options[0]!.values.every((value) => shopColours.includes(value))).toBe(true);
      expect(product.options[1]!.values.length).toBeGreaterThan(1);
    }
    expect(seen.size).toBe(36);
  });

  it("in plain words shows in a title all that decides, and sells a kind with the same options", () => {
    const options = new Map<string, unknown>();
    for (let number = 0; number < 300; number++) {
      const { product, kind, traits } = makeProduct(1, number, "plain");
      expect(product.asin).toBe(`M${number}`);
      const words = product.title.toLowerCase().split(/,? /);
      expect(words).toEqual([...traits, kind.name].join(" ").split(" "));
      expect(product.prices).toHaveLength(1);
      expect(options.get(kind.name) ?? product.options).toEqual(product.options);
      options.set(kind.name, product.options);
    }
    expect(options.size).toBe(36);
  });

  it("has options that the score distinguishes", () => {
    const { product } = makeProduct(1, 0);
    const choices = [
      ...productKinds.map((kind) => kind.choice),
      { name: "color", values: shopColours },
    ];
    for (const { name, values } of choices) {
      for (const wanted of values) {
        const hits = values.filter((value) => {
          const goal = { ...anyGoal, options: [[name, wanted] as const] };
          const purchase = { product, attributes: [], price: 1, options: [value] };
          return scorePurchase(goal, product, purchase, colours).optionHits === 1;
        });
        expect([name, wanted, hits]).toEqual([name, wanted, [wanted]]);
      }
    }
  });

  it("asks in its wishes for attributes that the product has", () => {
    const catalogue = openMadeCatalogue(200, 9);
    for (let number = 0; number < catalogue.count; number++) {
      const product = catalogue.product(number);
      const [wish] = catalogue.wishes(number);
      expect(wish!.attributes.length).toBeGreaterThan(0);
      for (const attribute of wish!.attributes) {
        expect(wish!.text).toContain(attribute);
        expect(product.title.toLowerCase()).toContain(attribute);
      }
      expect(wish!.text).toContain(product.query);
      expect(searchText(product)).toContain(product.query);
    }
  });
});
