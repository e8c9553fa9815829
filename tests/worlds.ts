/** Before each test file: the worlds of the program can be opened, as in its commands. */
import "../src/cli/worlds.js";
import { loadEnvKinds } from "../src/envs/registry.js";

await loadEnvKinds();
