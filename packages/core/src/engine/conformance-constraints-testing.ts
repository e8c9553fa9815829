/** What an engine with `capabilities.constraints` must do with answers that are held to something. */
import assert from "node:assert/strict";
import { createMasks, OUTSIDE } from "../constraint/token-masks.js";
import { vocabularyOf } from "../constraint/vocabulary.js";
import { add, entropy, input, logprob, mul, type Objective } from "../objectives/expression.js";
import type { Constraint } from "../text/constraint.js";
import {
  type ConformanceCheck,
  close,
  continuations,
  learn,
  tempered,
  toy,
  using,
} from "./conformance-tools-testing.js";
import { type Engine, EngineError, type TrainSequence } from "./engine.js";

/** What the tokens stand for, by id; the last one ends an answer. */
const WORDS = ['{"a":', "}", '"', "[", "]", ",", "true", "tr", "ue", "null", ..."0123456789abc {:"];
const END = WORDS.length;

/** An answer of a few tokens, some of which can be written in two ways. */
export const constraint: Constraint = {
  json: {
    type: "object",
    properties: { a: { enum: [true, null, 12, "ab"] } },
    required: ["a"],
  },
};

/** These tokens, of a model with so many. */
export const vocabulary = (size: number) =>
  vocabularyOf({
    vocabularySize: size,
    specialIds: new Set<number>(),
    endIds: [END],
    tokenBytes: (id) => (WORDS[id] === undefined ? undefined : Buffer.from(WORDS[id])),
  });

/** A check for engines that constrain; the others refuse. */
const withConstraints = (
  work: (engine: Engine, allowed: (ids: readonly number[]) => Uint8Array) => Promise<void>,
): ConformanceCheck["run"] => {
  return (create) =>
    using(create, async (engine) => {
      const { constraints, vocabularySize } = engine.capabilities;
      if (constraints !== true) return;
      const tokens = vocabulary(vocabularySize);
      engine.useVocabulary!(() => tokens);
      const masks = createMasks(constraint, tokens, vocabularySize);
      await work(engine, (ids) => {
        const state = ids.reduce((at, id) => masks.next(at, id), 0);
        assert.notEqual(state, OUTSIDE);
        return masks.allowed(state);
      });
    });
};

const prompt = [1, 2, 3, 4];
/** Asks for an answer that is held to it. */
export const request = { prompt, maxTokens: 16, stop: [[END]], seed: 5, constraint };

/** An answer behind the prompt, with what it was held to. */
export const answered = (tokens: readonly number[], temperature = 1) => {
  const ids = [...prompt, ...tokens];
  return {
    ids,
    targets: ids.map((_, at) => (at < prompt.length ? 0 : 1)),
    ...(temperature !== 1 && { temperatures: ids.map(() => temperature) }),
    constraints: [{ start: prompt.length, end: ids.length, constraint }],
  };
};

/** Some answers of an engine that has learnt a little. */
const draw = async (engine: Engine, temperature = 1) => {
  await learn(engine, toy, 4);
  const [samples] = await engine.sample([{ ...request, count: 12, temperature }]);
  return samples!;
};

/** Masks, log-probabilities and gradients of constrained answers. */
export const constraintChecks: readonly ConformanceCheck[] = [
  {
    name: "an engine that cannot constrain, or does not know its tokens, refuses constraints",
    run: (create) =>
      using(create, async (engine) => {
        const refused = (work: Promise<unknown>) =>
          assert.rejects(work, (error) => error instanceof EngineError);
        await refused(engine.sample([request]));
        await refused(engine.forward([answered([0, 9, 1, END])]));
      }),
  },
  {
    name: "what is sampled under a constraint is one of its answers, at any temperature",
    run: withConstraints(async (engine, allowed) => {
      for (const temperature of [0, 1, 3])
        for (const { tokens, stopReason } of await draw(engine, temperature)) {
          tokens.forEach((token, at) => {
            assert.equal(allowed(tokens.slice(0, at))[token], 1);
          });
          assert.equal(stopReason, "stop");
          assert.equal(tokens.at(-1), END);
        }
    }),
  },
  {
    name: "log-probabilities under a constraint are those among the allowed tokens, to 1e-4",
    run: withConstraints(async (engine, allowed) => {
      await learn(engine, toy, 4);
      const { entropies } = engine.capabilities;
      const own = tempered(await continuations(engine, prompt), 1);
      const mask = allowed([]);
      const sum = own.reduce((total, x, id) => total + (mask[id] ? Math.exp(x) : 0), 0);
      const ids = own.flatMap((_, id) => (mask[id] ? [id] : []));
      const results = await engine.forward(
        ids.map((id) => answered([id])),
        { entropies },
      );
      const expected = ids.map((id) => own[id]! - Math.log(sum));
      close(
        results.map(({ logprobs }) => logprobs[prompt.length]!),
        expected,
        1e-4,
      );
      const spread = expected.reduce((total, x) => total - Math.exp(x) * x, 0);
      for (const one of results)
        if (entropies) close([one.entropies![prompt.length]!], [spread], 1e-4);
    }),
  },
  {
    name: "sampled log-probabilities under a constraint equal those of forward, to 1e-4",
    run: withConstraints(async (engine) => {
      for (const temperature of [1, 0.6]) {
        const samples = await draw(engine, temperature);
        const plain = await engine.forward(samples.map(({ tokens }) => answered(tokens)));
        const cooled = engine.capabilities.temperatures
          ? await engine.forward(samples.map(({ tokens }) => answered(tokens, temperature)))
          : undefined;
        samples.forEach(({ logprobs, sampledLogprobs }, i) => {
          close(logprobs, plain[i]!.logprobs.subarray(prompt.length), 1e-4);
          if (sampledLogprobs !== undefined && cooled !== undefined)
            close(sampledLogprobs, cooled[i]!.logprobs.subarray(prompt.length), 1e-4);
        });
      }
    }),
  },
  {
    name: "an answer that has begun is held to the rest",
    run: withConstraints(async (engine, allowed) => {
      const begun = [0, 9];
      const [samples] = await engine.sample([
        { ...request, prompt: [...prompt, ...begun], begun: begun.length, count: 4 },
      ]);
      for (const { tokens } of samples!)
        tokens.forEach((token, at) => {
          assert.equal(allowed([...begun, ...tokens.slice(0, at)])[token], 1);
        });
    }),
  },
  {
    name: "a constraint changes nothing of the other requests in its batch",
    run: withConstraints(async (engine) => {
      await learn(engine, toy, 4);
      const free = { prompt, maxTokens: 16, seed: 9, count: 3 };
      const alone = await engine.sample([free, { ...request, constraint: undefined }]);
      const beside = await engine.sample([free, request]);
      assert.deepEqual(beside[0], alone[0]);
      assert.deepEqual((await engine.sample([free]))[0]![0]!.tokens, alone[0]![0]!.tokens);
    }),
  },
  {
    name: "under constraints, learning agrees with forward and follows the slope of its loss",
    run: withConstraints(async (engine) => {
      const samples = await draw(engine);
      const { entropies } = engine.capabilities;
      const linear = mul(input("weight"), logprob);
      const objective: Objective = {
        loss: entropies ? add(linear, mul(input("bonus"), entropy)) : linear,
        metrics: {},
      };
      const inputs = (ids: readonly number[], i: number) => ({
        weight: ids.map((_, j) => ((i + j) % 3) * 4e-3 - 6e-3),
        ...(entropies && { bonus: ids.map((_, j) => (j % 2) * 4e-3) }),
      });
      const sequences: readonly TrainSequence[] = samples.map(({ tokens }, i) => {
        const one = answered(tokens);
        return { ...one, inputs: inputs(one.ids, i) };
      });
      const forward = await engine.forward(sequences);
      for (const sparse of [false, true]) {
        const before = await engine.forwardBackward(sequences, { ...objective, sparse });
        if (!sparse)
          for (const [i, { logprobs }] of forward.entries())
            close(before.logprobs[i]!, logprobs, 1e-4);
        const rate = 0.03;
        const memoryless = { beta1: 0, beta2: 0, eps: 1, weightDecay: 0 };
        const { gradNorm } = await engine.optimStep({ learningRate: rate, ...memoryless });
        const after = await engine.forwardBackward(sequences, { ...objective, sparse });
        const end = await engine.discardGradients();
        const expected = (rate * (gradNorm ** 2 + gradNorm * end.gradNorm)) / 2;
        close([(before.loss - after.loss) / expected], [1], 0.02);
      }
    }),
  },
  {
    name: "an answer that its constraint does not allow is refused",
    run: withConstraints(async (engine) => {
      await assert.rejects(engine.forward([answered([0, 0])]), /token 5 \(0\) is not allowed/);
    }),
  },
];
