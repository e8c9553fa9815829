/** What comes over the wire: requests to our servers, and answers of servers to our clients. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAgentGymEnv } from "@pawl/agents/agentgym/agentgym-env.js";
import { agentGymServer } from "@pawl/agents/agentgym/agentgym-server.js";
import { dialects } from "@pawl/agents/agentgym/dialects.js";
import { createEnvServer } from "@pawl/agents/openenv/env-server.js";
import { answerMessage } from "@pawl/agents/openenv/env-session.js";
import { createOpenEnv } from "@pawl/agents/openenv/openenv-env.js";
import { serveEpisode } from "@pawl/agents/openenv/served-episode.js";
import { describeServer } from "@pawl/agents/openenv/server-facts.js";
import { checkStep, checkText } from "@pawl/core/envs/bounded-env.js";
import { askEndpoint, chatEndpointOptions } from "@pawl/core/envs/chat-endpoint.js";
import type { RemoteEnv } from "@pawl/core/envs/env.js";
import { DEFAULT_LIMITS } from "@pawl/core/envs/limits.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { chatClientOptions, createChatClient } from "@pawl/core/rollout/policies/chat-client.js";
import { openSession } from "@pawl/engine-remote/remote/server.js";
import { createTransport } from "@pawl/engine-remote/remote/transport.js";
import { findServer } from "@pawl/engine-remote/sampler/dialects.js";
import { createWire } from "@pawl/engine-remote/sampler/wire.js";
import { openEndpointEncoder } from "@pawl/models/embeddings/endpoint-encoder.js";
import { mlflow } from "@pawl/training/trackers/mlflow.js";
import { trackio } from "@pawl/training/trackers/trackio.js";
import { memoryCorpus } from "@pawl/worlds/retrieval/corpus.js";
import { bm25Retriever } from "@pawl/worlds/retrieval/retriever-bm25.js";
import { httpRetriever } from "@pawl/worlds/retrieval/retriever-open.js";
import { createRetrieverServer } from "@pawl/worlds/retrieval/retriever-server.js";
import { WebSocketServer } from "ws";
import { type Target, text } from "./target.js";

const lines = (...parts: readonly unknown[]): readonly Buffer[] =>
  text(parts.map((part) => JSON.stringify(part)).join("\n"));

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Makes something when it is first needed. */
function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Posts bytes as JSON; a server of ours may refuse them, and never fails. */
async function posted(port: number, path: string, bytes: Buffer): Promise<void> {
  const asked = request({
    ...{ port, path, host: "127.0.0.1", method: "POST", agent: false },
    headers: { "content-type": "application/json", "content-length": bytes.length },
  });
  asked.end(bytes);
  const [reply] = await once(asked, "response");
  const chunks: Buffer[] = [];
  for await (const chunk of reply) chunks.push(chunk);
  const answer = Buffer.concat(chunks).toString();
  if (reply.statusCode >= 500) throw new Error(`${path} answered ${reply.statusCode}: ${answer}`);
  JSON.parse(answer);
}

/** A server that answers every request with the same bytes, and every message of a socket with a line of them. */
const liar = lazily(async () => {
  let answer: Uint8Array = new Uint8Array();
  const server = createServer((_, reply) => {
    reply.writeHead(200, { "content-type": "application/json", connection: "close" });
    reply.end(answer);
  });
  new WebSocketServer({ server }).on("connection", (socket) => {
    const said = Buffer.from(answer).toString("latin1").split("\n");
    socket.on("error", () => undefined);
    socket.on("message", () => {
      const line = said.shift();
      if (line === undefined) socket.terminate();
      else socket.send(line);
    });
  });
  const port = await listening(server);
  return {
    url: `http://127.0.0.1:${port}`,
    say(bytes: Buffer): void {
      answer = bytes;
    },
  };
});

/** A client of ours at a server that answers with the given bytes. */
const answered =
  (use: (url: string) => unknown): Target["run"] =>
  async (bytes) => {
    const { url, say } = await liar();
    say(bytes);
    await use(url);
  };

const household = lazily(async () => openEnvironment({ name: "household" }));
const envServer = lazily(async () => {
  const { server } = await createEnvServer({ environment: await household() });
  return listening(server);
});
const retriever = lazily(() => {
  const corpus = memoryCorpus("oaks", "oaks", [{ id: "1", contents: "Oak\nA tree." }]);
  return listening(createRetrieverServer({ retriever: bm25Retriever(corpus) }));
});

const run = { id: "1", name: "run", project: "p", kind: "train", config: {}, startedAt: 0 };
const batch = {
  lines: [{ step: 1, time: 0, metrics: { update: 0, "train.return": 1 }, traces: [] }],
  alarms: [],
};

/** A step or two of an episode, with the checks that a rollout makes. */
async function play(env: RemoteEnv): Promise<void> {
  const task = { id: "train/0", split: "train", type: "task" };
  try {
    checkText(await env.reset(task, 1), "the first observation", DEFAULT_LIMITS);
    checkText(env.goal, "the goal", DEFAULT_LIMITS);
    env.admissibleActions?.();
    checkStep(await env.step("look"), DEFAULT_LIMITS);
  } finally {
    await env.close();
  }
}

const seen = {
  type: "observation",
  data: {
    observation: { text: "a room", goal: "look", valid: true, success: false, metadata: {} },
    reward: 0,
    done: false,
  },
};
const chatAnswer = {
  choices: [{ message: { content: "look", tool_calls: [] }, finish_reason: "stop" }],
};

/** All targets by name. */
export const wireTargets: Readonly<Record<string, Target>> = {
  "env-messages": {
    inputs: () =>
      lines(
        { type: "reset", data: { split: "train", index: 1, seed: 3 } },
        { type: "step", data: { action: "look" } },
        { type: "state", data: {} },
        { type: "mcp", data: { jsonrpc: "2.0", id: 1, method: "tools/list" } },
      ),
    async run(bytes) {
      const episode = serveEpisode(await household());
      for (const message of bytes.toString().split("\n")) {
        const answer = await answerMessage(episode, message, (fault) => {
          throw fault;
        });
        if (answer !== undefined) JSON.parse(answer);
      }
    },
  },
  "env-requests": {
    inputs: () =>
      text(
        { split: "train", index: 1, seed: 3 },
        { split: "train", start: 0, stop: 2 },
        { jsonrpc: "2.0", id: 1, method: "tools/list" },
      ),
    async run(bytes) {
      const port = await envServer();
      for (const path of ["/reset", "/step", "/mcp", "/household/task", "/household/task_range"])
        await posted(port, path, bytes);
    },
  },
  "retriever-requests": {
    inputs: () => text({ queries: ["oak", "tree"], topk: 3, return_scores: true }),
    run: async (bytes) => posted(await retriever(), "/retrieve", bytes),
  },
  "openenv-answers": {
    inputs: () => lines(seen, seen),
    run: answered((url) =>
      play(
        createOpenEnv({
          facts: {
            name: "room",
            description: "",
            action: { properties: { action: { type: "string" } }, required: ["action"] },
            hasTools: false,
          },
          socket: { url: url.replace("http", "ws"), headers: {}, connectMs: 5000 },
          ...{ retryMs: 0, goal: "look", goalIsGiven: false, maxReturn: 1, resetData: () => ({}) },
        }) as RemoteEnv,
      ),
    ),
  },
  "openenv-facts": {
    inputs: () =>
      lines(
        { action: { title: "Action", properties: {} }, observation: {}, state: {} },
        { name: "room", description: "a room" },
        ["room"],
        [{ name: "train", type: "train" }],
        { num_tasks: 2 },
        [{ id: "a" }, { id: "b" }],
      ),
    run(bytes) {
      const answers = bytes.toString().split("\n");
      const dialogue = describeServer();
      // A server that has more to say than this is cut short.
      for (let next = dialogue.next(), turn = 0; !next.done && turn < 100; turn++)
        next = dialogue.next({ status: 200, text: answers[turn % answers.length]! });
    },
  },
  "agentgym-answers": {
    inputs: () =>
      text({ id: 1, observation: "Your task is to: look", reward: 0, done: false, score: 0 }),
    run: answered(async (url) => {
      for (const dialect of [dialects.alfworld!, dialects.babyai!]) {
        const server = agentGymServer(url, dialect);
        await play(createAgentGymEnv({ server, dialect, free: [], numberOf: () => 1 }));
      }
    }),
  },
  "tracker-answers": {
    inputs: () =>
      text({
        experiment: { experiment_id: "1" },
        experiment_id: "1",
        run: { info: { run_id: "r" } },
        runs: [{ info: { run_id: "r" } }],
      }),
    run: answered(async (url) => {
      for (const kind of [mlflow, trackio])
        await kind.open(url, {}).send(run, batch, AbortSignal.timeout(5000));
    }),
  },
  "retriever-answers": {
    inputs: () =>
      text({ result: [[{ document: { id: "1", contents: "Oak\nA tree." }, score: 1 }]] }),
    run: answered((url) => httpRetriever({ url, retries: 0 }).search("oak", 3)),
  },
  "encoder-answers": {
    inputs: () => text({ data: [{ index: 0, embedding: [0.5, 1] }] }),
    run: answered(async (url) => {
      const encoder = await openEndpointEncoder({ url, model: "m", retries: 0 });
      await encoder.encode(["a"]);
    }),
  },
  "chat-answers": {
    inputs: () => text(chatAnswer),
    run: answered(async (url) => {
      const common = { baseUrl: url, model: "m", retries: 0 };
      const messages = [{ role: "user" as const, content: "hi" }];
      await createChatClient(chatClientOptions.parse(common))(messages, 1);
      await askEndpoint(chatEndpointOptions.parse(common), messages);
    }),
  },
  "sampler-answers": {
    inputs: () =>
      text({ data: [{ id: "m", max_model_len: 64 }], version: "1", model_path: "m", text: "a" }),
    run: answered((url) => findServer(createWire(url, { retries: 0 }), undefined)),
  },
  "engine-sessions": {
    inputs: () =>
      text({
        supported_models: [{ model_name: "tiny", max_context_length: 64 }],
        session_id: "s",
        pawl: { version: 1 },
      }),
    run: answered(async (url) => {
      const transport = createTransport({ url, giveUpAfterMs: 0 });
      (await openSession(transport, { connectMs: 0 })).close();
    }),
  },
};
