import { isLoopback } from "@pawl/core/http/http-access.js";
import { openRetriever } from "@pawl/worlds/retrieval/retriever-open.js";
import { createRetrieverServer } from "@pawl/worlds/retrieval/retriever-server.js";
import { madeUpCorpus, searchOptions } from "@pawl/worlds/search/search.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { print, warn } from "./io.js";
import { aborted, close, listen } from "./listen.js";
import { host, port } from "./serve-key.js";

const { encoder, encoderModel, prefixes, cache } = searchOptions.shape;

/** `pawl serve retriever`: our search index behind Search-R1's HTTP API. */
export const serveRetriever = defineCommand({
  name: "serve retriever",
  summary: "serve a corpus over HTTP, as Search-R1's retrieval server does",
  plugins: "none",
  details:
    'POST /retrieve {"queries": ["…"], "topk": 3, "return_scores": true} answers\n{"result": [[{"document": {"id", "contents"}, "score"}]]}. There is no authentication.',
  options: () =>
    z.strictObject({
      corpus: z
        .string()
        .optional()
        .describe(
          "JSONL file of {id, contents}, optionally .gz (default: passages of the made-up world)",
        ),
      retriever: z.enum(["bm25", "dense"]).default("bm25").describe("search method"),
      encoder,
      encoderModel,
      prefixes,
      host,
      port,
      topk: z
        .int()
        .min(1)
        .max(1000)
        .default(3)
        .describe("passages per query if the request does not say"),
      cache,
    }),
  examples: [
    ["pawl serve retriever", "the made-up world at http://127.0.0.1:8000/retrieve"],
    ["pawl serve retriever --corpus wiki.jsonl --port 9000", "BM25 over your own corpus"],
  ],
  async run({ config, io, signal }) {
    const corpus = config.corpus ?? madeUpCorpus(searchOptions.parse({}));
    const retriever = openRetriever({ ...config, corpus });
    // A first search loads what dense retrieval needs, so that its errors show here.
    await retriever.search("hello", 1, signal);
    const server = createRetrieverServer({ retriever, topk: config.topk });
    const { address, host } = await listen(server, config.port, config.host);
    print(io, `${retriever.name} at http://${host}/retrieve; Ctrl-C stops it`);
    if (!isLoopback(address)) {
      warn(io, `anyone who can reach ${host} can read the corpus: there is no authentication`);
    }
    await aborted(signal);
    await close(server);
    return exitCodes.done;
  },
});
