/**
 * Secrets must not reach records, reports and terminals: passwords in addresses, and keys of the
 * environment that some server or program repeats.
 */

/** `scheme://user@host` or `scheme://user:password@host` in running text, up to the last at sign. */
const CREDENTIALS = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#"'<>]{1,400}@/gi;
/** The same in a setting; programs also read `http:/` and `http:\\` as addresses, and quotes in them. */
const ADDRESS_WITH_USER =
  /(?:\b[a-z][a-z0-9+.-]{0,20}:\/\/|\b(?:https?|wss?):[\\/]*)[^\s\\/?#]{1,1000}@/i;
/** `?api_key=value` or `&token=value`, up to the value. */
const SECRET_PARAMETER =
  /([?&#][\w.-]{0,40}(?:key|token|secret|password|signature)=)[^&#\s"'<>]{1,4000}/gi;

/** Variables that hold secrets by their name. */
const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$/i;
/** Shorter values would also be found where they mean nothing. */
const SHORTEST_SECRET = 8;

/** Whether a setting contains an address with a user name, a password or a key, at any depth. */
export function hasCredentials(setting: unknown): boolean {
  if (typeof setting === "object" && setting !== null)
    return Object.values(setting).some(hasCredentials);
  if (typeof setting !== "string") return false;
  if (ADDRESS_WITH_USER.test(setting)) return true;
  if (!URL.canParse(setting)) return false;
  const { username, password, search, hash } = new URL(setting);
  return username !== "" || password !== "" || (search + hash).search(SECRET_PARAMETER) >= 0;
}

/** The text without passwords and keys in addresses and without the values of secret variables. */
export function withoutSecrets(
  text: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  let clean = text.replace(CREDENTIALS, "$1[secret]@").replace(SECRET_PARAMETER, "$1[secret]");
  for (const [name, value] of Object.entries(environment)) {
    const secret = value?.trim();
    if (secret === undefined || secret.length < SHORTEST_SECRET || !SECRET_NAME.test(name))
      continue;
    if (clean.includes(secret)) clean = clean.replaceAll(secret, "[secret]");
  }
  return clean;
}
