import { expect, it } from "vitest";
import { findEnvKind } from "../envs/registry.js";
import { trainConfig } from "./config.js";
import { currentSettings, resumedSettings } from "./recorded-settings.js";
import { tinyConfig } from "./testing.js";

/** A run as it was recorded when gradients were measured on some sequences of every update. */
function old(gradientSample: number, paw: object = {}): Record<string, unknown> {
  const { gradients: _, ...rest } = tinyConfig({ paw });
  return { ...rest, gradientSample };
}

it("takes recorded settings of today as they are", () => {
  const config = tinyConfig({ gradients: { every: 3 } });
  expect(currentSettings(config)).toEqual(config);
  expect(resumedSettings(config)).toEqual({ config });
});

it("goes on with a run that measured gradients on a sample, and says what changes", () => {
  const { config, notice } = resumedSettings(old(8));
  expect(config.gradients).toEqual({ every: 10 });
  expect(config).not.toHaveProperty("gradientSample");
  expect(notice).toMatch(/on 8 sequences of each update until now.*whole update, every 10 updates/);
  expect(resumedSettings(old(0)).config.gradients).toEqual({ every: 0 });
  expect(resumedSettings(old(0)).notice).toBeUndefined();
});

it("refuses to go on with a cap on what was measured otherwise", () => {
  expect(() => resumedSettings(old(8, { gradientCap: 0.5 }))).toThrow(
    /paw\.gradientCap: this run began when.*begin a new run with gradients\.every 1/,
  );
  expect(currentSettings(old(8, { gradientCap: 0.5 })).paw.gradientCap).toBe(0.5);
});

it("is no setting that can still be given", () => {
  expect(trainConfig(findEnvKind("household")).safeParse({ gradientSample: 8 }).success).toBe(
    false,
  );
});
