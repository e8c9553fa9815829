/**
 * Tests with two tokens how a server computes, on a model created for this.
 *
 * Some servers divide a cross-entropy by the sum of its weights. With the signed weights of policy
 * gradients that is not a scale but nonsense (the sum may be 0 or negative), and the protocol does
 * not say which it is. So we send weights 3 and −1 and look at the reported loss.
 *
 * Older servers have a call `forward`; newer ones have `forward_only` in `forward_backward` instead.
 * A server that does not know that field would collect gradients while we only read: so it is tried
 * before it is trusted.
 */

import { EngineError } from "@pawl/core/engine/engine.js";
import { z } from "zod";
import type { ModelCalls } from "./remote-model.js";
import { parse, type Result } from "./server.js";
import type { Transport } from "./transport.js";
import { datumOf, numbersOf, tensorSchema } from "./wire.js";

const WEIGHTS = [0, 3, -1];
const IDS = [0, 1, 2];
/** Coarse enough for bfloat16, fine enough to tell a sum from half of it. */
const TOLERANCE = 0.05;

/** What servers answer to a call that they do not have. */
const NO_CALL: readonly number[] = [404, 405];

const outputs = z.object({
  loss_fn_outputs: z
    .array(z.object({ logprobs: tensorSchema, elementwise_loss: tensorSchema.optional() }))
    .length(1),
  metrics: z.record(z.string(), z.unknown()).default({}),
});

/** Rejects a server that normalises, or that reports nothing to tell by. */
export async function probeSignedWeights(
  server: string,
  call: (path: string, body: object) => Promise<Result>,
): Promise<void> {
  const data = [datumOf({ ids: IDS }, { weights: WEIGHTS }, false)];
  const result = await call("forward_backward", {
    forward_backward_input: { data, loss_fn: "cross_entropy" },
  });
  const { loss_fn_outputs, metrics } = parse(outputs, result, "forward_backward");
  const [output] = loss_fn_outputs;
  const [first, second] = numbersOf(output!.logprobs);
  const summed = -(3 * first! - second!);
  const reported =
    typeof metrics["loss:sum"] === "number"
      ? metrics["loss:sum"]
      : output!.elementwise_loss === undefined
        ? undefined
        : numbersOf(output!.elementwise_loss).reduce((sum, loss) => sum + loss, 0);
  if (reported === undefined)
    throw new EngineError(
      `the engine server at ${server} reports neither metrics["loss:sum"] nor elementwise_loss, so it may normalise weights, which distorts losses with weights of both signs. Use our own server (pawl serve engine)`,
    );
  if (Math.abs(reported - summed) <= TOLERANCE * Math.abs(summed)) return;
  throw new EngineError(
    `the engine server at ${server} does not sum weighted log-probabilities: for weights 3 and -1 it reports a loss of ${reported}, expected ${summed}${Math.abs(reported - summed / 2) <= TOLERANCE * Math.abs(summed) ? " (it divides by the sum of the weights)" : ""}. This distorts policy gradients, which have weights of both signs: choose another backend of that server, or use our own server (pawl serve engine)`,
  );
}

/** A forward pass as `forward_backward` without its backward pass. */
export function forwardOnly(body: object): [path: string, body: object] {
  const { forward_input, ...rest } = body as { readonly forward_input: object };
  return [
    "forward_backward",
    { ...rest, forward_backward_input: forward_input, forward_only: true },
  ];
}

/** Whether the server has the call `forward`; if not, `forward_only` must leave no gradient. */
export async function probeForward(transport: Transport, calls: ModelCalls): Promise<boolean> {
  const data = [datumOf({ ids: IDS }, { weights: WEIGHTS }, false)];
  const body = { forward_input: { data, loss_fn: "cross_entropy" } };
  // Without a number, so that none is missing if there is no such call.
  const { status } = await transport.post(
    "forward",
    { model_id: calls.id, ...body },
    { accept: [...NO_CALL, 400, 422], repeatable: true },
  );
  if (!NO_CALL.includes(status)) return true;
  const score = async (): Promise<string> => {
    const result = await calls.ask(...forwardOnly(body));
    return JSON.stringify(parse(outputs, result, "forward_backward").loss_fn_outputs);
  };
  const before = await score();
  const adam = { learning_rate: 0.1, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0 };
  try {
    await calls.change("optim_step", { adam_params: adam, type: "optim_step" });
  } catch (error) {
    // Some servers refuse a step without gradients, which is just as good.
    if (!(error instanceof EngineError)) throw error;
  }
  if ((await score()) !== before)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} has no call for a forward pass: it answers forward with status ${status}, and collects gradients although forward_only is set. Use our own server (pawl serve engine)`,
    );
  return false;
}
