/** The 95 % interval of a success rate (Wilson 1927), which is also valid at 0 and 1. */
export function successInterval({
  successes,
  episodes,
}: {
  readonly successes: number;
  readonly episodes: number;
}): readonly [low: number, high: number] {
  if (episodes === 0) return [0, 1];
  const z = 1.959964;
  const share = successes / episodes;
  const middle = (share + z ** 2 / (2 * episodes)) / (1 + z ** 2 / episodes);
  const reach =
    (z * Math.sqrt((share * (1 - share)) / episodes + z ** 2 / (4 * episodes ** 2))) /
    (1 + z ** 2 / episodes);
  return [Math.max(0, middle - reach), Math.min(1, middle + reach)];
}
