/**
 * Tests with two tokens whether a server sums weighted log-probabilities without normalising.
 *
 * Some servers divide a cross-entropy by the sum of its weights. With the signed weights of policy
 * gradients that is not a scale but nonsense (the sum may be 0 or negative), and the protocol does
 * not say which it is. So we send weights 3 and −1 to a model created for this, and look at the
 * reported loss.
 */
import { z } from "zod";
import { EngineError } from "../engine.js";
import { parse, type Result } from "./server.js";
import { datumOf, numbersOf, tensorSchema } from "./wire.js";

const WEIGHTS = [0, 3, -1];
const IDS = [0, 1, 2];
/** Coarse enough for bfloat16, fine enough to tell a sum from half of it. */
const TOLERANCE = 0.05;

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
