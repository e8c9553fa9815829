/** The runs of the page: those of `pawl try`. */
export const TRIAL = { start: "start", trained: "trained" } as const;
