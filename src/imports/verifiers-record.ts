/**
 * Lines of verifiers' `traces.jsonl`: a graph of messages for each trace. Every path from a root to
 * a leaf is a transcript; where paths share their beginning, it is imitated once.
 */
import { z } from "zod";
import type { ChatMessage } from "../agents/chat.js";
import { checkOrder, messageSchema, readMessage, readTools } from "./chat-record.js";
import { recordOf, type Transcript, Unreadable } from "./transcript.js";

const nodeSchema = z.looseObject({
  parent: z.int().nullish(),
  message: messageSchema,
  sampled: z.boolean().optional(),
});

const rewardSchema = z.looseObject({ score: z.number(), weight: z.number().default(1) });

const traceSchema = z.looseObject({
  tools: z.unknown().optional(),
  nodes: z.array(nodeSchema),
  rewards: z.record(z.string(), rewardSchema.nullable()).default({}),
  metrics: z.record(z.string(), z.number().nullable()).default({}),
  agent: z.looseObject({ name: z.string().optional() }).optional(),
});

const episodeSchema = z.looseObject({
  env: z.looseObject({ id: z.string().optional() }).optional(),
  task: z.looseObject({
    key: z.string().nullish(),
    data: z
      .looseObject({
        id: z.string().nullish(),
        idx: z.number().nullish(),
        name: z.string().nullish(),
        split: z.string().optional(),
      })
      .optional(),
  }),
  ok: z.boolean().optional(),
  traces: z.array(traceSchema),
});

type Trace = z.output<typeof traceSchema>;
type Node = z.output<typeof nodeSchema>;

/** Whether a record is a line of `traces.jsonl`. */
export function isVerifiersRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && "traces" in value && "task" in value;
}

/** Reads a line; one that is none, or was not scored, throws `Unreadable`. */
export function verifiersTranscripts(value: unknown, where: string): readonly Transcript[] {
  const { env, task, ok, traces } = recordOf(episodeSchema, value);
  if (ok === false) throw new Unreadable("the episode failed");
  const { data } = task;
  const id = data?.id ?? task.key ?? (data?.idx == null ? undefined : String(data.idx));
  return traces.flatMap((trace) => {
    const tools = readTools(trace.tools);
    return pathsOf(trace.nodes).map(({ messages, own }): Transcript => {
      checkOrder(messages);
      return {
        where,
        ...(env?.id !== undefined && env.id !== "" && { env: env.id }),
        task: id ?? where,
        split: data?.split ?? "train",
        type: data?.name ?? "any",
        policy: trace.agent?.name ?? "imported",
        tools,
        messages,
        own,
        ...worthOf(trace),
      };
    });
  });
}

/** The weighted sum of the rewards, as verifiers adds them up; null means that none was given. */
function worthOf({ rewards, metrics }: Trace): Pick<Transcript, "return" | "success"> {
  const given = Object.values(rewards).flatMap((one) => one ?? []);
  if (given.length === 0 && Object.keys(rewards).length > 0)
    throw new Unreadable("the trace was not scored");
  const worth = given.reduce((sum, { score, weight }) => sum + score * weight, 0);
  return { return: worth, success: metrics.success == null ? worth >= 1 : metrics.success >= 1 };
}

/** The paths of the graph; a message that is on several is the model's own on the first only. */
function pathsOf(
  nodes: readonly Node[],
): readonly { readonly messages: readonly ChatMessage[]; readonly own: readonly boolean[] }[] {
  const hasChild = new Set(nodes.flatMap(({ parent }) => parent ?? []));
  const taken = new Set<number>();
  return nodes.flatMap((_, leaf) => {
    if (hasChild.has(leaf)) return [];
    const path: number[] = [];
    for (let at: number | undefined = leaf; at !== undefined; at = nodes[at]!.parent ?? undefined) {
      if (nodes[at] === undefined || path.includes(at) || path.length > nodes.length)
        throw new Unreadable("nodes whose parents are no graph");
      path.unshift(at);
    }
    const own = path.map((at) => {
      const { message, sampled } = nodes[at]!;
      const first = !taken.has(at);
      taken.add(at);
      return first && message.role === "assistant" && sampled !== false;
    });
    return [{ messages: path.map((at) => readMessage(nodes[at]!.message)), own }];
  });
}
