/**
 * How much tests do: everything with `PAWL_DOSE=whole`, as at night (`.ci/nightly`), and otherwise less of what takes
 * long and rarely breaks.
 */

/** Whether tests do everything: for what is left out entirely in `npm test`. */
export const isWhole = process.env.PAWL_DOSE === "whole";

/** `whole` of something at night, and `usual` in `npm test`; by default a fifth. */
export const dose = (whole: number, usual: number = Math.ceil(whole / 5)): number =>
  isWhole ? whole : usual;

/** All of a list at night, and in `npm test` the first and every `every`-th after it. */
export const some = <Item>(list: readonly Item[], every = 3): readonly Item[] =>
  list.filter((_, at) => isWhole || at % every === 0);
