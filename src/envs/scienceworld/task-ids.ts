/** A file with the published lists of AgentGym's task numbers. */
import { z } from "zod";
import { readRegularText } from "../../regular-file.js";
import { EnvError } from "../env.js";
import { AGENTGYM_SIZE } from "./tasks.js";

const ids = z.array(
  z
    .int()
    .min(0)
    .max(AGENTGYM_SIZE - 1),
);
const idFile = z.object({ train: ids.min(1), test: ids.min(1) });

/** The published lists, and the test list without what is trained on. */
export interface TaskIds {
  readonly train: readonly number[];
  readonly test: readonly number[];
  readonly testClean: readonly number[];
}

/** Reads `{"train": [numbers], "test": [numbers]}`; anything else is an `EnvError`. */
export function readTaskIds(path: string): TaskIds {
  let json: unknown;
  try {
    json = JSON.parse(readRegularText(path));
  } catch (error) {
    const reason = (error as Error).message;
    throw new EnvError(`scienceworld: the option ids: ${path} cannot be read: ${reason}`, {
      cause: error,
    });
  }
  const parsed = idFile.safeParse(json);
  if (!parsed.success) {
    const { path: place, message } = parsed.error.issues[0]!;
    throw new EnvError(
      `scienceworld: the option ids: ${path}: expected {"train": [numbers], "test": [numbers]} with AgentGym's numbers, 0 to ${AGENTGYM_SIZE - 1}; ${place.join(".")}: ${message}`,
    );
  }
  const { train, test } = parsed.data;
  const trained = new Set(train);
  return { train, test, testClean: test.filter((id) => !trained.has(id)) };
}
