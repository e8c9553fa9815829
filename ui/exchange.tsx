/** What an agent did at a step, and what the world answered. */

import type { CutText, ExchangeView, TokenView } from "@pawl/ui/report/views.js";
import type { ComponentChildren, JSX } from "preact";
import { Answer, AsExpected, type Expected } from "./expectation.js";
import { shortNumber } from "./format.js";
import { Text, visible } from "./text.js";
import { type Colouring, Tokens } from "./tokens.js";

/** Both sides of a step. */
export function Exchange(props: {
  readonly name: ComponentChildren;
  readonly step: ExchangeView;
  readonly tokens?: readonly TokenView[];
  readonly colouring?: Colouring;
  readonly scale?: number;
  readonly expected?: Expected | undefined;
  /** What else it could have done. */
  readonly considered?: ComponentChildren;
  /** Loads more of a field that was cut. */
  readonly more?: (field: string) => (from: number) => Promise<CutText>;
}): JSX.Element {
  const { step, tokens = [], colouring = "none", scale = 1, expected, more } = props;
  const remark = step.valid
    ? ""
    : step.wellFormed
      ? "refused"
      : step.cut
        ? "truncated"
        : "malformed";
  const written = !isSame(step.response, step.action);
  const own = colouring === "none" ? [] : tokens.filter(({ kind }) => kind === "action");
  return (
    <>
      <div class="said agent">
        <h3>
          {props.name} agent
          {remark !== "" && <span class="badge failed">{remark}</span>}
          {step.strayed && <span class="badge">random action</span>}
          {step.reward !== 0 && <span class="badge solved">reward {shortNumber(step.reward)}</span>}
          {step.advantage !== undefined && (
            <span class="badge plain">advantage {shortNumber(step.advantage)}</span>
          )}
        </h3>
        {own.length > 0 ? (
          <Tokens tokens={own} colouring={colouring} advantage={step.advantage} scale={scale} />
        ) : (
          written && <Text class="response" of={step.response} more={more?.("response")} />
        )}
        {(written || own.length === 0) && (
          <div class="action">
            <Action of={step.action} more={more?.("action")} />
          </div>
        )}
        {props.considered}
      </div>
      {(step.observation.length > 0 || expected !== undefined) && (
        <div class="said world">
          <h3>
            World
            <AsExpected expected={expected} real={step.observation.text} />
            {step.selected !== undefined && (
              <span class={`badge ${step.selected ? "solved" : "plain"}`} title={SELECTION}>
                {step.selected ? "✓ selected for the world model" : "not selected"}
              </span>
            )}
          </h3>
          <Answer
            real={step.observation}
            expected={expected}
            tokens={tokens.filter(({ kind }) => kind === "observation")}
            more={more?.("observation")}
          />
        </div>
      )}
    </>
  );
}

const SELECTION =
  "PaW trains the world model on the steps of an update at which the agent was least certain";

/** A text; one that is an object as JSON as its fields. */
export function Content(props: {
  readonly of: CutText;
  readonly class?: string;
  readonly more?: ((from: number) => Promise<CutText>) | undefined;
}): JSX.Element {
  const fields = fieldsOf(props.of);
  return fields === undefined ? <Text {...props} /> : <Fields of={fields} />;
}

/** An action that is a call of a tool, as one. */
function Action(props: {
  readonly of: CutText;
  readonly more?: ((from: number) => Promise<CutText>) | undefined;
}): JSX.Element {
  const call = callOf(props.of);
  if (call === undefined) return <Content {...props} />;
  return (
    <div class="call">
      <strong>{visible(call.name)}</strong>
      <Fields of={call.given} />
    </div>
  );
}

type FieldValues = Readonly<Record<string, unknown>>;

function Fields({ of }: { readonly of: FieldValues }): JSX.Element {
  return (
    <dl class="call-fields">
      {Object.entries(of).map(([key, value]) => (
        <div>
          <dt>{visible(key)}</dt>
          <dd>{visible(typeof value === "string" ? value : JSON.stringify(value))}</dd>
        </div>
      ))}
    </dl>
  );
}

function fieldsOf({ text, length }: CutText): FieldValues | undefined {
  if (!text.startsWith("{") || text.length < length) return undefined;
  try {
    return JSON.parse(text) as FieldValues;
  } catch {
    return undefined;
  }
}

function callOf(text: CutText): { readonly name: string; readonly given: FieldValues } | undefined {
  const { tool, name = tool, arguments: given } = fieldsOf(text) ?? {};
  return typeof name === "string" && typeof given === "object" && given !== null
    ? { name, given: given as FieldValues }
    : undefined;
}

/** Whether what was written is what was done, but for the words around a call. */
function isSame(response: CutText, action: CutText): boolean {
  if (response.text.trim() === action.text.trim()) return true;
  const [written, done] = [callOf(response), callOf(action)];
  return written !== undefined && JSON.stringify(written) === JSON.stringify(done);
}
