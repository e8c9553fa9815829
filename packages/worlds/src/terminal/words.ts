/** The words that made-up tasks name files and fill lines with; none is part of another. */
const list = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Names of files and folders. */
export const NAMES = list(`
  anchor basket bridge candle castle cellar coffee copper corner cotton dragon engine fabric falcon
  feather forest garden ginger harbor hammer island jacket kettle ladder lantern marble meadow
  mirror museum needle orchard oyster paddle parcel pepper pillow planet pocket rabbit saddle
`);

/** Words that lines begin with, and that are put into them. */
export const WORDS = list(`
  acorn badge beech bison brick cabin camel cedar chalk cider clove coral crane daisy delta dough
  ember fjord flute glove grape hazel heron honey ivory jelly koala lemon lilac linen lotus maple
  mango melon moose olive onion opera otter panda peach pearl plaza poppy quail raven robin satin
`);

/** Words that several lines share. */
export const TAGS = list("blue fresh green heavy large quiet");
