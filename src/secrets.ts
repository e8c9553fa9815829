/**
 * Secrets must not reach records, reports and terminals: passwords in addresses, and keys of the
 * environment that some server or program repeats.
 */

/** `scheme://user@host` or `scheme://user:password@host`, up to the at sign. */
const CREDENTIALS = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#@"'<>]{1,400}@/gi;

/** Variables that hold secrets by their name. */
const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$/i;
/** Shorter values would also be found where they mean nothing. */
const SHORTEST_SECRET = 8;

/** Whether a text contains an address with a user name or password. */
export function hasCredentials(text: string): boolean {
  CREDENTIALS.lastIndex = 0;
  return CREDENTIALS.test(text);
}

/** The text without passwords in addresses and without the values of secret variables. */
export function withoutSecrets(
  text: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  let clean = text.replace(CREDENTIALS, "$1[secret]@");
  for (const [name, value] of Object.entries(environment)) {
    const secret = value?.trim();
    if (secret === undefined || secret.length < SHORTEST_SECRET || !SECRET_NAME.test(name))
      continue;
    if (clean.includes(secret)) clean = clean.replaceAll(secret, "[secret]");
  }
  return clean;
}
