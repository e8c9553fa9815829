/** Watches a run's metrics for alarms: says so, records it, and tells when to stop. */

import type { AlarmOptions } from "../alarms/alarm.js";
import {
  nanAlarm,
  type RaisedAlarm,
  rememberedOf,
  saysNotFinite,
  watchLine,
} from "../alarms/alarms.js";
import { EngineError } from "../engine/engine.js";
import { UserError } from "../errors.js";
import { recordAlarm } from "../runs/alarms-file.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { openRun, type Run } from "../runs/run-folder.js";
import { withoutSecrets } from "../trust/secrets.js";

/** Which alarms there are, and which of them end a run. */
export interface WatchOptions {
  readonly alarms: AlarmOptions;
  readonly stopOn: readonly string[];
}

/** A run that an alarm ended, as its settings asked for. */
export class StoppedByAlarm extends UserError {
  override readonly name = "StoppedByAlarm";
  constructor(
    readonly raised: RaisedAlarm,
    folder: string,
    kind: string,
  ) {
    super(
      `stopped by the alarm ${raised.alarm} at update ${raised.update + 1}: ${raised.text}. pawl ${kind} --resume ${folder} continues it`,
    );
  }
}

/** An alarm that was raised, and whether it ends the run. */
export interface SeenAlarm extends RaisedAlarm {
  readonly stops: boolean;
}

/** Sees every line of metrics before it is recorded. */
export interface Watch {
  /** The line to record, and the alarms it raises. */
  see(line: MetricsLine): { readonly line: MetricsLine; readonly raised: readonly SeenAlarm[] };
  /** The line and the alarm for an engine's error about NaN; undefined for other errors. */
  failed(error: unknown): { readonly line: MetricsLine; readonly raised: SeenAlarm } | undefined;
}

/** Watches a run that was started or resumed; without settings, nothing is an alarm. */
export function createWatch(run: Run, options: WatchOptions | undefined): Watch {
  if (options === undefined)
    return { see: (line) => ({ line, raised: [] }), failed: () => undefined };
  const lines = openRun(run.folder, () => undefined)
    .metrics()
    .map(rememberedOf);
  const noted = (alarm: RaisedAlarm): SeenAlarm => {
    run.requireOwn();
    recordAlarm(run.folder, alarm);
    return { ...alarm, stops: options.stopOn.includes(alarm.alarm) };
  };
  return {
    see(given) {
      const { line, raised } = watchLine(lines, given, options.alarms);
      lines.push(rememberedOf(line));
      return { line, raised: raised.map(noted) };
    },
    failed(error) {
      if (!(error instanceof EngineError && saysNotFinite(error.message))) return undefined;
      const update = (lines.at(-1)?.update ?? -1) + 1;
      const text = withoutSecrets(error.message);
      const raised = noted({ update, alarm: nanAlarm.name, text });
      return { line: { update, [`alarm.${nanAlarm.name}`]: 1 }, raised };
    },
  };
}
