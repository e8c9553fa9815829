import { UserError } from "../errors.js";

/** A problem with a run folder. */
export class RunError extends UserError {
  override readonly name = "RunError";
}
