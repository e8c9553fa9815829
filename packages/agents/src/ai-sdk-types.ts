/**
 * The parts of the AI SDK's language-model specification, version 3, that a model of ours needs:
 * written down here, so that `ai` need not be installed.
 */

/** A call, as the SDK makes it. */
export interface ModelCall {
  readonly prompt: readonly ModelMessage[];
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly responseFormat?:
    | { readonly type: "text" }
    | { readonly type: "json"; readonly schema?: unknown; readonly name?: string | undefined }
    | undefined;
  readonly seed?: number | undefined;
  readonly tools?: readonly ModelTool[] | undefined;
  readonly toolChoice?:
    | { readonly type: "auto" | "none" | "required" }
    | { readonly type: "tool"; readonly toolName: string }
    | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

/** A tool that is offered; `provider` tools run elsewhere. */
export type ModelTool =
  | {
      readonly type: "function";
      readonly name: string;
      readonly description?: string | undefined;
      readonly inputSchema: object | boolean;
      readonly strict?: boolean | undefined;
    }
  | { readonly type: "provider"; readonly name: string };

/** One message of the SDK's prompts. */
export type ModelMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user" | "assistant" | "tool"; readonly content: readonly ModelPart[] };

/** A part of a message; those that a model of text cannot read have other types. */
export type ModelPart =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | {
      readonly type: "tool-call";
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
    }
  | { readonly type: "tool-result"; readonly toolCallId: string; readonly output: ToolOutput }
  | { readonly type: "file" | "tool-approval-response" };

/** What a tool returned. */
export type ToolOutput =
  | { readonly type: "text" | "error-text"; readonly value: string }
  | { readonly type: "json" | "error-json"; readonly value: unknown }
  | { readonly type: "execution-denied"; readonly reason?: string | undefined }
  | {
      readonly type: "content";
      readonly value: readonly { readonly type: string; readonly text?: string }[];
    };

/** A setting that was not obeyed. */
export interface ModelWarning {
  readonly type: "unsupported";
  readonly feature: string;
  readonly details: string;
}

/** A part of an answer. */
export type AnswerPart =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | {
      readonly type: "tool-call";
      readonly toolCallId: string;
      readonly toolName: string;
      /** The arguments as JSON text. */
      readonly input: string;
    };

interface Finish {
  finishReason: { unified: "stop" | "length" | "tool-calls"; raw: string };
  usage: {
    inputTokens: { total: number; noCache: undefined; cacheRead: undefined; cacheWrite: undefined };
    outputTokens: { total: number; text: undefined; reasoning: undefined };
  };
  providerMetadata: {
    pawl: { tokens: number[]; logprobs: number[]; malformed?: string };
  };
}

/** An answer, as the SDK takes it. */
export interface ModelResult extends Finish {
  content: AnswerPart[];
  warnings: ModelWarning[];
}

/** A part of a streamed answer. */
export type StreamPart =
  | { readonly type: "stream-start"; readonly warnings: ModelWarning[] }
  | { readonly type: `${"text" | "reasoning"}-${"start" | "end"}`; readonly id: string }
  | { readonly type: `${"text" | "reasoning"}-delta`; readonly id: string; readonly delta: string }
  | { readonly type: "tool-input-start"; readonly id: string; readonly toolName: string }
  | { readonly type: "tool-input-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "tool-input-end"; readonly id: string }
  | Extract<AnswerPart, { type: "tool-call" }>
  | ({ readonly type: "finish" } & Finish);
