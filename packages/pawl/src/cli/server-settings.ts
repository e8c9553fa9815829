/** Settings of a PyTorch server that do not depend on what it serves, or where. */
import { z } from "zod";

const count = z.int().min(1);

/** Their schema's fields. */
export const serverSettings = {
  dtype: z
    .enum(["float32", "bfloat16"])
    .optional()
    .describe(
      "compute precision (default: bfloat16 on GPUs, the only choice there; float32 on CPUs)",
    ),
  batchTokens: count.optional().describe("maximum tokens per forward pass"),
  memory: z
    .number()
    .positive()
    .optional()
    .describe(
      "maximum GPU memory of each process in GiB (default: as much as runs need, up to the whole GPU)",
    ),
  sampleRows: count
    .optional()
    .describe("maximum sequences sampled concurrently; fewer need less memory"),
  activationCheckpointing: z
    .boolean()
    .default(false)
    .describe("gradient checkpointing: less memory, a third more compute"),
  python: z.string().optional().describe("Python interpreter (default: $PAWL_PYTHON, or python3)"),
};
