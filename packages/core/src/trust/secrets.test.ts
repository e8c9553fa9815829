import { expect, it } from "vitest";
import { hasCredentials, withoutSecrets } from "./secrets.js";

it("finds user names and passwords in addresses, and only there", () => {
  for (const text of ["http://u:pw@h", "see https://tok@h:8/x?y", "ws://a:b@c", "HTTP://A:B@C"]) {
    expect(hasCredentials(text)).toBe(true);
    expect(withoutSecrets(text, {})).toMatch(/:\/\/\[secret\]@/);
    expect(hasCredentials(text)).toBe(true);
  }
  for (const text of ["http://h/a@b", "me@example.org", "a://", "http://h?u=x@y", "x: y@z"]) {
    expect(hasCredentials(text)).toBe(false);
    expect(withoutSecrets(text, {})).toBe(text);
  }
});

it("refuses in settings whatever programs read as a user, a password or a key", () => {
  const refused = [
    ...["http:/u:pw@h", "http:u:pw@h", "http:\\\\u:pw@h", "http://u:p'w@h", 'http://u:p"w@h'],
    ...["http://u:p<w@h", "http://u:p@w@h", "http://u:p\tw@h", `http://${"a".repeat(900)}@h`],
    ...["http://h/?api_key=abc", "https://h/v1?a=b&access_token=abc", "http://h/#key=abc"],
  ];
  for (const text of refused) {
    expect(hasCredentials(text), text).toBe(true);
    expect(hasCredentials({ engine: [{ address: text }] }), text).toBe(true);
  }
  const fine = ["http://h/?q=key", "https://h?version=1", "mailto:a@b", "x?key", "?"];
  expect(hasCredentials({ all: fine, a: "http://h", b: "c@d", n: 1, none: null })).toBe(false);
});

it("removes whole passwords and keys in addresses from texts", () => {
  expect(withoutSecrets("GET http://u:p@w@h/x failed", {})).toBe("GET http://[secret]@h/x failed");
  expect(withoutSecrets("http://h/?a=1&api_key=abc&b=2: 401", {})).toBe(
    "http://h/?a=1&api_key=[secret]&b=2: 401",
  );
  const json = '{"a":"http://h","b":"c@d"}';
  expect(withoutSecrets(json, {})).toBe(json);
});

it("removes the values of secret variables, but no short or harmless ones", () => {
  const environment = { OPENAI_API_KEY: "sk-0123456789", MY_TOKEN: "ab", LANG: "en_GB.UTF-8" };
  expect(withoutSecrets("Bearer sk-0123456789 ab en_GB.UTF-8", environment)).toBe(
    "Bearer [secret] ab en_GB.UTF-8",
  );
});
