/**
 * The paper's settings for search-augmented QA with GiGPO and PaW (table 2, appendix A.1):
 * observations with a similarity of 0.9 share an anchor.
 */
import paperSearch from "./paper-search.js";

export default {
  ...paperSearch,
  advantage: {
    ...paperSearch.advantage,
    name: "gigpo",
    gamma: 0.95,
    stepWeight: 1,
    similarity: 0.9,
  },
};
