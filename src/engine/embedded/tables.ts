/** Cosine and sine of the rotary embedding for every position and frequency. */
import type { ModelConfig } from "../weights/model-config.js";
import { type Feeds, floats } from "./sessions.js";

const known = new Map<string, { readonly cos: Float32Array; readonly sin: Float32Array }>();

/** The tables as graph inputs, for rows up to the given length. */
export function rotaryTables(config: ModelConfig, length: number): Feeds {
  // Rounded up, so that only a few sizes are ever computed.
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
      // Rounded to single precision as in transformers and PyTorch, so that long contexts agree.
      const frequency = Math.fround(1 / theta ** (i / half));
      const angle = Math.fround(position * frequency);
      cos[position * half + i] = Math.cos(angle);
      sin[position * half + i] = Math.sin(angle);
    }
  return { cos, sin };
}
