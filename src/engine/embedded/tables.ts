/** Cosine and sine of every position and frequency of the rotary embedding. */
import type { ModelConfig } from "../weights/model-config.js";
import { type Feeds, floats } from "./sessions.js";

const known = new Map<string, { readonly cos: Float32Array; readonly sin: Float32Array }>();

/** The tables as graph inputs, for rows of at least the given length. */
export function rotaryTables(config: ModelConfig, length: number): Feeds {
  // Rounded up, so that few sizes are ever made.
  const positions = 2 ** Math.ceil(Math.log2(Math.max(64, length)));
  const { headSize, ropeTheta } = config;
  const key = `${positions} ${headSize} ${ropeTheta}`;
  const tables = known.get(key) ?? makeTables(positions, headSize / 2, ropeTheta);
  known.set(key, tables);
  const shape = [positions, headSize / 2];
  return { cos: floats(tables.cos, shape), sin: floats(tables.sin, shape) };
}

function makeTables(positions: number, half: number, theta: number) {
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  for (let position = 0; position < positions; position++)
    for (let i = 0; i < half; i++) {
      // Rounded to single precision as transformers and PyTorch do, so that long contexts agree.
      const frequency = Math.fround(1 / theta ** (i / half));
      const angle = Math.fround(position * frequency);
      cos[position * half + i] = Math.cos(angle);
      sin[position * half + i] = Math.sin(angle);
    }
  return { cos, sin };
}
