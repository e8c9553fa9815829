"""Pages: who uses them, which are kept, and what happens when there is no room."""
import random
import tempfile
import unittest
import weakref
from pathlib import Path
from unittest import mock

import torch

from .errors import RequestError
from .losses import standard_objective
from .decoder import Decoder
from .page_pool import PagePool, longer_text, text_of
from .pages import PAGE, Pages
from .sampler import SampleRequest
from .testing import model_folder, random_sequences, tiny_engine
from .weights import AdamParams


def small_pool(most: int) -> PagePool:
    return PagePool(Pages(torch.zeros(1, 1, PAGE, 1, 2), torch.zeros(1, 1, PAGE, 1, 2)), lambda _: most)


class PagePoolTest(unittest.TestCase):
    def test_there_are_as_many_pages_as_were_needed_and_their_content_moves_along(self):
        pool = small_pool(10)
        self.assertTrue(pool.reserve(2))
        first = pool.take(2)
        for page in first:
            pool.pages.keys[0, page] = page
        self.assertEqual(pool.pages.count, 2)
        self.assertTrue(pool.reserve(3))
        self.assertEqual(pool.pages.count, 5)
        second = pool.take(3)
        self.assertEqual(len({*first, *second, 0}), 6)
        for page in first:
            self.assertTrue((pool.pages.keys[0, page] == page).all())
        self.assertFalse(pool.reserve(6))
        pool.give(first)
        self.assertTrue(pool.reserve(6))

    def test_kept_text_is_found_until_its_place_is_needed_oldest_first(self):
        pool = small_pool(4)
        texts = [text_of(torch.arange(64) + i) for i in range(3)]
        for text in texts:
            self.assertTrue(pool.reserve(1))
            pages = pool.take(1)
            pool.keep(text, pages)
        found = lambda: [pool.find(text, 64)[0] for text in texts]
        held = found()
        self.assertEqual([len(pages) for pages in held], [1, 1, 1])
        for pages in held:
            pool.give(pages)
        # Finding and using the first again makes the second the oldest.
        pool.share(held[0])
        pool.give(held[0])
        self.assertTrue(pool.reserve(2))
        pool.take(2)
        self.assertEqual(found(), [held[0], [], held[2]])
        pool.forget()
        self.assertEqual(found(), [[], [], []])
        self.assertEqual((pool.used, len(pool.free)), (2, 2))

    def test_a_last_page_goes_to_one_text_that_continues_it(self):
        pool = small_pool(10)
        tokens = torch.randint(100, (150,))
        pool.reserve(4)
        held = [pool.take(2), pool.take(2)]
        for other, pages in enumerate(held):
            text = tokens[:100].clone()
            text[70] += other
            pool.keep(text_of(text), pages)
            pool.keep_last(text_of(text), pages[1])
        for pages in held:
            pool.give(pages)
        longer = text_of(tokens)
        full, last, known = pool.find(longer, 149)
        self.assertEqual((len(full), known), (1, 100))
        # Not if it holds more than may be known.
        self.assertEqual(pool.find(longer, 99)[1:], (None, 64))
        pool.share([*full, last])
        self.assertEqual(pool.find(longer, 149), (full, None, 64))
        pool.claim(last)
        pool.give([*full, last])
        self.assertEqual(pool.find(longer, 149), (full, None, 64))
        changed = tokens.clone()
        changed[70] += 1
        self.assertEqual(pool.find(text_of(changed), 149)[2], 100)
        changed[99] += 1
        self.assertEqual(pool.find(text_of(changed), 149)[2], 64)

    def test_text_that_nobody_comes_back_to_does_not_pile_up(self):
        pool = small_pool(1000)
        for i in range(50):
            pool.reserve(2)
            pages = pool.take(2)
            pool.keep(text_of(torch.arange(128) + 1000 * i), pages)
            pool.give(pages)
        self.assertLessEqual(pool.pages.count, 6)

    def test_digests_are_those_of_the_whole_text(self):
        text = torch.randint(100, (200,))
        digests = text_of(text).digests
        self.assertEqual(len(digests), 3)
        self.assertEqual(longer_text(text_of(text[:130]), text[130:].tolist()).digests, digests)
        changed = text.clone()
        changed[3] += 1
        self.assertTrue(all(a != b for a, b in zip(digests, text_of(changed).digests)))

    def test_pages_have_one_place_each_whatever_happens(self):
        rand, pool = random.Random(3), small_pool(40)
        held: list[list[int]] = []
        for step in range(3000):
            if held and rand.random() < 0.5:
                pool.give(held.pop(rand.randrange(len(held))))
            elif rand.random() < 0.02:
                pool.forget()
            else:
                text = text_of(torch.full((rand.randrange(1, 4 * PAGE),), rand.randrange(6)))
                found, last, _ = pool.find(text, len(text.data) // 8)
                begun = [*found, *([] if last is None else [last])]
                missing = len(text.digests) + 1 - len(begun)
                pool.share(begun)
                if not pool.reserve(missing):
                    pool.give(begun)
                    continue
                if last is not None:
                    pool.claim(last)
                pages = [*begun, *pool.take(missing)]
                if rand.random() < 0.7:
                    pool.keep(text, pages)
                    pool.keep_last(text, pages[-1])
                held.append(pages)
            inside = {page for pages in held for page in pages}
            self.assertEqual(pool.used, len(inside), f"step {step}")
            self.assertFalse(inside & set(pool.free))
            self.assertEqual(len(set(pool.free)), len(pool.free))
            self.assertNotIn(0, inside)


class ContinuingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = model_folder(max_position_embeddings=1024)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def play(self, engine, continued, turns=6, rows=5):
        """Some conversations; returns the texts, and how many tokens were prefilled."""
        random.seed(0)
        token = lambda: random.randrange(40)
        shared = [token() for _ in range(70)]
        texts = [[*shared, *(token() for _ in range(10 * row))] for row in range(rows)]
        logprobs = []
        model, count = engine.model.forward, [0]

        def counted(ids, positions, attend, finish):
            count[0] += len(ids)
            return model(ids, positions, attend, finish)

        with mock.patch.object(engine.model, "forward", counted):
            for turn in range(turns):
                found = engine.sample([SampleRequest(tuple(text), 1, 7, 100 * turn + i, continued=continued) for i, text in enumerate(texts)])
                for text, (row,) in zip(texts, found):
                    logprobs.append(row.logprobs)
                    text += [*row.tokens, *(token() for _ in range(9))]
        return texts, logprobs, count[0]

    def test_prompts_that_continue_give_the_same_samples_and_read_only_what_is_new(self):
        plain, kept = tiny_engine(self.folder.name), tiny_engine(self.folder.name)
        texts, logprobs, read = self.play(plain, False)
        again, others, less = self.play(kept, True)
        self.assertEqual(again, texts)
        for a, b in zip(logprobs, others):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=0, atol=1e-5)
        # Each turn reads the token that was chosen last, and what came after it.
        first = sum(70 + 10 * row for row in range(5))
        # Decoding is done for eight rows, of which three are idle.
        decoded = 6 * 6 * 8
        self.assertEqual(less, first + 5 * 5 * (9 + 1) + decoded)
        self.assertLess(less, 0.4 * read)
        self.assertEqual(kept.sampler.pool.used, 0)

    def test_what_was_read_with_other_weights_is_not_used(self):
        engine, fresh = tiny_engine(self.folder.name), tiny_engine(self.folder.name)
        prompt = tuple(range(30)) * 5
        request = SampleRequest(prompt, 3, 5, 1, continued=True)
        engine.sample([request])
        for model in (engine, fresh):
            model.learn(random_sequences((40, 30)), standard_objective("cross_entropy", {}))
            model.step(AdamParams(0.1))
        self.assertEqual([row.tokens for row in engine.sample([request])[0]], [row.tokens for row in fresh.sample([request])[0]])
        with tempfile.TemporaryDirectory() as root:
            tiny_engine(self.folder.name).save(Path(root) / "a", optimizer=False)
            engine.load(Path(root) / "a", optimizer=False)
        expected = tiny_engine(self.folder.name).sample([request])[0]
        self.assertEqual([row.logprobs for row in engine.sample([request])[0]], [row.logprobs for row in expected])

    def test_samples_of_one_prompt_continue_from_shared_pages(self):
        engine, plain = tiny_engine(self.folder.name), tiny_engine(self.folder.name)
        prompt = tuple(range(30)) * 5
        for count in (1, 4):
            first = [model.sample([SampleRequest(prompt, count, 6, 1, continued=True)])[0] for model in (engine, plain)]
            for index in range(count):
                longer = (*prompt, *first[0][index].tokens, *range(20))
                request = SampleRequest(longer, 2, 6, 2, continued=True)
                found, expected = engine.sample([request])[0], plain.sample([SampleRequest(longer, 2, 6, 2)])[0]
                self.assertEqual([row.tokens for row in found], [row.tokens for row in expected])

    def test_a_prompt_that_never_fits_is_an_error_that_names_the_memory(self):
        engine = tiny_engine(self.folder.name)
        with mock.patch.object(engine.sampler.pool, "_most", lambda _: 1):
            with self.assertRaisesRegex(RequestError, r"a prompt of 100 tokens and 50 new ones need .* GiB of memory for keys and values"):
                engine.sample([SampleRequest(tuple(range(20)) * 5, 1, 50, 0)])
        self.assertEqual(len(engine.sample([SampleRequest((1, 2), 1, 5, 0)])[0][0].tokens), 5)


class NoMemoryTest(unittest.TestCase):
    """A GPU without memory, by an error raised where it would come: there is no GPU in these tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = model_folder()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def limited(self, engine, tokens):
        """Passes over more than so many tokens fail."""
        model = engine.model.forward

        def forward(ids, *rest):
            if len(ids) > tokens:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate")
            return model(ids, *rest)

        return mock.patch.object(engine.model, "forward", forward)

    def test_batches_get_smaller_and_the_gradient_stays_right(self):
        sequences = random_sequences((300, 200, 250, 100) * 12)
        objective = standard_objective("cross_entropy", {})
        expected, engine = tiny_engine(self.folder.name, batch_tokens=8192), tiny_engine(self.folder.name, batch_tokens=8192)
        engine.sample([SampleRequest((1, 2, 3), 1, 4, 0)])
        for model in (expected, engine):
            model.learn(random_sequences((64,), seed=5), objective)
        wanted = expected.learn(sequences, objective)
        with self.limited(engine, 2500):
            found = engine.learn(sequences, objective)
            engine.score(sequences, reference=False, entropies=True, values=False)
        self.assertEqual(engine.batch_tokens, 2048)
        self.assertEqual(engine.sampler.pool.pages.count, 0)
        self.assertAlmostEqual(found.loss, wanted.loss, 3)
        for name, gradient in expected.weights.gradients.items():
            torch.testing.assert_close(engine.weights.gradients[name], gradient, rtol=1e-3, atol=1e-5)

    def test_a_gradient_that_cannot_be_kept_is_an_error_and_not_a_part_of_one(self):
        sequences, objective = random_sequences((200,) * 10), standard_objective("cross_entropy", {})
        engine = tiny_engine(self.folder.name)
        engine.learn(sequences, objective)
        with self.limited(engine, 100), self.assertRaisesRegex(RequestError, "the gradient was cleared and the weights are unchanged"):
            engine.learn(sequences, objective)
        self.assertEqual(engine.weights.gradients, {})

    def test_the_smallest_batch_that_fails_is_an_error_with_a_way_out(self):
        engine = tiny_engine(self.folder.name)
        with self.limited(engine, 100), self.assertRaisesRegex(RequestError, "no memory for a batch of 1024 tokens.*--activation-checkpointing"):
            engine.learn(random_sequences((200,) * 10), standard_objective("cross_entropy", {}))
        self.assertEqual(engine.weights.gradients, {})

    def test_prompts_are_prefilled_in_halves(self):
        engine, plain = tiny_engine(self.folder.name), tiny_engine(self.folder.name)
        requests = [SampleRequest(tuple(range(30)), 1, 4, seed) for seed in range(7)]
        with self.limited(engine, 70):
            found = engine.sample(requests)
        self.assertEqual([row.tokens for (row,) in found], [row.tokens for (row,) in plain.sample(requests)])

    def test_a_decode_step_that_fails_is_run_again(self):
        engine, plain = tiny_engine(self.folder.name), tiny_engine(self.folder.name)
        requests = [SampleRequest(tuple(range(30)), 1, 6, seed) for seed in range(3)]
        run, failures = Decoder.run, [torch.cuda.OutOfMemoryError("CUDA out of memory")]

        def fail_once(decoder, wanted):
            if decoder.steps[0] == 3 and failures:
                raise failures.pop()
            return run(decoder, wanted)

        with mock.patch.object(Decoder, "run", fail_once):
            found = engine.sample(requests)
        self.assertEqual(failures, [])
        self.assertEqual([row.tokens for (row,) in found], [row.tokens for (row,) in plain.sample(requests)])

    def test_a_decoder_notices_that_one_half_of_the_pages_has_moved(self):
        engine = tiny_engine(self.folder.name)
        engine.sample([SampleRequest((1, 2, 3), 1, 4, 0)])
        (decoder,) = engine.sampler.decoders.values()
        self.assertFalse(decoder.is_stale)
        pages = engine.sampler.pool.pages
        before, keys, values = pages.count, weakref.ref(pages.keys), pages.values
        with mock.patch.object(torch.Tensor, "new_zeros", side_effect=[torch.zeros(2, 9, *values.shape[2:]), MemoryError]):
            self.assertRaises(MemoryError, pages.grow, 8)
        self.assertTrue(decoder.is_stale)
        self.assertEqual((pages.count, pages.values is values), (before, True))
        self.assertIsNone(keys(), "the decoder still holds the memory that was moved")


if __name__ == "__main__":
    unittest.main()
