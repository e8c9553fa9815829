/** Loads every world, for programs that open them by name without waiting, as users of the package do. */
import { loadEnvKinds } from "../envs/registry.js";
import "./worlds.js";

await loadEnvKinds();
