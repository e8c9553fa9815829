import { describe, expect, it } from "vitest";
import { engineChoice, engineFor } from "./engine-choice.js";
import { engineOptions } from "./engines.js";

const served = engineOptions.parse({
  address: "http://gpu:8000",
  model: "small",
  loraRank: 8,
  copy: true,
});

describe("engineFor", () => {
  it("is the run's engine if none is named, without the settings for training only", () => {
    const engine = engineFor(served, engineChoice.parse({ threads: 2 }));
    expect(engine).toMatchObject({ address: "http://gpu:8000", model: "small", threads: 2 });
    expect(engine).toMatchObject({ copy: false, loraRank: 8 });
  });

  it("is the named one, without the settings of the run's own server", () => {
    const engine = engineFor(served, engineChoice.parse({ address: "embedded" }));
    expect(engine).toEqual(engineOptions.parse({}));
  });

  it("on another server keeps the rank, which belongs to the weights, but no names", () => {
    const engine = engineFor(served, { address: "http://other:8000" });
    expect(engine).toEqual(engineOptions.parse({ address: "http://other:8000", loraRank: 8 }));
  });

  it("keeps the adapters of a run of the embedded engine, but not on a server", () => {
    const here = engineOptions.parse({ loraRank: 4, loraAlpha: 8, loraTargets: ["q_proj"] });
    expect(engineFor(here)).toEqual(here);
    expect(engineFor(here, { address: "http://gpu:8000" })).toEqual(
      engineOptions.parse({ address: "http://gpu:8000" }),
    );
  });

  it("is embedded for a model that was not trained by a run", () => {
    expect(engineFor(undefined)).toEqual(engineOptions.parse({}));
  });
});
