/** Cosine and sine of the rotary embedding for every position and frequency. */
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { type RopeScaling, ropeFrequencies } from "@pawl/models/weights/rope.js";
import { type Feeds, floats } from "./sessions.js";

const computed = new Map<string, { readonly cos: Float32Array; readonly sin: Float32Array }>();

/** The tables as graph inputs, for rows up to the given length. */
export function rotaryTables(config: ModelConfig, length: number): Feeds {
  const { ropeTheta, ropeScaling, slidingWindow } = config;
  const { cos, sin } = tablesFor(config.headSize, length, ropeTheta, ropeScaling);
  if (slidingWindow?.ropeTheta === undefined) return { cos, sin };
  const windowed = tablesFor(config.headSize, length, slidingWindow.ropeTheta, undefined);
  return { cos, sin, windowCos: windowed.cos, windowSin: windowed.sin };
}

function tablesFor(
  headSize: number,
  length: number,
  theta: number,
  scaling: RopeScaling | undefined,
) {
  // Rounded up, so that only a few sizes are ever computed.
  const positions = 2 ** Math.ceil(Math.log2(Math.max(64, length)));
  const key = JSON.stringify([positions, headSize, theta, scaling]);
  const tables = computed.get(key) ?? makeTables(positions, headSize / 2, theta, scaling);
  computed.set(key, tables);
  const shape = [positions, headSize / 2];
  return { cos: floats(tables.cos, shape), sin: floats(tables.sin, shape) };
}

function makeTables(
  positions: number,
  half: number,
  theta: number,
  scaling: RopeScaling | undefined,
) {
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  const frequencies = ropeFrequencies(theta, half, scaling);
  const scale = scaling?.type === "yarn" ? scaling.attentionFactor : 1;
  for (let position = 0; position < positions; position++)
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(position * frequencies[i]!);
      cos[position * half + i] = scale * Math.cos(angle);
      sin[position * half + i] = scale * Math.sin(angle);
    }
  return { cos, sin };
}
