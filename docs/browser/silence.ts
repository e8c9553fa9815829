/** Whether a worker still lives: browsers do not say that they ended one, for lack of memory perhaps. */
const ALIVE = "alive";
const BEAT_MS = 1000;
/** Beats without a word after which a worker is given up. */
const MOST_SILENT = 60;

/** In a worker: says all the time that it lives. */
export function sayAlive(): void {
  setInterval(() => self.postMessage(ALIVE), BEAT_MS);
}

/** Hears a worker, and calls `lost` once if it fails or falls silent; the result stops both. */
export function hear<T>(
  worker: Worker,
  onMessage: (data: T) => void,
  lost: (why: string) => void,
): () => void {
  // From its first word on, and counted in beats: who was frozen itself has missed none.
  let silent: number | undefined;
  const watching = setInterval(() => {
    if (silent !== undefined && ++silent > MOST_SILENT)
      fail("the browser ended its worker, perhaps for lack of memory");
  }, BEAT_MS);
  const stop = (): void => {
    clearInterval(watching);
    worker.terminate();
  };
  const fail = (why: string): void => {
    stop();
    lost(why);
  };
  worker.onmessage = ({ data }: { data: T | typeof ALIVE }) => {
    silent = 0;
    if (data !== ALIVE) onMessage(data as T);
  };
  worker.onerror = ({ message }) => fail(message || "its worker did not start");
  return stop;
}
