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
  const written = step.response.text.trim() !== step.action.text.trim();
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
            <ToolCall
              text={step.action.text}
              fallback={<Text of={step.action} more={more?.("action")} />}
            />
          </div>
        )}
        {props.considered}
      </div>
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
    </>
  );
}

const SELECTION =
  "PaW trains the world model on the steps of an update at which the agent was least certain";

/** An action that is a call of a tool, as one. */
function ToolCall({
  text,
  fallback,
}: {
  readonly text: string;
  readonly fallback: JSX.Element;
}): JSX.Element {
  if (!text.startsWith("{")) return fallback;
  try {
    const {
      tool,
      name = tool,
      arguments: given,
    } = JSON.parse(text) as { tool?: unknown; name?: unknown; arguments?: unknown };
    if (typeof name !== "string" || typeof given !== "object" || given === null) return fallback;
    return (
      <div class="call">
        <strong>{visible(name)}</strong>
        <dl>
          {Object.entries(given).map(([key, value]) => (
            <div>
              <dt>{visible(key)}</dt>
              <dd>{visible(typeof value === "string" ? value : JSON.stringify(value))}</dd>
            </div>
          ))}
        </dl>
      </div>
    );
  } catch {
    return fallback;
  }
}
