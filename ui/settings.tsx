/** The settings of a run, those first that differ from its recipe. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SettingRow } from "../src/report/views.js";
import { Scroll } from "./scroll.js";
import { visible } from "./text.js";

/** The table of settings. */
export function Settings(props: {
  readonly settings: readonly SettingRow[];
  readonly recipe: string | null;
}): JSX.Element {
  const [all, setAll] = useState(false);
  const { settings, recipe } = props;
  const changed = settings.filter((one) => one.recipe !== undefined);
  const shown = all || recipe === null ? settings : changed;
  return (
    <>
      {recipe !== null && (
        <p class="hint">
          {changed.length === 0
            ? `All settings are those of ${recipe}.`
            : `${changed.length} of ${settings.length} settings differ from ${recipe}.`}{" "}
          <button type="button" class="small" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Show differences only" : "Show all"}
          </button>
        </p>
      )}
      {shown.length > 0 && (
        <Scroll label="Settings">
          <table class="settings">
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">This run</th>
                {recipe !== null && <th scope="col">Recipe</th>}
              </tr>
            </thead>
            <tbody>
              {shown.map(({ path, value, recipe: other }) => (
                <tr class={other === undefined ? "" : "changed"}>
                  <th scope="row">
                    <code>{visible(path)}</code>
                  </th>
                  <td>
                    <code>{visible(value)}</code>
                    {other !== undefined && <span class="unseen"> (differs)</span>}
                  </td>
                  {recipe !== null && (
                    <td class="quiet">
                      <code>{other === undefined ? "the same" : visible(other)}</code>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}
