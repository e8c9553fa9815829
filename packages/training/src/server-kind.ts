/** An engine server: another process, usually with a GPU, that speaks the engine protocol. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { EngineError } from "@pawl/core/engine/engine.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { connectRemoteEngine, isOwnServer } from "@pawl/engine-remote/remote/remote-engine.js";
import { z } from "zod";
import type { EngineKind, EngineOptions } from "./engine-kind.js";

/** Servers adapt all projections, with an alpha of their own; those that share an input share A. */
function refuseEmbeddedOnly({ loraAlpha, loraTargets }: EngineOptions): void {
  const given = Object.entries({ loraAlpha, loraTargets }).flatMap(([name, value]) =>
    value === undefined ? [] : [`engine.${name}`],
  );
  if (given.length > 0)
    throw new ConfigError(
      `${given.join(", ")}: only the embedded engine has this setting; leave it out`,
    );
}

export const serverKind: EngineKind = {
  address: z.url({ protocol: /^https?$/ }),
  help: "the URL of an engine server",
  isRemote: true,
  async notMeasured({ address }) {
    try {
      // With others, each model that is made may cost something.
      return (await isOwnServer({ url: address, connectMs: 1000 }))
        ? undefined
        : `the engine server at ${address} cannot take back a trial of learning`;
    } catch (error) {
      if (error instanceof EngineError) return error.message;
      throw error;
    }
  },
  async open(options, model, { seed = 0, valueHead = false, onNotice }) {
    const { address, loraRank, copy } = options;
    refuseEmbeddedOnly(options);
    const remote = {
      url: address,
      loraRank,
      copy,
      valueHead,
      seed,
      ...(options.model !== undefined && { model: options.model }),
      ...(onNotice !== undefined && { onNotice }),
    };
    if ("served" in model) return connectRemoteEngine(remote);
    if ("folder" in model) return connectRemoteEngine({ ...remote, folder: model.folder });
    // The same initial weights as for the embedded engine: made here, and sent.
    const folder = await mkdtemp(join(tmpdir(), "pawl-first-weights-"));
    try {
      const first = await createEmbeddedEngine({ model, seed, valueHead, threads: 1 });
      await first.save(folder, { optimizer: false });
      await first.dispose();
      return await connectRemoteEngine({ ...remote, folder });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
