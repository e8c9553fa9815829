/** A configuration or command line that cannot be meant; the command ends with exit code 2. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
