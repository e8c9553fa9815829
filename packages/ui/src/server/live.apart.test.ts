import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPulse, pauseAfter } from "./live.js";

describe("how often files are looked at", () => {
  it("is every two seconds, and less often where looking takes long", () => {
    expect(pauseAfter(0.1)).toBe(2000);
    expect(pauseAfter(20)).toBe(4000);
    expect(pauseAfter(1000)).toBe(15_000);
  });

  describe("while somebody listens", () => {
    beforeEach(() => {
      vi.useFakeTimers();
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    it("calls all at the same moment, and nobody who has left", () => {
      const pulse = createPulse();
      const seen: string[] = [];
      const leave = pulse.join(() => seen.push("a"));
      vi.advanceTimersByTime(1000);
      const leaveToo = pulse.join(() => seen.push("b"));
      vi.advanceTimersByTime(1000);
      expect(seen).toEqual(["a", "b"]);
      leave();
      vi.advanceTimersToNextTimer();
      expect(seen).toEqual(["a", "b", "b"]);
      leaveToo();
      expect(vi.getTimerCount()).toBe(0);
      pulse.join(() => seen.push("c"));
      vi.advanceTimersByTime(2000);
      expect(seen.at(-1)).toBe("c");
    });
  });
});
