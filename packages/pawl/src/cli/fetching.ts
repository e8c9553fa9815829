/** How commands fetch models: with their environment, and with words about what takes a while. */
import type { FetchOptions } from "@pawl/models/model-origin.js";
import { type Io, note } from "./io.js";

/** Tells on the terminal what is downloaded or converted. */
export function fetchingOf(io: Io, signal: AbortSignal): FetchOptions {
  return {
    environment: io.env,
    signal,
    onNotice: (message) => note(io, message),
  };
}
