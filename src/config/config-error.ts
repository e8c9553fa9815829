import { UserError } from "../errors.js";

/** A configuration or command line that cannot be meant; the command ends with exit code 2. */
export class ConfigError extends UserError {
  override readonly name = "ConfigError";
}
