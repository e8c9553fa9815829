/** The settings of a run, those first that differ from its recipe. */

import type { SettingRow } from "@pawl/ui/report/views.js";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Scroll } from "./scroll.js";
import { dotted, visible } from "./text.js";

/** So many settings are listed at once where no recipe says which of them matter. */
const MOST = 40;

/** The table of settings. */
export function Settings(props: {
  readonly settings: readonly SettingRow[];
  readonly recipe: string | null;
}): JSX.Element {
  const [all, setAll] = useState(false);
  const { settings, recipe } = props;
  const changed = settings.filter((one) => one.recipe !== undefined);
  const few = recipe === null ? settings.slice(0, settings.length <= MOST ? MOST : 0) : changed;
  const shown = all ? settings : few;
  return (
    <>
      {few.length < settings.length && (
        <p class="hint">
          {recipe === null
            ? `${settings.length} settings.`
            : changed.length === 0
              ? `All settings are those of ${recipe}.`
              : `${changed.length} of ${settings.length} settings differ from ${recipe}.`}{" "}
          <button type="button" class="small" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Show fewer" : "Show all"}
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
                    <code>{dotted(path)}</code>
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
