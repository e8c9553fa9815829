/** The actions considered before a step, with what each was expected to bring. */
import type { CandidateView } from "@pawl/ui/server/api.js";
import type { ComponentChildren, JSX } from "preact";
import { shortPercent } from "./format.js";
import { Scroll } from "./scroll.js";
import { Text, visible } from "./text.js";

/** One row for each; only what some of them have. */
export function Candidates(props: {
  readonly of: readonly CandidateView[];
  readonly step: number;
}): JSX.Element {
  const { of } = props;
  const columns: Readonly<Record<string, (one: CandidateView) => ComponentChildren>> = {
    Votes: ({ votes }) => votes,
    ...(of.some(({ refused }) => refused !== null) && {
      "Refusal expected": ({ refused }) => (refused === null ? "–" : shortPercent(refused)),
    }),
    ...(of.some(({ predicted }) => predicted !== null) && {
      "Outcome expected": ({ predicted }) => (predicted === null ? "–" : <Text of={predicted} />),
    }),
    ...(of.some(({ truth }) => truth !== null) && {
      "Tried in a copy": ({ truth }) =>
        truth === null ? (
          "–"
        ) : (
          <>
            {!truth.valid && <span class="badge failed">refused</span>}
            <Text of={truth.observation} />
          </>
        ),
    }),
  };
  return (
    <Scroll label={`Candidates of step ${props.step + 1}`}>
      <table class="candidates">
        <thead>
          <tr>
            {["Considered", ...Object.keys(columns)].map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.map((one) => (
            <tr class={one.chosen ? "chosen" : ""}>
              <th scope="row">
                <code>{visible(one.action.text || "(no action)")}</code>
                {one.chosen && <span class="badge solved">✓ chosen</span>}
              </th>
              {Object.entries(columns).map(([name, value]) => (
                // On a phone a row is a list: the name stands before the value.
                <td data-name={name}>
                  <div>{value(one)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
