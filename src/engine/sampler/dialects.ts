/** The APIs of vLLM and SGLang that we use: token ids in, token ids out, new weights. */
import { z } from "zod";
import { EngineError } from "../engine.js";
import type { Wire } from "./wire.js";

/** One continuation to draw. */
interface Draw {
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly temperature: number;
  /** 0 keeps all. */
  readonly topK: number;
  readonly topP: number;
  readonly stopTokens: readonly number[];
  readonly seed: number;
}

/** A drawn sample, including its stop token, with the log-probability of each token. */
export interface Drawn {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

/** A server that samples. */
export interface SamplerServer {
  readonly name: string;
  /** How to start it so that it returns the model's own log-probabilities at any temperature. */
  readonly ownLogprobs: string;
  /** Maximum sequence length in tokens, and how to raise it. */
  readonly maxContext: number;
  readonly contextFlag: string;
  draw(draw: Draw): Promise<Drawn>;
  /** Loads the weights in a folder and clears caches computed with the old ones. */
  reload(folder: string): Promise<void>;
}

const modelList = z.object({
  data: z.array(
    z.object({ id: z.string(), max_model_len: z.int().nullish(), parent: z.string().nullish() }),
  ),
});
const vllmVersion = z.object({ version: z.string() });
const sglangModel = z.object({ model_path: z.string() });

/** Detects which server it is, and rejects one that cannot reload weights. */
export async function findServer(wire: Wire, model: string | undefined): Promise<SamplerServer> {
  const at = `at ${wire.shownUrl}`;
  const listed = await wire.look("/v1/models");
  if (listed.status === 401 || listed.status === 403)
    throw new EngineError(
      `the sampler ${at} denies access (status ${listed.status}): set PAWL_SAMPLER_API_KEY to the key it was started with`,
    );
  const models = modelList.safeParse(listed.json);
  if (!models.success)
    throw new EngineError(
      `the server ${at} is not a sampler: GET /v1/models returned status ${listed.status} and no list of models; expected an engine server, or a vLLM or SGLang server`,
    );
  // Adapters are listed too, with their base model.
  const bases = models.data.data.filter(({ parent }) => !parent);
  const named = bases.filter(({ id }) => model === undefined || id === model);
  if (named.length !== 1)
    throw new EngineError(
      `the sampler ${at} has ${bases.map(({ id }) => id).join(", ") || "no model"}; ${model === undefined ? "choose one of them with engine.samplerModel" : `engine.samplerModel names ${model}`}`,
    );
  const [{ id, max_model_len: length }] = named as [(typeof named)[number]];
  const served = { model: id, maxContext: length ?? Number.POSITIVE_INFINITY };
  for (const path of ["/model_info", "/get_model_info"])
    if (sglangModel.safeParse((await wire.look(path)).json).success)
      return sglang(wire, `SGLang ${at}`, served);
  const version = vllmVersion.safeParse((await wire.look("/version")).json);
  if (!version.success)
    throw new EngineError(
      `the server ${at} is neither vLLM (GET /version) nor SGLang (GET /model_info); a sampler must be one of them`,
    );
  const name = `vLLM ${version.data.version} ${at}`;
  // This call without a method does nothing; it exists only in development mode.
  if ([404, 405].includes((await wire.look("/collective_rpc", {})).status))
    throw new EngineError(
      `${name} cannot reload weights, so it would sample with old ones: start it with VLLM_SERVER_DEV_MODE=1 in its environment, on a private network`,
    );
  return vllm(wire, name, served);
}

interface Served {
  readonly model: string;
  readonly maxContext: number;
}

/** Overrides what a checkpoint's generation_config.json would otherwise set. */
const NEUTRAL = {
  min_p: 0,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  // Sampling stops only at the given stop sequences.
  ignore_eos: true,
  skip_special_tokens: false,
} as const;

const completion = z.object({
  choices: z
    .array(
      z.object({
        token_ids: z.array(z.int()),
        logprobs: z.object({ token_logprobs: z.array(z.number()) }),
      }),
    )
    .length(1),
});

function vllm(wire: Wire, name: string, { model, maxContext }: Served): SamplerServer {
  return {
    name,
    maxContext,
    contextFlag: "--max-model-len",
    ownLogprobs: "--logprobs-mode raw_logprobs, which is its default",
    async draw({ prompt, maxTokens, temperature, topK, topP, stopTokens, seed }) {
      const body = {
        ...NEUTRAL,
        model,
        prompt,
        max_tokens: maxTokens,
        temperature,
        top_k: topK,
        top_p: topP,
        stop_token_ids: stopTokens,
        seed,
        logprobs: 0,
        return_token_ids: true,
      };
      const { choices } = await wire.post("/v1/completions", body, completion);
      const [{ token_ids: tokens, logprobs }] = choices as [(typeof choices)[number]];
      return { tokens, logprobs: logprobs.token_logprobs };
    },
    async reload(folder) {
      const rpc = { method: "reload_weights", kwargs: { weights_path: folder } };
      await wire.post("/collective_rpc", rpc, z.object({ results: z.array(z.unknown()) }));
      await wire.post("/reset_prefix_cache", {}, z.object({ success: z.literal(true) }));
    },
  };
}

const generated = z.object({
  meta_info: z.object({
    output_token_logprobs: z.array(z.tuple([z.number(), z.int()]).rest(z.unknown())),
  }),
});

function sglang(wire: Wire, name: string, { maxContext }: Served): SamplerServer {
  return {
    name,
    maxContext,
    contextFlag: "--context-length",
    ownLogprobs: "SGLANG_RETURN_ORIGINAL_LOGPROB=1 in its environment",
    async draw({ prompt, maxTokens, temperature, topK, topP, stopTokens, seed }) {
      const body = {
        input_ids: prompt,
        sampling_params: {
          ...NEUTRAL,
          max_new_tokens: maxTokens,
          temperature,
          top_k: topK === 0 ? -1 : topK,
          top_p: topP,
          stop_token_ids: stopTokens,
          sampling_seed: seed,
        },
        return_logprob: true,
      };
      const { meta_info } = await wire.post("/generate", body, generated);
      const pairs = meta_info.output_token_logprobs;
      return { tokens: pairs.map(([, id]) => id), logprobs: pairs.map(([logprob]) => logprob) };
    },
    async reload(folder) {
      const body = { model_path: folder, flush_cache: true };
      await wire.post("/update_weights_from_disk", body, z.object({ success: z.literal(true) }));
    },
  };
}
