/**
 * One world model of several environments, for `pawl wm train --config recipes/mix.ts`, as in "From
 * Word to World" where mixed and single environments are compared. These five need no downloads.
 * Make their data first, the same for each:
 *
 *     for env in household desk webshop search textworld; do
 *       pawl wm data --env $env --mix expert:600,epsilon=0.3:300,random:100 --out data/$env
 *     done
 *
 * `--data` replaces the list, for example to add `scienceworld`, `alfworld` or `tau`
 * where their data is at hand. A budget keeps an environment with much data from crowding out the
 * others.
 */
export default {
  data: ["data/household", "data/desk", "data/webshop", "data/search", "data/textworld"],
  budget: ["household=1000", "desk=1000", "webshop=1000", "search=1000", "textworld=1000"],
  model: { start: "small", maxContext: 2048 },
  epochs: 3,
};
