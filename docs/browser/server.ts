/** The page's worker, in the place of the server of `pawl ui`. */
import type { FromDesk, ToDesk } from "./messages.js";
import { hear } from "./silence.js";

type Part = Extract<FromDesk, { what: "answer" }>;

/** A module with one instruction of SIMD: the engine needs those, but neither threads nor a GPU. */
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0];
const SIMD_BODY = [65, 0, 253, 15, 253, 98, 11];

const canRun =
  typeof WebAssembly === "object" && WebAssembly.validate(new Uint8Array([...SIMD, ...SIMD_BODY]));

const waiting = new Map<number, (part: FromDesk) => void>();
let last = 0;
let failed = canRun
  ? undefined
  : "This browser has no WebAssembly with SIMD, in which the model runs: open the page in a current Chrome, Edge, Firefox or Safari, or run npx pawl try.";

const desk = new Worker(new URL("desk.js", import.meta.url), { type: "module" });
hear<FromDesk>(
  desk,
  (part) => waiting.get(part.id)?.(part),
  (why) => {
    failed = `The page stopped: ${why}. Load it again; what was trained and not downloaded is lost.`;
    for (const [id, take] of waiting)
      take({
        what: "answer",
        id,
        status: 500,
        text: JSON.stringify({ error: failed }),
        isOver: true,
      });
  },
);

const say = (message: ToDesk): void => desk.postMessage(message);

const addressOf = (
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
): string => {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || (value === "" && name !== "run") ? [] : [[name, String(value)]],
  );
  return `api/${path}?${new URLSearchParams(given)}`;
};

/** Whether everything happens in this page: there is no terminal beside it. */
export const isInPage = true;

/** The worker is asked when its answers are needed: nothing is on its way in between. */
export const askEarly = (): void => undefined;

const KEPT = "trained";

/** Notes how many updates this page has trained: they are lost when it is loaded again, so it asks first. */
export function noteTrained(updates: number): void {
  globalThis.onbeforeunload = updates === 0 ? null : (event) => event.preventDefault();
  try {
    sessionStorage.setItem(KEPT, String(updates));
  } catch {
    // A browser that keeps nothing cannot say later what was lost.
  }
}

/** How many updates were lost when the page was loaded again. */
export function lostUpdates(): number {
  try {
    return Number(sessionStorage.getItem(KEPT) ?? 0);
  } catch {
    return 0;
  }
}

/** Asks the worker as the page of `pawl ui` asks its server. */
export async function ask<T>(
  path: string,
  query: Readonly<Record<string, string | number | undefined>> = {},
  body?: unknown,
): Promise<T> {
  if (failed !== undefined) throw new Error(failed);
  const id = ++last;
  const { status, text } = await new Promise<Part>((resolve) => {
    waiting.set(id, (part) => resolve(part as Part));
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    say({ what: "ask", id, url: addressOf(path, query), ...sent });
  });
  waiting.delete(id);
  const content = JSON.parse(text) as T & { readonly error?: string };
  if (status >= 400) throw new Error(content.error ?? `the worker answered ${status}`);
  return content;
}

/** Handlers of a live stream, by the name of the event. */
export type Handlers = Readonly<Record<string, (data: never) => void>>;

/** Listens to a live stream while the page can be seen. */
export function listen(
  query: () => Readonly<Record<string, string>>,
  handlers: Handlers,
  onState: (connected: boolean) => void,
): () => void {
  let id: number | undefined;
  const close = (): void => {
    if (id === undefined) return;
    waiting.delete(id);
    say({ what: "leave", id });
    id = undefined;
  };
  const open = (): void => {
    if (document.hidden || id !== undefined) return;
    id = ++last;
    let text = "";
    waiting.set(id, (part) => {
      onState(true);
      text += (part as Part).text;
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const [, name = "", data = ""] = /^event: (.*)\ndata: (.*)$/s.exec(event) ?? [];
        if (name === "gone") close();
        if (name in handlers) handlers[name]!(JSON.parse(data) as never);
      }
    });
    say({ what: "ask", id, url: addressOf("live", query()) });
  };
  const seen = (): void => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", seen);
  open();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    close();
  };
}

/** Saves a run's folder as an archive. */
export const download: ((run: string) => Promise<void>) | undefined = async (run) => {
  const id = ++last;
  const bytes = await new Promise<Uint8Array<ArrayBuffer>>((resolve) => {
    waiting.set(id, (part) => resolve((part as Extract<FromDesk, { what: "archive" }>).bytes));
    say({ what: "download", id, run });
  });
  waiting.delete(id);
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/x-tar" }));
  const link = Object.assign(document.createElement("a"), {
    href: address,
    download: `${run}.tar`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};
