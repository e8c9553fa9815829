/** What was observed, once: with what was expected of it, and how little each token was. */

import type { CutText, TokenView } from "@pawl/ui/report/views.js";
import type { ComponentChildren, JSX } from "preact";
import { diffWords, type Part } from "./diff.js";
import { Text, visible } from "./text.js";
import { Tokens } from "./tokens.js";

/** A prediction of an observation. */
export interface Expected {
  readonly observation: string;
  readonly note?: string | undefined;
}

const isAsExpected = (expected: Expected, real: string): boolean =>
  expected.observation.trim() === real.trim();

/** Whether what came is what was expected, as a badge. */
export function AsExpected(props: {
  readonly expected: Expected | undefined;
  readonly real: string;
}): JSX.Element | null {
  if (props.expected === undefined) return null;
  const same = isAsExpected(props.expected, props.real);
  return (
    <span class={`badge ${same ? "solved" : "failed"}`}>
      {same ? "✓ as expected" : "✗ not as expected"}
    </span>
  );
}

/** An observation, beside what was expected where that differs, its tokens coloured by surprise. */
export function Answer(props: {
  readonly real: CutText;
  readonly expected?: Expected | undefined;
  /** The tokens of what came, with the probabilities they were given. */
  readonly tokens?: readonly TokenView[];
  readonly more?: ((from: number) => Promise<CutText>) | undefined;
}): JSX.Element {
  const { real, expected, tokens = [], more } = props;
  const coloured = tokens.some(({ logprob, kept }) => logprob !== undefined || kept !== undefined);
  const whole = tokens.reduce((sum, { text }) => sum + text.length, 0) >= real.text.trim().length;
  const came = coloured && whole ? <Tokens tokens={tokens} colouring="surprise" /> : undefined;
  if (expected === undefined || isAsExpected(expected, real.text))
    return (
      <>
        {came ?? <Text class="observation" of={real} more={more} />}
        {expected?.note !== undefined && <p class="hint">{visible(expected.note)}</p>}
      </>
    );
  return <Expectation real={real.text} expected={expected} came={came} />;
}

/** Both texts side by side; what differs is marked by more than colour. */
export function Expectation(props: {
  readonly real: string;
  readonly expected: Expected;
  readonly names?: readonly [expected: string, real: string];
  /** What came in another form, such as coloured tokens. */
  readonly came?: ComponentChildren;
}): JSX.Element {
  const { real, expected, names = ["Expected", "Came"], came } = props;
  const [left, right] = diffWords(expected.observation.trim(), real.trim());
  return (
    <div class="expectation">
      <div>
        <h4>{names[0]}</h4>
        <Parts of={left} mark="del" />
      </div>
      <div>
        <h4>{names[1]}</h4>
        {came ?? <Parts of={right} mark="ins" />}
      </div>
      {expected.note !== undefined && <p class="hint">{visible(expected.note)}</p>}
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
