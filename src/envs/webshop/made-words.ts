/** The words of the made-up catalogue: kinds of products, what they can be like, and how they are sold. */

/** A kind of product. */
export interface ProductKind {
  readonly name: string;
  readonly department: string;
  /** The path to it in the shop, below the department. */
  readonly shelf: string;
  /** What it is used for, to be read after "for". */
  readonly uses: readonly string[];
  readonly materials: readonly string[];
  /** Adjectives that some of these products have and others have not. */
  readonly traits: readonly string[];
  /** What can be chosen besides the colour. */
  readonly choice: { readonly name: string; readonly values: readonly string[] };
  readonly prices: readonly [number, number];
}

const clothingSizes = {
  name: "size",
  values: ["x-small", "small", "medium", "large", "x-large", "xx-large"],
};
const packs = { name: "pack", values: ["single", "pack of 2", "pack of 4", "pack of 6"] };

interface Department {
  readonly name: string;
  readonly traits: readonly string[];
  readonly materials: readonly string[];
  readonly kinds: readonly (readonly [
    name: string,
    shelf: string,
    uses: string,
    choice: ProductKind["choice"],
    low: number,
    high: number,
  ])[];
}

const departments: readonly Department[] = [
  {
    name: "kitchen",
    traits: [
      "dishwasher safe",
      "heat resistant",
      "easy to clean",
      "space saving",
      "rustproof",
      "stackable",
      "shatterproof",
      "leak free",
      "hand finished",
      "energy saving",
    ],
    materials: ["glass", "bamboo", "cast iron", "ceramic", "silicone", "enamel"],
    kinds: [
      [
        "frying pan",
        "Cookware › Pans",
        "quick suppers, pancakes, induction hobs",
        { name: "diameter", values: ["20 cm", "24 cm", "28 cm", "32 cm"] },
        12,
        80,
      ],
      [
        "tea kettle",
        "Drinks › Kettles",
        "gas stoves, herbal tea, camping trips",
        { name: "capacity", values: ["0.8 l", "1.2 l", "1.7 l"] },
        15,
        90,
      ],
      ["storage jar", "Storage › Jars", "flour, coffee beans, homemade jam", packs, 5, 40],
      [
        "chopping board",
        "Tools › Boards",
        "bread, vegetables, small flats",
        { name: "size", values: ["small", "medium", "large"] },
        8,
        55,
      ],
      [
        "water bottle",
        "Drinks › Bottles",
        "school days, long rides, the gym",
        { name: "capacity", values: ["350 ml", "500 ml", "750 ml", "1 l"] },
        7,
        45,
      ],
      [
        "mixing bowl",
        "Baking › Bowls",
        "cake batter, salads, bread dough",
        { name: "capacity", values: ["1 l", "2 l", "4 l"] },
        6,
        48,
      ],
    ],
  },
  {
    name: "clothing",
    traits: [
      "machine washable",
      "quick drying",
      "breathable",
      "windproof",
      "wrinkle free",
      "slim fitting",
      "loose fitting",
      "double stitched",
      "moisture wicking",
      "tumble dry safe",
    ],
    materials: ["cotton", "merino wool", "linen", "fleece", "corduroy", "jersey"],
    kinds: [
      [
        "rain jacket",
        "Outerwear › Jackets",
        "autumn walks, cycling to work, sailing",
        clothingSizes,
        35,
        190,
      ],
      [
        "knit sweater",
        "Tops › Sweaters",
        "cold offices, winter evenings, layering",
        clothingSizes,
        22,
        130,
      ],
      [
        "hiking trousers",
        "Trousers › Outdoor",
        "mountain paths, light climbing, travel",
        clothingSizes,
        28,
        140,
      ],
      ["running shirt", "Tops › Sport", "morning runs, hot days, races", clothingSizes, 12, 70],
      [
        "bath robe",
        "Nightwear › Robes",
        "saunas, slow Sundays, hotel rooms",
        clothingSizes,
        20,
        110,
      ],
      ["wool socks", "Accessories › Socks", "boots, cold floors, skiing", packs, 6, 38],
    ],
  },
  {
    name: "home",
    traits: [
      "easy to assemble",
      "scratch resistant",
      "foldable",
      "wall mounted",
      "child safe",
      "adjustable",
      "noise reducing",
      "anti slip",
      "stain resistant",
      "dust free",
    ],
    materials: ["oak", "pine", "steel tube", "rattan", "felt", "birch plywood"],
    kinds: [
      [
        "bookshelf",
        "Furniture › Shelves",
        "paperbacks, hallways, a study",
        { name: "height", values: ["80 cm", "120 cm", "160 cm", "200 cm"] },
        30,
        260,
      ],
      [
        "desk lamp",
        "Lighting › Lamps",
        "reading, drawing, late work",
        { name: "plug", values: ["european", "british", "american"] },
        14,
        95,
      ],
      [
        "floor rug",
        "Textiles › Rugs",
        "living rooms, nurseries, cold tiles",
        { name: "size", values: ["60 x 90 cm", "120 x 180 cm", "160 x 230 cm"] },
        18,
        240,
      ],
      [
        "window curtain",
        "Textiles › Curtains",
        "bedrooms, tall windows, drafty houses",
        { name: "length", values: ["140 cm", "180 cm", "240 cm"] },
        12,
        120,
      ],
      [
        "side table",
        "Furniture › Tables",
        "sofas, plants, morning coffee",
        { name: "shape", values: ["round", "square", "oval"] },
        24,
        180,
      ],
      [
        "coat rack",
        "Furniture › Racks",
        "hallways, wet coats, guests",
        { name: "hooks", values: ["4 hooks", "6 hooks", "8 hooks"] },
        10,
        85,
      ],
    ],
  },
  {
    name: "outdoors",
    traits: [
      "waterproof",
      "lightweight",
      "tear resistant",
      "packable",
      "reflective",
      "insulated",
      "freestanding",
      "ultraviolet resistant",
      "self inflating",
      "frost resistant",
    ],
    materials: ["ripstop nylon", "canvas", "aluminium", "recycled polyester", "waxed fabric"],
    kinds: [
      [
        "hiking backpack",
        "Bags › Backpacks",
        "weekend tours, hut trips, city breaks",
        { name: "volume", values: ["20 l", "30 l", "45 l", "60 l"] },
        30,
        220,
      ],
      [
        "dome tent",
        "Camping › Tents",
        "festivals, bike tours, windy shores",
        { name: "sleeps", values: ["1 person", "2 people", "4 people"] },
        55,
        420,
      ],
      [
        "sleeping bag",
        "Camping › Sleeping",
        "summer nights, cold huts, sleepovers",
        { name: "length", values: ["170 cm", "185 cm", "200 cm"] },
        28,
        260,
      ],
      [
        "camping chair",
        "Camping › Furniture",
        "fishing, campfires, football games",
        { name: "load", values: ["90 kg", "120 kg", "150 kg"] },
        16,
        110,
      ],
      [
        "picnic blanket",
        "Leisure › Blankets",
        "parks, beaches, open air concerts",
        { name: "size", values: ["100 x 150 cm", "150 x 200 cm", "200 x 200 cm"] },
        12,
        65,
      ],
      [
        "trekking poles",
        "Hiking › Poles",
        "steep descents, snow shoes, river crossings",
        { name: "length", values: ["110 cm", "120 cm", "130 cm"] },
        18,
        140,
      ],
    ],
  },
  {
    name: "electronics",
    traits: [
      "wireless",
      "fast charging",
      "splash proof",
      "voice controlled",
      "shockproof",
      "rechargeable",
      "glare free",
      "energy efficient",
      "dimmable",
      "plug and play",
    ],
    materials: ["brushed metal", "matte plastic", "woven cable", "tempered glass"],
    kinds: [
      [
        "bluetooth speaker",
        "Audio › Speakers",
        "kitchens, garden parties, travel",
        { name: "power", values: ["5 w", "10 w", "20 w"] },
        18,
        210,
      ],
      [
        "phone charger",
        "Power › Chargers",
        "bedside tables, cars, long flights",
        { name: "plug", values: ["european", "british", "american"] },
        9,
        60,
      ],
      [
        "computer keyboard",
        "Computers › Keyboards",
        "typing, gaming, small desks",
        { name: "layout", values: ["german", "british", "french", "spanish"] },
        20,
        170,
      ],
      [
        "photo printer",
        "Printing › Printers",
        "family albums, postcards, workshops",
        { name: "paper", values: ["a4", "a5", "a6"] },
        60,
        380,
      ],
      [
        "headphones",
        "Audio › Headphones",
        "trains, open offices, studio work",
        { name: "fit", values: ["over ear", "on ear", "in ear"] },
        15,
        320,
      ],
      [
        "bike light",
        "Lighting › Bike",
        "dark roads, tunnels, winter commutes",
        { name: "mount", values: ["handlebar", "seat post", "helmet"] },
        10,
        75,
      ],
    ],
  },
  {
    name: "care",
    traits: [
      "fragrance free",
      "vegan",
      "cruelty free",
      "alcohol free",
      "travel sized",
      "hypoallergenic",
      "fast absorbing",
      "long lasting",
      "refillable",
      "paraben free",
    ],
    materials: ["shea butter", "aloe", "argan oil", "oat milk", "sea salt", "chamomile"],
    kinds: [
      [
        "hand cream",
        "Skin › Hands",
        "dry hands, gardeners, cold weather",
        { name: "volume", values: ["30 ml", "75 ml", "150 ml"] },
        4,
        32,
      ],
      [
        "shampoo bar",
        "Hair › Shampoo",
        "curly hair, fine hair, hand luggage",
        { name: "scent", values: ["unscented", "citrus", "cedar"] },
        5,
        24,
      ],
      [
        "face serum",
        "Skin › Face",
        "tired skin, evenings, dry air",
        { name: "volume", values: ["15 ml", "30 ml", "50 ml"] },
        9,
        75,
      ],
      ["lip balm", "Skin › Lips", "ski days, windy coasts, pockets", packs, 3, 18],
      [
        "bath salts",
        "Bath › Salts",
        "sore muscles, long evenings, gifts",
        { name: "weight", values: ["200 g", "500 g", "1 kg"] },
        6,
        36,
      ],
      [
        "tooth brush",
        "Oral › Brushes",
        "sensitive gums, children, travel",
        { name: "bristles", values: ["soft", "medium", "firm"] },
        2,
        26,
      ],
    ],
  },
];

/** All kinds of products. */
export const productKinds: readonly ProductKind[] = departments.flatMap((department) =>
  department.kinds.map(([name, shelf, uses, choice, low, high]) => ({
    name,
    department: department.name,
    shelf,
    uses: uses.split(", "),
    materials: department.materials,
    traits: department.traits,
    choice,
    prices: [low, high] as const,
  })),
);

/** The colours products come in. */
export const shopColours: readonly string[] =
  "black white grey navy teal olive maroon mustard turquoise lilac coral beige brown pink".split(
    " ",
  );

/** Syllables that the names of makers and series are put together from. */
export const syllables: readonly string[] =
  "al ber cor dan el fen gar hol in jor kel lum mor nor ost pel quin ros sel tam ur vel wen yor zan bri fjo gra ska tri".split(
    " ",
  );
