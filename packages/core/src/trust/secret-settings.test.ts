import { expect, it } from "vitest";
import {
  environmentVariablesIn,
  leftOutNotice,
  secretSettings,
  withoutSecretSettings,
} from "./secret-settings.js";

it("finds the variables that settings name, at any depth, and no others", () => {
  const settings = {
    a: ["Bearer {env:ONE}", { b: "{env:TWO}{env:ONE}", "{env:KEY}": 1 }],
    c: "{env:2} {name} {env: X} {{env:NOT}} {{{env:THREE}}}",
    d: null,
  };
  expect(environmentVariablesIn(settings)).toEqual(["ONE", "TWO", "THREE"]);
});

const servers = (server: object) => ({ env: { name: "mcp", servers: { web: server } } });

it("leaves alone what is no key", () => {
  const fine = [
    servers({ url: "https://h/mcp?apiKey={env:A}", headers: { authorization: "Bearer {env:A}" } }),
    servers({ headers: { cookie: "session={env:A}", "x-api-key": "{key}", accept: "text/html" } }),
    servers({ command: "x", args: ["--api-key", "{env:A}", "--token={env:A}", "--key", ""] }),
    servers({ command: "x", args: ["{env:DATABASE_URL}"], env: { MAX_TOKENS: "12", KEY: "" } }),
    // A file that holds a key.
    servers({ command: "x", env: { GOOGLE_APPLICATION_CREDENTIALS: process.execPath } }),
    { policy: { apiKeyVariable: "OPENAI_API_KEY", model: "owner/sk-learn-1-of-the-models" } },
    {
      env: { padToken: "<pad>", sortKey: "name", instructions: "Bearer of bad news, sk-something" },
    },
    { model: { start: "hf-internal-testing/tiny-random-model-of-many-words" }, updates: 3 },
  ];
  for (const settings of fine) {
    expect(secretSettings(settings), JSON.stringify(settings)).toEqual([]);
    expect(withoutSecretSettings(settings)).toEqual({ settings, leftOut: [] });
  }
  expect(leftOutNotice("runs/a", fine)).toBeUndefined();
});

it("leaves keys out of a copy, and says where they were", () => {
  const settings = {
    ...servers({ url: "https://h", headers: { Authorization: "Bearer abc", other: "x" } }),
    plugin: { apiKey: "abc", list: ["ghp_0123456789abcdefghij", "a"] },
    engine: { address: "http://u:p@h" },
  };
  expect(withoutSecretSettings(settings)).toEqual({
    settings: {
      ...servers({ url: "https://h", headers: { Authorization: "[secret]", other: "x" } }),
      plugin: { apiKey: "[secret]", list: ["[secret]", "a"] },
      engine: { address: "[secret]" },
    },
    leftOut: [
      "env.servers.web.headers.Authorization",
      "plugin.apiKey",
      "plugin.list.0",
      "engine.address",
    ],
  });
  expect(leftOutNotice("runs/a", settings)).toContain("plugin.apiKey, plugin.list.0");
});
