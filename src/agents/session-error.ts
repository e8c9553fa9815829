import { UserError } from "../errors.js";

/** A call that a session refuses. */
export class SessionError extends UserError {
  override readonly name = "SessionError";
}
