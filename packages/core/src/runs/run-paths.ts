/** Where a run folder has what. */
import { join } from "node:path";

/** The record of a run's episodes. */
export const episodesPath = (folder: string): string => join(folder, "episodes.jsonl.gz");
/** The metrics of a run. */
export const metricsPath = (folder: string): string => join(folder, "metrics.jsonl");
/** The folder of TensorBoard's event files. */
export const eventsPath = (folder: string): string => join(folder, "tensorboard");
