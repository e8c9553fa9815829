/** Chat models behind OpenAI-compatible endpoints that a world itself asks: users, judges. */
import { z } from "zod";
import { UserError } from "../errors.js";
import { keyFrom, postJson } from "../http/http-client.js";
import type { Tool } from "../text/tool.js";
import { address, variable } from "../trust/reach.js";
import { EnvError } from "./env.js";

/** Settings of an endpoint. */
export const chatEndpointOptions = z.strictObject({
  baseUrl: address(z.url({ protocol: /^https?$/ })).describe(
    "base URL of the API, such as http://localhost:8000/v1",
  ),
  model: z.string().min(1).describe("model name on the server"),
  apiKeyVariable: variable(z.string())
    .default("OPENAI_API_KEY")
    .describe("environment variable with the API key, if one is needed"),
  temperature: z.number().min(0).default(0).describe("sampling temperature"),
  timeoutMs: z
    .number()
    .positive()
    .default(120_000)
    .describe("time-out of a request in milliseconds"),
  retries: z.int().min(0).default(3).describe("retries after a failed request"),
});

/** An endpoint, with defaults filled in. */
export type ChatEndpoint = z.output<typeof chatEndpointOptions>;

/** A message as the protocol has it. */
export interface EndpointMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly tool_calls?: readonly EndpointCall[];
  readonly tool_call_id?: string;
}

/** A call in a message; the arguments are JSON text. */
interface EndpointCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** What a model answered. */
export interface EndpointAnswer {
  readonly content: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  /** Tokens that were read and written, if the server counts them. */
  readonly usage?: { readonly read: number; readonly written: number };
}

/** Longer answers are a fault of the server. */
const MAX_ANSWER_BYTES = 2 ** 24;

const completion = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({
          content: z.string().nullish(),
          tool_calls: z
            .array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) }))
            .nullish(),
        }),
      }),
    )
    .min(1, "no choices"),
  usage: z
    .object({ prompt_tokens: z.number().min(0), completion_tokens: z.number().min(0) })
    .nullish()
    .catch(undefined),
});

/** Asks the model; a server that fails is an `EnvError`, which breaks the episode. */
export async function askEndpoint(
  endpoint: ChatEndpoint,
  messages: readonly EndpointMessage[],
  options: {
    readonly tools?: readonly Tool[];
    readonly seed?: number;
    readonly signal?: AbortSignal | undefined;
    /** Further fields of the request. */
    readonly fields?: Readonly<Record<string, unknown>>;
  } = {},
): Promise<EndpointAnswer> {
  const { model, temperature, timeoutMs, retries, apiKeyVariable } = endpoint;
  const url = new URL(endpoint.baseUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/chat/completions`;
  const tools = (options.tools ?? []).map((tool) => ({ type: "function", function: tool }));
  const body = {
    model,
    messages,
    temperature,
    ...(options.seed !== undefined && { seed: options.seed & 0x7fffffff }),
    ...(tools.length > 0 && { tools }),
    ...options.fields,
  };
  const key = keyFrom(process.env, [apiKeyVariable]);
  try {
    return await postJson(
      {
        url,
        body,
        key,
        timeoutMs,
        retries,
        backoffMs: 500,
        signal: options.signal,
        about: ` (model ${model})`,
        maxBytes: MAX_ANSWER_BYTES,
      },
      (json) => {
        const parsed = completion.safeParse(json);
        if (!parsed.success) throw new Error(z.prettifyError(parsed.error));
        const { content, tool_calls } = parsed.data.choices[0]!.message;
        const { usage } = parsed.data;
        return {
          content: content ?? "",
          calls: (tool_calls ?? []).map((one) => one.function),
          ...(usage != null && {
            usage: { read: usage.prompt_tokens, written: usage.completion_tokens },
          }),
        };
      },
    );
  } catch (error) {
    options.signal?.throwIfAborted();
    if (error instanceof UserError) throw new EnvError(error.message, { cause: error });
    throw error;
  }
}
