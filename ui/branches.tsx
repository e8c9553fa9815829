/** Where an episode begins: after a teacher's steps, or where it parts from others of its tree. */
import type { TreeView } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { Outcome } from "./episodes.js";
import { shortNumber } from "./format.js";
import { link } from "./route.js";

/** Nothing where an episode begins with its task and none branches off another. */
export function Branches(props: {
  readonly tree: TreeView;
  readonly run: string;
  readonly id: string;
}): JSX.Element | null {
  const { states, shared, hint } = props.tree;
  const taught = hint > 0 && (
    <p class="hint">A teacher took the first {hint} steps; they are not learnt.</p>
  );
  if (states.length === 0) return taught || null;
  return (
    <section>
      <h2>Branches</h2>
      {taught}
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
