/** What a model predicted, beside what was observed. */
import type { JSX } from "preact";
import { diffWords, type Part } from "./diff.js";
import { visible } from "./text.js";

/** Both texts side by side; what differs is marked by more than colour. */
export function Expectation({
  real,
  expected,
  names = ["Predicted", "Observed"],
}: {
  readonly real: string;
  readonly expected: { readonly observation: string; readonly note?: string };
  readonly names?: readonly [expected: string, real: string];
}): JSX.Element {
  const { observation, note } = expected;
  const same = observation.trim() === real.trim();
  const [left, right] = diffWords(observation.trim(), real.trim());
  return (
    <div class="expectation">
      <div>
        <h4>
          {names[0]}{" "}
          <span class={`badge ${same ? "solved" : "failed"}`}>
            {same ? "✓ same" : "✗ different"}
          </span>
        </h4>
        <Parts of={left} mark="del" />
      </div>
      <div>
        <h4>{names[1]}</h4>
        <Parts of={right} mark="ins" />
      </div>
      {note !== undefined && <p class="hint">{visible(note)}</p>}
    </div>
  );
}

function Parts({
  of,
  mark: Mark,
}: {
  readonly of: readonly Part[];
  readonly mark: "del" | "ins";
}): JSX.Element {
  return (
    <div class="text">
      {of.map(({ text, same }) => (same ? visible(text) : <Mark>{visible(text)}</Mark>))}
      {of.length === 0 && <span class="quiet">(nothing)</span>}
    </div>
  );
}
