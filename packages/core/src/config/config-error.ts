import { UserError } from "../errors.js";

/** An invalid configuration or command line; the command exits with code 2. */
export class ConfigError extends UserError {
  override readonly name = "ConfigError";
}
