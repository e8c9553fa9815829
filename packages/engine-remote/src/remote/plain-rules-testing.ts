/**
 * The rules of Tinker's protocol as its servers enforce them now, for the stand-in of tests: known
 * fields only, models numbered within a session, requests numbered within a model, a number never
 * used for two requests, weights loaded only as a model's first request.
 */
import { z } from "zod";

type Json = Readonly<Record<string, unknown>>;

const number = z.int().min(0);
const model = { model_id: z.string(), seq_id: number };
const pass = z.strictObject({
  data: z.array(z.unknown()),
  loss_fn: z.string(),
  loss_fn_config: z.record(z.string(), z.union([z.number(), z.string()])).optional(),
});

/** The fields of each request, as in the official client's types. */
const FIELDS: Readonly<Record<string, z.ZodType>> = {
  create_session: z.strictObject({
    tags: z.array(z.string()),
    user_metadata: z.record(z.string(), z.unknown()).nullish(),
    sdk_version: z.string(),
    type: z.literal("create_session"),
  }),
  create_model: z.strictObject({
    session_id: z.string(),
    model_seq_id: number,
    base_model: z.string(),
    lora_config: z.strictObject({ rank: z.int().min(1), seed: z.int() }),
    type: z.literal("create_model"),
  }),
  // Only the probe may leave out the number.
  forward: z.strictObject({ ...model, seq_id: number.optional(), forward_input: pass }),
  forward_backward: z.strictObject({
    ...model,
    forward_backward_input: pass,
    forward_only: z.boolean().optional(),
  }),
  optim_step: z.strictObject({
    ...model,
    adam_params: z.strictObject({
      learning_rate: z.number(),
      beta1: z.number(),
      beta2: z.number(),
      eps: z.number(),
      weight_decay: z.number(),
      grad_clip_norm: z.number().optional(),
    }),
    type: z.literal("optim_step"),
  }),
  save_weights: z.strictObject({ ...model, path: z.string(), type: z.literal("save_weights") }),
  load_weights: z.strictObject({
    ...model,
    path: z.string(),
    optimizer: z.boolean(),
    type: z.literal("load_weights"),
  }),
  save_weights_for_sampler: z.strictObject({
    ...model,
    path: z.string(),
    type: z.literal("save_weights_for_sampler"),
  }),
};

/** Remembers what was asked, and says what is wrong with a request: a status and a reason. */
export function plainRules(): (path: string, body: Json) => [number, string] | undefined {
  const models = new Set<string>();
  const requests = new Map<string, Map<number, string>>();
  const sampled = new Map<string, string>();
  return (path, body) => {
    const read = FIELDS[path]?.safeParse(body);
    if (read?.success === false) return [422, `${path}: ${read.error.issues[0]!.message}`];
    const text = JSON.stringify([path, body]);
    if (path === "create_model") {
      const id = `${String(body.session_id)} ${String(body.model_seq_id)}`;
      if (models.has(id)) return [409, `model_seq_id ${String(body.model_seq_id)} was used before`];
      models.add(id);
    }
    if (path === "asample" && body.sampling_session_id !== undefined) {
      const id = `${String(body.sampling_session_id)} ${String(body.seq_id)}`;
      if ((sampled.get(id) ?? text) !== text || body.seq_id === undefined)
        return [409, `asample: seq_id ${String(body.seq_id)} was used before`];
      sampled.set(id, text);
    }
    if (typeof body.seq_id !== "number" || typeof body.model_id !== "string") return undefined;
    const before = requests.get(body.model_id) ?? new Map<number, string>();
    requests.set(body.model_id, before);
    const known = before.get(body.seq_id);
    if (known !== undefined && known !== text)
      return [409, `seq_id ${body.seq_id} was used for another request to this model`];
    if (path === "load_weights" && (before.size > 0 || body.seq_id !== 1))
      return [400, "load_weights is only allowed as the first request to a model"];
    before.set(body.seq_id, text);
    return undefined;
  };
}
