import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { isWhole } from "@pawl/core/dose-testing.js";
import { describe, expect, it } from "vitest";
import { replayWebshop } from "./replay.js";

const folder = "../shared/data/webshop";

function records(name: string): readonly unknown[] {
  const text = gunzipSync(readFileSync(`${folder}/${name}`)).toString("utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): unknown => JSON.parse(line));
}

describe.skipIf(!existsSync(folder))(
  "recordings of the original (skipped if ../shared/data/webshop is absent)",
  () => {
    it.runIf(isWhole)(
      "replays all 72 episodes page by page, with prices and goals from the recorded seed",
      () => {
        const { traces, states, mismatches } = replayWebshop(
          records("golden-episodes.jsonl.gz"),
          folder,
        );
        expect(mismatches).toEqual([]);
        expect(traces).toBe(72);
        // 2 worlds with 2,000 prices, 6,923 goals, 72 resets, 983 steps, 54 purchases, 72 counts.
        expect(states).toBe(2 * 2 + 2000 + 6923 + 72 + 983 + 54 + 72);
      },
    );

    it.runIf(isWhole)("ranks all 100 queries identically", () => {
      const { traces, mismatches } = replayWebshop(records("golden-queries.jsonl.gz"), folder);
      expect(mismatches).toEqual([]);
      expect(traces).toBe(100);
    });

    it("reports what differs, and where", () => {
      const [query] = records("golden-queries.jsonl.gz") as { asins: string[] }[];
      const changed = { ...query!, asins: [...query!.asins].reverse() };
      expect(replayWebshop([changed], folder).mismatches).toEqual([
        { where: "query 0 (planters), asins", expected: changed.asins, found: query!.asins },
      ]);
      const [world, episode] = records("golden-episodes.jsonl.gz") as { reset: { obs: string } }[];
      const other = { ...episode!, reset: { ...episode!.reset, obs: "WebShop" } };
      const { mismatches } = replayWebshop([world, other], folder);
      expect(mismatches.map((mismatch) => mismatch.where)).toEqual(["episode 0, reset, text"]);
    });

    it("says what it cannot replay", () => {
      const [, episode] = records("golden-episodes.jsonl.gz");
      expect(() => replayWebshop([episode], folder)).toThrow(/"type": "world"/);
      expect(() => replayWebshop([{ walkthrough: [] }], folder)).toThrow(
        /record 1 is not a recorded world, episode or query/,
      );
    });
  },
);
