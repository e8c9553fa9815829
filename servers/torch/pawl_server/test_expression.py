"""Objectives from JSON: their values, their derivatives at kinks, and what is rejected."""
import math
import unittest

import torch

from .errors import RequestError
from .expression import evaluate, parse_objective

X = {"op": "logprob"}


def const(value):
    return {"op": "const", "value": value}


def objective(loss, metrics=None):
    return parse_objective({"loss": loss, "metrics": metrics or {}})


def slope(loss, at, **inputs):
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    leaves = {name: torch.tensor(values, dtype=torch.float64) for name, values in inputs.items()}
    value, _ = evaluate(objective(loss), {"logprob": x, **leaves})
    return torch.autograd.grad(value.sum(), x)[0].tolist() if value.requires_grad else [0.0] * len(at)


class ExpressionTest(unittest.TestCase):
    def test_values(self):
        loss = {"op": "select", "condition": {"op": "less", "x": X, "y": const(0)}, "x": {"op": "exp", "x": X}, "y": {"op": "input", "name": "a"}}
        leaves = {"logprob": torch.tensor([-1.0, 0.0, 2.0]), "a": torch.tensor([5.0, 6.0, 7.0])}
        value, metrics = evaluate(objective(loss, {"m": {"op": "neg", "x": X}}), leaves)
        torch.testing.assert_close(value, torch.tensor([math.exp(-1), 6.0, 7.0]))
        torch.testing.assert_close(metrics["m"], torch.tensor([1.0, -0.0, -2.0]))

    def test_derivatives_at_kinks(self):
        clamp = {"op": "clamp", "x": X, "low": const(-1), "high": const(1)}
        self.assertEqual(slope(clamp, [-2.0, -1.0, 0.0, 1.0, 2.0]), [0, 1, 1, 1, 0])
        self.assertEqual(slope({"op": "min", "x": X, "y": const(0)}, [-1.0, 0.0, 1.0]), [1, 0.5, 0])
        self.assertEqual(slope({"op": "max", "x": X, "y": const(0)}, [-1.0, 0.0, 1.0]), [0, 0.5, 1])
        self.assertEqual(slope({"op": "abs", "x": X}, [-1.0, 0.0, 1.0]), [-1, 0, 1])
        self.assertEqual(slope({"op": "mul", "x": {"op": "stopGradient", "x": X}, "y": X}, [3.0]), [3])
        self.assertEqual(slope({"op": "lessEqual", "x": X, "y": const(0)}, [0.0]), [0])

    def test_equal_parts_are_computed_once(self):
        ratio = {"op": "exp", "x": {"op": "sub", "x": X, "y": {"op": "input", "name": "old"}}}
        self.assertEqual(len(objective({"op": "add", "x": ratio, "y": ratio}).nodes), 5)

    def test_rejections(self):
        deep = X
        for _ in range(200):
            deep = {"op": "neg", "x": deep}
        wide = X
        for _ in range(13):
            wide = {"op": "add", "x": wide, "y": wide}
        for loss, reason in (
            ({"op": "eval", "x": X}, "loss: unknown op \"eval\""),
            ({"op": "neg"}, "field \"x\" is missing"),
            ({"op": "neg", "x": X, "y": X}, "unexpected field \"y\""),
            ({"op": "neg", "x": 3}, "loss.x: expected an object, found 3"),
            (const(float("inf")), "finite number"),
            (const(10**400), "finite number"),
            (const(True), "finite number"),
            ({"op": "input", "name": "__class__"}, "expected a letter"),
            (deep, "nested deeper"),
            (wide, "more than 4096 nodes"),
        ):
            with self.assertRaises(RequestError) as caught:
                objective(loss)
            self.assertIn(reason, str(caught.exception))
        with self.assertRaises(RequestError):
            objective(X, {"a b": X})
        with self.assertRaises(RequestError):
            objective(X, {f"m{i}": X for i in range(129)})


if __name__ == "__main__":
    unittest.main()
