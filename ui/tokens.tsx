/** Tokens, coloured by a number of theirs. */

import type { TokenView } from "@pawl/ui/report/views.js";
import type { StepView } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { shortNumber, shortPercent } from "./format.js";
import { visible } from "./text.js";

/** What an agent's tokens can be coloured by; the world's are coloured by surprise. */
export const COLOURINGS = {
  none: "nothing",
  logprob: "log-probability",
  advantage: "advantage",
  entropy: "entropy",
} as const;
export type Colouring = keyof typeof COLOURINGS;
/** What tokens are coloured by, with how unexpected what came was. */
type Shown = Colouring | "surprise";

/** A surprise of this many nats has the full colour. */
const FULL = 4;

/**
 * From −1 (worse than expected) over 0 to 1: how strongly to colour, and in which direction. Advantages
 * are compared with `scale`.
 */
function strength(
  token: TokenView,
  colouring: Shown,
  advantage: number | undefined,
  scale: number,
): number {
  const { kind, logprob, entropy } = token;
  if (colouring === "advantage")
    return kind === "action" ? Math.tanh((token.advantage ?? advantage ?? 0) / scale) : 0;
  if (colouring === "entropy") return kind === "action" ? -Math.min(1, (entropy ?? 0) / FULL) : 0;
  const wanted = colouring === "surprise" ? "observation" : "action";
  return kind === wanted && logprob !== undefined ? -Math.min(1, -logprob / FULL) : 0;
}

/** The tokens of a step, after its prompt. */
export function Tokens(props: {
  readonly tokens: readonly TokenView[];
  readonly colouring: Shown;
  readonly advantage?: number | undefined;
  /** An advantage that has a strong colour; those of groups are normalised. */
  readonly scale?: number;
}): JSX.Element {
  const { tokens, colouring, advantage, scale = 1 } = props;
  return (
    <div class="tokens">
      {tokens.map((token) => (
        <Token token={token} at={strength(token, colouring, advantage, scale)} />
      ))}
    </div>
  );
}

function Token({ token, at }: { readonly token: TokenView; readonly at: number }): JSX.Element {
  const { text, kind, logprob, entropy, advantage, kept } = token;
  const title = [
    kind,
    ...(logprob === undefined
      ? []
      : [`p ${shortPercent(Math.exp(logprob))}`, `log p ${shortNumber(logprob)}`]),
    ...(entropy === undefined ? [] : [`entropy ${shortNumber(entropy)}`]),
    ...(advantage === undefined ? [] : [`advantage ${shortNumber(advantage)}`]),
    ...(kept === undefined ? [] : [kept ? "kept by the mask" : "masked"]),
  ].join(", ");
  // Ten steps of colour as classes: a strict policy allows no styles inside the page.
  const level = Math.round(Math.abs(at) * 9);
  return (
    <span
      class={`token ${kind} ${level === 0 ? "" : `${at < 0 ? "low" : "high"}${level}`} ${kept ? "kept" : ""}`}
      title={title}
    >
      {visible(text.replaceAll("\n", "⏎\n"))}
    </span>
  );
}

/** What the colours mean, or why there are none. */
export function Legend(props: {
  readonly colouring: Colouring;
  readonly steps: readonly StepView[];
  /** Whether advantages are those of a critic. */
  readonly critic: boolean;
  /** Whether checkpoints may be asked here. */
  readonly mayAsk: boolean;
}): JSX.Element {
  const { colouring, steps, critic, mayAsk } = props;
  const has = (name: "logprob" | "entropy", kind: string): boolean =>
    steps.some(({ tokens }) =>
      tokens.some((token) => token.kind === kind && token[name] !== undefined),
    );
  const isMasked = steps.some(({ tokens }) => tokens.some(({ kept }) => kept !== undefined));
  const missing = {
    none: false,
    logprob: !has("logprob", "action"),
    advantage: steps.every(({ advantage }) => advantage === undefined),
    entropy: !has("entropy", "action"),
  }[colouring];
  const surprise = has("logprob", "observation") && (
    <>
      {" "}
      What came is coloured by how little it was expected
      {isMasked && (
        <>
          ; <span class="token kept">underlined</span>: trained on by the world model
        </>
      )}
      .
    </>
  );
  if (missing)
    return (
      <p class="legend">
        {MISSING[colouring === "advantage" && critic ? "critic" : colouring]}{" "}
        {needsModel(colouring, critic) &&
          (mayAsk
            ? "Use “Ask the checkpoint” to compute them."
            : "To compute them, start the server with pawl ui --play and use “Ask the checkpoint”.")}
        {surprise}
      </p>
    );
  return (
    <p class="legend">
      {colouring === "advantage" ? (
        <>
          <span class="token high8">blue</span> better than {critic ? "the critic" : "the group"}{" "}
          expected, <span class="token low8">orange</span> worse.
          {critic &&
            " From the critic of the latest checkpoint, in units of return, coloured relative to this episode; training also whitens them over the update."}
        </>
      ) : (
        colouring !== "none" && (
          <>
            The stronger the <span class="token low8">orange</span>, the{" "}
            {colouring === "entropy" ? "higher the entropy" : "lower the probability"}.
          </>
        )
      )}
      {surprise}
    </p>
  );
}

const needsModel = (colouring: Colouring, critic: boolean): boolean =>
  colouring === "entropy" || (colouring === "advantage" && critic);

const MISSING: Readonly<Record<Colouring | "critic", string>> = {
  none: "",
  logprob:
    "No log-probabilities to show: the policy is not a model, its sampler gave none, or this folder keeps no tokenizer.",
  advantage: "No advantages: this run does not train a policy.",
  critic: "PPO computes advantages from a critic's values, which are not recorded.",
  entropy: "Entropies are not recorded.",
};
