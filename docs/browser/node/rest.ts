/**
 * What else our modules name of Node: waiting, and what a page has not: other processes, programs and
 * threads of Node's, which are refused when they are asked for.
 */
import { MEMORY } from "./globals.js";

/**
 * The trainer has one less than there are, so that the page itself stays quick, but two if it can, and at
 * most four. The desk asks its model one thing at a time.
 */
export const availableParallelism = (): number => {
  const cores = navigator.hardwareConcurrency;
  return self.name === "trainer" ? Math.min(4, Math.max(cores - 1, Math.min(2, cores))) : 1;
};
export const homedir = (): string => "/home";
export const tmpdir = (): string => "/tmp";
export const hostname = (): string => "browser";
export const totalmem = (): number => MEMORY;
export const freemem = (): number => MEMORY;

const wait = globalThis.setTimeout;
export const setTimeout = (ms: number, value?: unknown): Promise<unknown> =>
  new Promise((resolve) => wait(() => resolve(value), ms));

/** The next turn, at once: nested timers of browsers wait for four milliseconds. */
const { port1, port2 } = new MessageChannel();
const turns: (() => void)[] = [];
port1.onmessage = () => turns.shift()?.();
export const setImmediate = (value?: unknown): Promise<unknown> =>
  new Promise((resolve) => {
    turns.push(() => resolve(value));
    port2.postMessage(undefined);
  });

export const setMaxListeners = (): void => undefined;

/** A page runs no programs of users, which is what contexts are for here. */
export class AsyncLocalStorage<T> {
  run<R>(_: T, work: () => R): R {
    return work();
  }
  getStore(): T | undefined {
    return undefined;
  }
}

const refuse = (what: string) => (): never => {
  throw new Error(`a page has no ${what}: install Pawl to use this`);
};

export const execFileSync = refuse("other programs");
export const fork = refuse("other programs");
export const spawn = refuse("other programs");
export const createContext = refuse("other contexts");
export const pipeline = refuse("downloads");
export const createRequire = () => refuse("other modules");
export class Script {
  readonly runInContext = refuse("other contexts");
}
