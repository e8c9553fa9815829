/** Waiting, failing, and what to do about it. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { link } from "./route.js";
import { visible } from "./text.js";

/** What was asked for: not there yet, an error, or the value. */
export interface Loaded<T> {
  readonly value?: T;
  readonly problem?: string;
  /** Asks again. */
  again(): void;
}

/** Asks when `key` changes; a late answer to an earlier question is dropped. */
export function useLoaded<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; problem?: string }>({ key });
  const [turn, setTurn] = useState(0);
  // Not after the first picture, which need not be waited for.
  useLayoutEffect(() => {
    let late = false;
    load().then(
      (value) => late || setState({ key, value }),
      (error: Error) => late || setState({ key, problem: error.message }),
    );
    return () => {
      late = true;
    };
  }, [key, turn]);
  return { ...(state.key === key ? state : {}), again: () => setTurn(turn + 1) };
}

/** The value, or a word about why there is none. */
export function Waiting({ of }: { readonly of: Loaded<unknown> }): JSX.Element {
  if (of.problem === undefined)
    return (
      <p class="waiting" role="status">
        Loading…
      </p>
    );
  return (
    <>
      <h1>This cannot be shown</h1>
      <Problem>
        {visible(of.problem)}{" "}
        <button type="button" class="small" onClick={of.again}>
          Try again
        </button>{" "}
        <a href={link([])}>All runs</a>
      </Problem>
    </>
  );
}

/** Something went wrong. */
export function Problem({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return (
    <div class="problem" role="alert">
      {children}
    </div>
  );
}

/** There is nothing, and what to do about it. */
export function Empty({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <div class="empty">{children}</div>;
}
