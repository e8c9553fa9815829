/** What an agent would do next, as buttons, with what it expects of each. */
import type { NextActions } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { shortPercent } from "./format.js";
import { visible, visibleText } from "./text.js";

/** The likeliest actions. */
export function Thoughts(props: {
  readonly of: NextActions;
  readonly busy: boolean;
  act(action: string): Promise<void>;
}): JSX.Element {
  const { how, actions } = props.of;
  return (
    <section>
      <h3>What the agent would do</h3>
      <p class="hint">
        {how === "scored"
          ? "Probability of generating exactly this action."
          : "Share of 16 samples."}
      </p>
      <ul class="thoughts">
        {actions.slice(0, 12).map(({ action, p, predicted, predictedSuccess }) => (
          <li>
            <button
              type="button"
              class="small"
              disabled={props.busy}
              onClick={() => void props.act(action)}
            >
              {visible(action || "(no action)")}
            </button>
            <meter min={0} max={1} value={p} aria-label={`probability of ${visibleText(action)}`} />
            <span class="number">{p > 0 && p < 0.0005 ? "< 0.1 %" : shortPercent(p)}</span>
            {predicted !== undefined && (
              <div class="quiet small">
                predicts: {visible(predicted.slice(0, 400) || "(nothing)")}
                {predictedSuccess && " (goal reached)"}
              </div>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
