/** Word-level similarity of two texts. */

/** Word-level F1: the harmonic mean of precision and recall over words, counted with repetition. */
export function wordF1(predicted: string, real: string): number {
  const said = words(predicted);
  const meant = words(real);
  if (said.length === 0 || meant.length === 0) return said.length === meant.length ? 1 : 0;
  const left = new Map<string, number>();
  for (const word of meant) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of said) {
    const count = left.get(word) ?? 0;
    if (count === 0) continue;
    common++;
    left.set(word, count - 1);
  }
  return (2 * common) / (said.length + meant.length);
}

function words(text: string): readonly string[] {
  return text.split(/\s+/).filter(Boolean);
}
