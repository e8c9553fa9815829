/** The server of this page, or the data inside it if it is a report. */

/** Whether everything happens in this page: then there is no terminal beside it (docs/browser). */
export const isInPage: boolean = false;

/** A page in which everything happens loses what it trained when it is loaded again; a server does not. */
export const noteTrained = (_updates: number): void => undefined;
export const lostUpdates = (): number => 0;

/** Saves a run's folder as an archive; a server's is on this machine already. */
export const download: ((run: string) => Promise<void>) | undefined = undefined;

type Asked = Readonly<Record<string, string | number | undefined>>;

function addressOf(path: string, query: Asked): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)]],
  );
  // An empty run is the folder itself, if that is a run.
  if (query.run === "") given.push(["run", ""]);
  return `api/${path}?${new URLSearchParams(given)}`;
}

const early = new Map<string, Promise<unknown>>();

/** Asks before anything waits for it: whoever asks the same next gets this answer. */
export function askEarly(path: string, query: Asked): void {
  const answer = ask(path, query);
  answer.catch(() => undefined);
  early.set(addressOf(path, query), answer);
}

/** Asks the server; its errors say what to do. */
export async function ask<T>(path: string, query: Asked = {}, body?: unknown): Promise<T> {
  const address = addressOf(path, query);
  const before = body === undefined ? early.get(address) : undefined;
  if (before !== undefined) {
    early.delete(address);
    return before as Promise<T>;
  }
  let answer: Response;
  try {
    answer = await fetch(
      address,
      body === undefined
        ? {}
        : {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          },
    );
  } catch {
    throw new Error("The server does not answer. Is pawl ui still running?");
  }
  const content = (await answer.json()) as T & { readonly error?: string };
  if (!answer.ok) throw new Error(content.error ?? `the server answered ${answer.status}`);
  return content;
}

/** Handlers of a live stream, by the name of the event. */
export type Handlers = Readonly<Record<string, (data: never) => void>>;

/**
 * Listens to a live stream while the page can be seen: a browser allows few connections to one
 * server, and pages in the background need none. `onState` hears whether it is connected.
 */
export function listen(
  query: () => Readonly<Record<string, string>>,
  handlers: Handlers,
  onState: (connected: boolean) => void,
): () => void {
  let source: EventSource | undefined;
  const close = (): void => {
    source?.close();
    source = undefined;
  };
  const open = (): void => {
    if (document.hidden || source !== undefined) return;
    source = new EventSource(`api/live?${new URLSearchParams(query())}`);
    source.onopen = () => onState(true);
    source.onerror = () => {
      onState(false);
      // Not where it was: by now more may have been sent.
      if (source?.readyState === EventSource.CONNECTING) {
        close();
        setTimeout(open, 2000);
      }
    };
    for (const [event, handle] of Object.entries(handlers))
      source.addEventListener(event, (message) => {
        if (event === "gone") close();
        handle(JSON.parse((message as MessageEvent<string>).data) as never);
      });
  };
  const seen = (): void => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", seen);
  open();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    close();
  };
}
