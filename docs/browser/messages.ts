/** What the page, its desk and its trainer tell each other. */
import type { Lambda } from "@pawl/ui/server/play.js";
import type { Change } from "./node/mirror.js";

/** A request of the page: as to the server of `pawl ui`, or for a run's files. */
export type ToDesk =
  | { readonly what: "ask"; readonly id: number; readonly url: string; readonly body?: string }
  | { readonly what: "leave"; readonly id: number }
  | { readonly what: "download"; readonly id: number; readonly run: string };

/** A part of an answer; the last one is over. */
export type FromDesk =
  | {
      readonly what: "answer";
      readonly id: number;
      readonly status: number;
      readonly text: string;
      readonly isOver: boolean;
    }
  | { readonly what: "archive"; readonly id: number; readonly bytes: Uint8Array<ArrayBuffer> };

export type ToTrainer =
  | {
      readonly what: "train";
      readonly files: readonly Change[];
      readonly lambda: Lambda | undefined;
    }
  | { readonly what: "pause" };

export type FromTrainer =
  | { readonly what: "files"; readonly files: readonly Change[] }
  | { readonly what: "ended"; readonly problem?: string };
