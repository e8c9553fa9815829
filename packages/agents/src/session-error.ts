import { UserError } from "@pawl/core/errors.js";

/** A call that a session refuses. */
export class SessionError extends UserError {
  override readonly name = "SessionError";
}
