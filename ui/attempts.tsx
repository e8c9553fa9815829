/** The attempts of a group, drawn over their steps: a branch parts from its trunk where that was left. */
import type { AttemptView } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { Outcome } from "./episodes.js";
import { count, shortNumber } from "./format.js";
import { link, type Query } from "./route.js";
import { Scroll } from "./scroll.js";

/** Width of the drawing, height of a row, and room beside the first and the last step, in pixels. */
const [WIDE, HIGH, ROOM] = [150, 34, 6];

/** The table; nothing for an attempt alone that begins with its task. */
export function Attempts(props: {
  readonly group: readonly AttemptView[];
  readonly run: string;
  readonly id: string;
  readonly query: Query;
}): JSX.Element | null {
  const { group, run, id, query } = props;
  const rows = inTree(group, undefined);
  if (rows.length < 2 && rows.every(({ hint }) => hint === 0)) return null;
  const longest = Math.max(...group.map(({ steps }) => steps));
  const place = (step: number): number => ROOM + ((WIDE - 2 * ROOM) * step) / Math.max(1, longest);
  return (
    <section>
      <h2>Attempts of the group</h2>
      <Scroll label="Attempts of the group">
        <table class="attempts">
          <thead class="unseen">
            <tr>
              {["Course", "Attempt", "Outcome", "Steps", "Return", "Begins"].map((name) => (
                <th scope="col">{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr class={row.id === id ? "own" : ""}>
                <td>
                  <Course
                    of={row}
                    place={place}
                    above={i - rows.findIndex(({ attempt }) => attempt === row.branch?.from)}
                  />
                </td>
                <th scope="row">
                  <a
                    href={link(["run", run, "episode", row.id], query)}
                    aria-current={row.id === id ? "true" : undefined}
                  >
                    attempt {row.attempt}
                  </a>
                </th>
                <td>
                  <Outcome of={row} />
                </td>
                <td class="number">{count(row.steps, "step")}</td>
                <td class="number">return {shortNumber(row.return)}</td>
                <td class="quiet small">{beginning(row)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

/** Each trunk, then what branches off it, the latest first, so that lines do not cross. */
function inTree(group: readonly AttemptView[], from: number | undefined): readonly AttemptView[] {
  return group
    .filter(({ branch }) => branch?.from === from)
    .sort((a, b) => (b.branch?.step ?? 0) - (a.branch?.step ?? 0))
    .flatMap((row) => [row, ...inTree(group, row.attempt)]);
}

function beginning({ branch, hint }: AttemptView): string {
  if (branch !== null) return `branches off attempt ${branch.from} before step ${branch.step + 1}`;
  return hint > 0 ? `after ${count(hint, "step")} of a teacher, which are not learnt` : "";
}

/** The steps of an attempt as dots on a line; `above` is how many rows above its trunk is. */
function Course(props: {
  readonly of: AttemptView;
  place(step: number): number;
  readonly above: number;
}): JSX.Element {
  const { of, place, above } = props;
  const { steps, branch, hint, success } = of;
  const own = branch?.step ?? hint;
  const middle = HIGH / 2;
  return (
    <svg class="course" width={WIDE} height={HIGH} aria-hidden="true">
      {branch !== null && <path d={`M${place(own)} ${middle - above * HIGH}V${middle}`} />}
      {hint > 0 && <path class="taught" d={`M${place(0)} ${middle}H${place(hint)}`} />}
      <path d={`M${place(own)} ${middle}H${place(steps)}`} />
      {Array.from({ length: Math.max(0, steps - own) }, (_, i) => (
        <circle cx={place(own + i)} cy={middle} r="2.5" />
      ))}
      <circle class={success ? "solved" : "failed"} cx={place(steps)} cy={middle} r="4.5" />
    </svg>
  );
}
