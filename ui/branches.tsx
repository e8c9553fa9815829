/** The states at which the episodes of a tree part, with what each continuation came to. */
import type { TreeView } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { Outcome } from "./episodes.js";
import { shortNumber } from "./format.js";
import { link } from "./route.js";

/** Nothing where no episode branches off another. */
export function Branches(props: {
  readonly tree: TreeView;
  readonly run: string;
  readonly id: string;
}): JSX.Element | null {
  const { states, shared } = props.tree;
  if (states.length === 0) return null;
  return (
    <section>
      <h2>Branches</h2>
      {shared > 0 && (
        <p class="hint">
          The first {shared} steps are those of attempt {states[0]!.rows[0]?.attempt}: played and
          learnt there.
        </p>
      )}
      {states.map(({ step, rows }) => (
        <>
          <h3>Before step {step + 1}</h3>
          <ul class="group">
            {rows.map((row) => (
              <li>
                <a
                  href={link(["run", props.run, "episode", row.id], { step: String(step) })}
                  aria-current={row.id === props.id ? "true" : undefined}
                >
                  attempt {row.attempt}
                </a>{" "}
                <Outcome of={row} /> return {shortNumber(row.return)}
              </li>
            ))}
          </ul>
        </>
      ))}
    </section>
  );
}
