/**
 * Does world modelling help a model that learns ALFWorld from scratch? GRPO and GiGPO, with and
 * without PaW.
 *
 * After the teacher has played (recipes/alfworld-scratch.ts), with one server per concurrent run,
 * all of them with the same checkpoint folder:
 *   for port in 8001 8002 8003 8004; do pawl serve engine --port $port & done
 *   pawl bench observations --config recipes/alfworld-scratch-paw.ts --out runs/alfworld-paw \
 *     --engines http://127.0.0.1:8001,http://127.0.0.1:8002,http://127.0.0.1:8003,http://127.0.0.1:8004
 */
import { alfworldScratch } from "./alfworld-scratch.js";

export const alfworldScratchPaw = {
  algorithms: ["grpo", "gigpo"],
  arms: ["plain", "paw"],
  seeds: [0, 1, 2],
  evalTasks: 134,
  evalRounds: 2,
  train: alfworldScratch,
};

export default alfworldScratchPaw;
