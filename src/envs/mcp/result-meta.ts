/** What a call was worth, as our own servers say it in `_meta` of a tool's result. */
import { isRecord } from "../../text/tool.js";
import type { StepResult } from "../env.js";
import type { Given } from "../tool-tasks/tool-tasks.js";

const KEY = "pawl/step";

/** For the server: the `_meta` of a step. */
export function metaOf({ reward, done, info: { valid, success } }: StepResult): object {
  return { [KEY]: { reward, done, valid, success } };
}

/** For the client: what a server says about a step; undefined if it says nothing. */
export function judgedBy(meta: unknown): Given["judged"] {
  const step = isRecord(meta) ? meta[KEY] : undefined;
  if (!isRecord(step)) return undefined;
  const { reward, done, success } = step;
  if (typeof reward !== "number" || typeof done !== "boolean" || typeof success !== "boolean")
    return undefined;
  return { reward, done, success };
}
