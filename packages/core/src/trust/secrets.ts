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

/** Variables and headers that hold secrets by their name. */
const SECRET_NAME =
  /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIE|AUTHORIZATION|[_-](?:PASS|PAT|AUTH))$/i;
/** Keys by their look: a header's whole value, or what well-known services give out. */
const KEY_HEADER = /^Bearer\s+\S{6,}$/i;
const KEY_TEXT = new RegExp(
  `(?<![\\w./\\\\-])(?:${[
    "sk-(?=[\\w-]*\\d)[\\w-]{16,}",
    "(?:gh[oprsu]|gsk|hf|npm|r8)_[A-Za-z0-9]{20,}",
    "github_pat_\\w{20,}",
    "glpat-[\\w-]{16,}",
    "xox[a-z]-[\\w-]{10,}",
    "A[KS]IA[0-9A-Z]{16}",
    "AIza[\\w-]{30,}",
    "eyJ[\\w-]{8,}\\.eyJ[\\w-]{8,}\\.[\\w-]+",
  ].join("|")})|-----BEGIN [A-Z ]*PRIVATE KEY-----`,
);
/** Shorter values would also be found where they mean nothing. */
const SHORTEST_SECRET = 8;

/** Values of variables that settings name for keys (`{env:NAME}`), whatever the variables are called. */
const given = new Set<string>();

/** Whether a variable, a header or an option of this name holds a secret. */
export const isSecretName = (name: string): boolean => SECRET_NAME.test(name);

/** Whether a text looks like a key, or contains one of a well-known form. */
export const looksLikeKey = (text: string): boolean =>
  KEY_HEADER.test(text.trim()) || KEY_TEXT.test(text);

/** Notes a secret that a server or a program is given: it may repeat it. */
export function noteSecret(value: string): void {
  if (value.length < SHORTEST_SECRET) return;
  given.add(value);
  // As it looks inside JSON.
  given.add(JSON.stringify(value).slice(1, -1));
}

/** The text without the secrets that were noted. */
export function withoutGivenSecrets(text: string): string {
  let clean = text;
  for (const secret of given) clean = clean.replaceAll(secret, "[secret]");
  return clean;
}

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
  let clean = withoutGivenSecrets(text)
    .replace(CREDENTIALS, "$1[secret]@")
    .replace(SECRET_PARAMETER, "$1[secret]");
  for (const [name, value] of Object.entries(environment)) {
    const secret = value?.trim();
    if (secret === undefined || secret.length < SHORTEST_SECRET || !SECRET_NAME.test(name))
      continue;
    if (clean.includes(secret)) clean = clean.replaceAll(secret, "[secret]");
  }
  return clean;
}
