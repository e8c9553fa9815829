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

it("removes the values of secret variables, but no short or harmless ones", () => {
  const environment = { OPENAI_API_KEY: "sk-0123456789", MY_TOKEN: "ab", LANG: "en_GB.UTF-8" };
  expect(withoutSecrets("Bearer sk-0123456789 ab en_GB.UTF-8", environment)).toBe(
    "Bearer [secret] ab en_GB.UTF-8",
  );
});
