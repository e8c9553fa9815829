"""Scoring that waits for sampling: the same numbers, in which order, and with which weights."""
import threading
import unittest
from types import SimpleNamespace

import torch

from .backlog import Backlog
from .engine_types import Scored
from .errors import RequestError
from .futures import Future, Futures
from .losses import standard_objective
from .messages import Forward, SampleBatch
from .sampler import SampleRequest
from .service import Service
from .testing import ALONE, model_folder, random_sequences, tiny_engine
from .weights import AdamParams

LENGTHS = (40, 7, 25, 31, 12, 38)
# Batches of 64 tokens: several for these sequences.
SMALL = 64


def scored(engine, sequences, reference=True):
    return engine.score(sequences, reference=reference, entropies=True, values=False)


def learn(engine, seed=1):
    engine.learn(random_sequences((20, 31), seed=seed), standard_objective("cross_entropy", {}))
    engine.step(AdamParams(0.1))


def forward(sequences, reference=True):
    return Future("forward", {"model_id": "m"}, Forward(sequences, reference, True, False))


class BacklogTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = model_folder()
        cls.sequences = random_sequences(LENGTHS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def engine(self, **options):
        engine = tiny_engine(self.folder.name, batch_tokens=SMALL, **options)
        if engine.lora_rank:
            # An adapter that does nothing would be its own reference.
            learn(engine, seed=5)
        engine.snapshot_reference()
        return engine

    def test_the_reference_is_that_of_the_snapshot_and_the_policy_is_untouched(self):
        for options in ({}, {"lora_rank": 2}):
            engine = self.engine(**options)
            before = scored(engine, self.sequences, reference=False)
            learn(engine)
            after = scored(engine, self.sequences, reference=False)
            places = {name: p.data_ptr() for name, p in engine.weights.parameters.items()}
            reference = scored(engine, self.sequences)
            # The same batches with the same weights: the same bits.
            self.assertTrue(torch.equal(reference.logprobs, before.logprobs))
            self.assertTrue(torch.equal(reference.entropies, before.entropies))
            self.assertFalse(torch.allclose(reference.logprobs, after.logprobs))
            self.assertTrue(torch.equal(scored(engine, self.sequences, reference=False).logprobs, after.logprobs))
            self.assertEqual({name: p.data_ptr() for name, p in engine.weights.parameters.items()}, places)

    def test_batch_by_batch_between_other_work_gives_the_same_bits(self):
        for options in ({}, {"lora_rank": 2}):
            engine, undisturbed = self.engine(**options), self.engine(**options)
            whole = scored(undisturbed, self.sequences)
            requests = [SampleRequest((1, 2, 3), 2, 5, seed) for seed in range(3)]
            rows = [[row.tokens for row in group] for group in undisturbed.sample(requests)]
            scoring = engine.scoring(self.sequences, reference=True, entropies=True, values=False)
            self.assertGreater(len(scoring.left), 2)
            engine.advance(scoring)
            # Sampling in between has the policy's weights.
            self.assertEqual([[row.tokens for row in group] for group in engine.sample(requests)], rows)
            learn(engine)
            while scoring.left:
                engine.advance(scoring)
            found = scoring.result()
            self.assertTrue(torch.equal(found.logprobs, whole.logprobs))
            self.assertTrue(torch.equal(found.entropies, whole.entropies))

    def test_answers_every_request_and_reports_what_fails(self):
        engine = self.engine()
        backlog = Backlog(lambda work, found: {"sum": float(found.logprobs.sum())})
        good, bad = forward(self.sequences), forward(self.sequences)
        backlog.add(good, engine)
        backlog.add(bad, SimpleNamespace(scoring=self.fail_to_score))
        self.assertTrue(backlog.advance())
        self.assertFalse(good.done.is_set())
        backlog.finish()
        self.assertTrue(backlog.is_empty)
        self.assertAlmostEqual(good.result["sum"], float(scored(engine, self.sequences).logprobs.sum()))
        self.assertIn("no reference here", str(bad.error))
        self.assertFalse(backlog.advance())

    def fail_to_score(self, *_, **__) -> Scored:
        raise RequestError("no reference here")

    def test_sampling_goes_first_and_everything_else_in_order(self):
        engine, futures = self.engine(), Futures()
        service = Service(None, ALONE, engine.options, futures)
        service.models["m"] = engine
        ended = []

        def add(name, future):
            finish = future._finish
            future._finish = lambda size: (ended.append(name), finish(size))
            futures.add(future, None)
            return future

        expected = scored(engine, self.sequences)
        batch = SampleBatch((SampleRequest((1, 2, 3), 1, 4, 0),))
        first = add("score", forward(self.sequences))
        add("score again", forward(self.sequences))
        add("sample", Future("sample_batch", {"model_id": "m"}, batch))
        # A new reference belongs to the requests after it.
        learn(engine)
        add("snapshot", Future("snapshot_reference", {"model_id": "m"}, None))
        add("policy", forward(self.sequences, reference=False))
        last = add("score the new one", forward(self.sequences))
        threading.Thread(target=service.lead, daemon=True).start()
        self.assertTrue(last.done.wait(60))
        self.assertEqual(ended, ["sample", "score", "score again", "snapshot", "policy", "score the new one"])
        found = torch.cat([output["logprobs"] for output in first.result["loss_fn_outputs"]])
        self.assertTrue(torch.equal(found, expected.logprobs))
        now = torch.cat([output["logprobs"] for output in last.result["loss_fn_outputs"]])
        self.assertFalse(torch.allclose(now, expected.logprobs))

    def test_what_has_waited_too_long_goes_before_sampling(self):
        engine, futures = self.engine(), Futures()
        service = Service(None, ALONE, engine.options, futures)
        service.models["m"] = engine
        score = forward(self.sequences)
        service.backlog.add(score, engine)
        service.backlog.entries[0].since -= 3600
        sample = futures.add(Future("sample_batch", {"model_id": "m"}, SampleBatch((SampleRequest((1, 2), 1, 4, 0),))), None)
        threading.Thread(target=service.lead, daemon=True).start()
        self.assertTrue(sample.done.wait(60))
        self.assertTrue(score.done.is_set())
        self.assertLessEqual(score.done_at, sample.done_at)
