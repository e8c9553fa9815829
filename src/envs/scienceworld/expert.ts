/** The expert: the simulator's own gold path, action by action. */
import { EnvError, type RemoteEnv } from "../env.js";
import type { ScienceEnv } from "./science-env.js";

/** After the end of the path there is nothing left to do; looking takes no time. */
const NOTHING_LEFT = "look around";

/**
 * The next action of the gold path that has not been taken yet, in order. After actions that are
 * not on it, the expert goes on as if they had changed nothing.
 */
export function nextAction(env: RemoteEnv): string {
  if (!("progress" in env))
    throw new EnvError("The scienceworld expert plays scienceworld environments only, unwrapped.");
  const { gold, actions } = (env as ScienceEnv).progress;
  if (gold === undefined)
    throw new EnvError("scienceworld: call prepareTeacher() before asking the expert");
  let at = 0;
  for (const action of actions) if (action === gold[at]) at++;
  return gold[at] ?? NOTHING_LEFT;
}
