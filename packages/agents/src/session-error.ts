import { UserError } from "@pawl/core/errors.js";
import type { Constraints } from "./chat.js";

/** A call that a session refuses. */
export class SessionError extends UserError {
  override readonly name = "SessionError";

  constructor(
    readonly problem: string,
    /** The part of the request that it cannot do, which each API has its own name for. */
    readonly part?: keyof Constraints,
  ) {
    super(part === undefined ? problem : `${part}: ${problem}`);
  }
}
