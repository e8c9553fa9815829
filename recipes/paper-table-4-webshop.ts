/** The ablations of PaW's table 4 on WebShop, for `pawl bench observations`: λ = 1 for all groups, and CE. */
import paperTable1 from "./paper-table-1-webshop.js";

export default { ...paperTable1, algorithms: ["grpo"], arms: ["plain", "paw", "fixed", "ce"] };
