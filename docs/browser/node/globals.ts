/** The globals of Node that our modules use, in a worker of a browser. */
import { Buffer } from "buffer/";

const noop = (): void => undefined;

/** One process, without arguments, environment or signals; every id that is asked for lives. */
const standIn = {
  platform: "browser",
  arch: "wasm",
  pid: 1,
  env: {},
  argv: [],
  execArgv: [],
  version: "v20.0.0",
  versions: { node: "20.0.0" },
  execPath: "",
  cwd: () => "/",
  kill: () => true,
  on: noop,
  once: noop,
  off: noop,
  emitWarning: noop,
  listenerCount: () => 0,
  nextTick: (run: (...args: unknown[]) => void, ...args: unknown[]) =>
    queueMicrotask(() => run(...args)),
  cpuUsage: () => ({ user: 0, system: 0 }),
  memoryUsage: Object.assign(() => ({ rss: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), {
    rss: () => 0,
  }),
  resourceUsage: () => ({ maxRSS: 0 }),
  constrainedMemory: () => 0,
  availableMemory: () => MEMORY,
  hrtime: Object.assign(() => [0, 0], {
    bigint: () => BigInt(Math.round(performance.now() * 1e6)),
  }),
  uptime: () => performance.now() / 1000,
  stdout: { isTTY: false, write: () => true },
  stderr: { isTTY: false, write: () => true },
};

/** What a page is taken to have; browsers do not say. */
export const MEMORY = 2 ** 31;

const scope = globalThis as unknown as Record<string, unknown>;
scope.Buffer = Buffer;
scope.process = standIn;
scope.global = globalThis;
scope.setImmediate = (run: (...args: unknown[]) => void, ...args: unknown[]) =>
  setTimeout(run, 0, ...args);
scope.clearImmediate = clearTimeout;
// Without the headers that isolate a page there is no shared memory: each message copies instead.
scope.SharedArrayBuffer ??= ArrayBuffer;

/** Timers are numbers in browsers; Node's can be told not to keep the process alive. */
for (const name of ["setTimeout", "setInterval"] as const) {
  const start = globalThis[name].bind(globalThis) as (...args: unknown[]) => number;
  scope[name] = (...args: unknown[]) => new Timer(start(...args));
}
for (const name of ["clearTimeout", "clearInterval"] as const) {
  const stop = globalThis[name].bind(globalThis);
  scope[name] = (timer: unknown) => stop(Number(timer));
}

class Timer {
  constructor(private readonly id: number) {}
  unref(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  refresh(): this {
    return this;
  }
  valueOf(): number {
    return this.id;
  }
}
