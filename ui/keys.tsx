/** Keys that work everywhere, and a list of them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { link } from "./route.js";

const KEYS: readonly (readonly [key: string, does: string])[] = [
  ["?", "show or hide this list"],
  ["/", "go to the search field"],
  ["g", "go to the runs"],
  ["c", "go to the comparison"],
  ["n, p", "later and earlier episode"],
  ["← →", "on a chart: move along the curve; Home and End jump to its ends"],
];

/** Listens to keys; whether the list is open, and its switch. */
export function useKeys(): { readonly open: boolean; toggle(): void } {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const { target, key } = event;
      const typing =
        target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (key === "?") setOpen((now) => !now);
      else if (key === "Escape") setOpen(false);
      else if (key === "g") location.hash = link([]);
      else if (key === "c") location.hash = link(["compare"]);
      else if (key === "/") document.querySelector<HTMLElement>("[data-search]")?.focus();
      else if (key === "n" || key === "p")
        document.querySelector<HTMLElement>(`[data-key=${key}]`)?.click();
      else return;
      event.preventDefault();
    };
    const left = (): void => setOpen(false);
    addEventListener("keydown", pressed);
    addEventListener("hashchange", left);
    return () => {
      removeEventListener("keydown", pressed);
      removeEventListener("hashchange", left);
    };
  }, []);
  return { open, toggle: () => setOpen(!open) };
}

/** The list of keys. */
export function Keys({ close }: { close(): void }): JSX.Element {
  return (
    <aside class="keys" aria-label="Keys">
      <dl>
        {KEYS.map(([key, does]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="small" onClick={close}>
        Close
      </button>
    </aside>
  );
}
