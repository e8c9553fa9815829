/** What is wider than the page. */
import type { JSX } from "preact";

/** A table that scrolls sideways by itself, also by keys. */
export function Scroll(props: {
  readonly label: string;
  readonly children: JSX.Element;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <section class="scroll" aria-label={props.label} tabIndex={0}>
      {props.children}
    </section>
  );
}
