/**
 * Llama 3's rope scaling, which llama.cpp stores as one factor per frequency instead of by its
 * settings. The settings are recovered and checked: the factors they give must be those in the file.
 */

/** Llama 3's settings other than the factor are the same in all its models. */
const LOW = 1;
const HIGH = 4;
const ORIGINAL_CONTEXT = 8192;

/** The factor by which each frequency is divided. */
export function llama3Factors(
  factor: number,
  { theta, headSize }: { readonly theta: number; readonly headSize: number },
): readonly number[] {
  return Array.from({ length: headSize / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / headSize);
    if (wavelength < ORIGINAL_CONTEXT / HIGH) return 1;
    if (wavelength > ORIGINAL_CONTEXT / LOW) return factor;
    const smooth = (ORIGINAL_CONTEXT / wavelength - LOW) / (HIGH - LOW);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}

/** The rope scaling of config.json that these factors stand for; undefined if they are not Llama 3's. */
export function llama3Scaling(
  factors: ArrayLike<number>,
  rope: { readonly theta: number; readonly headSize: number },
): Readonly<Record<string, unknown>> | undefined {
  const factor = Math.max(...Array.from(factors));
  const expected = llama3Factors(factor, rope);
  const same =
    factors.length === expected.length &&
    expected.every((one, i) => Math.abs(one / factors[i]! - 1) < 1e-4);
  if (!same) return undefined;
  return {
    rope_type: "llama3",
    factor,
    low_freq_factor: LOW,
    high_freq_factor: HIGH,
    original_max_position_embeddings: ORIGINAL_CONTEXT,
  };
}
