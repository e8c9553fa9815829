"""The trained weights: 32-bit masters, their gradients, and AdamW.

On one GPU the model computes in bfloat16 with copies of the masters, and gradients are accumulated in 32 bits;
sampling reads the same copies. In 32 bits, and if FSDP shards and casts, a parameter is its own master.
"""
from __future__ import annotations

import math
import weakref
from collections import defaultdict
from typing import Iterator, Mapping, NamedTuple, Optional, Union

import torch
from torch import Tensor, nn

from .errors import RequestError
from .model import Model, Piece
from .other_model import OtherModel
from .ranks import Ranks

AnyModel = Union[Model, OtherModel]


class AdamParams(NamedTuple):
    """Settings of one optimiser step."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.01
    grad_clip_norm: Optional[float] = None


class Weights:
    """All parameters of a model by name, and the state needed to train the trainable ones."""

    def __init__(self, model: AnyModel, ranks: Ranks, sharded: bool) -> None:
        self.ranks, self.sharded = ranks, sharded
        # The checkpoint tensors that each parameter consists of.
        self.pieces: dict[str, list[Piece]] = defaultdict(list)
        for piece in model.pieces():
            self.pieces[piece.parameter].append(piece)
        self.parameters: dict[str, nn.Parameter] = dict(model.named_parameters())
        self.trained = {name: p for name, p in self.parameters.items() if p.requires_grad}
        self.masters: dict[str, Tensor] = {
            name: p if p.dtype == torch.float32 else p.detach().float() for name, p in self.trained.items()
        }
        self.collected: dict[str, Tensor] = {}
        # Python cannot see what a hook refers to: one that refers to all weights would keep them for ever.
        weights = weakref.ref(self)
        for name, p in self.trained.items():
            if self.masters[name] is not p:
                p.register_post_accumulate_grad_hook(lambda p, name=name: weights()._collect(name, p))
        self.adam = self._optimizer()

    def pieces_of(self, name: str) -> list[Piece]:
        """The checkpoint's tensors of a parameter; an adapter's parameter has its own name."""
        return self.pieces.get(name) or [Piece(name, name, 0, self.parameters[name].shape[0])]

    def _optimizer(self) -> torch.optim.Optimizer:
        # Weight decay skips vectors: norms and biases.
        groups = [{"params": [p for p in self.masters.values() if (p.dim() > 1) == matrix]} for matrix in (True, False)]
        groups = [group for group in groups if group["params"]]
        try:
            return torch.optim.AdamW(groups, fused=True)
        except (RuntimeError, TypeError):
            # PyTorch before 2.4 has no fused AdamW on a CPU.
            return torch.optim.AdamW(groups, foreach=True)

    def _collect(self, name: str, parameter: nn.Parameter) -> None:
        if name in self.collected:
            self.collected[name].add_(parameter.grad)
        else:
            self.collected[name] = parameter.grad.float()
        parameter.grad = None

    @property
    def gradients(self) -> dict[str, Tensor]:
        """The accumulated gradients; none if there was no backward pass."""
        if self.collected:
            return self.collected
        return {name: p.grad for name, p in self.trained.items() if p.grad is not None}

    def copied_gradients(self) -> dict[str, Tensor]:
        """A copy of the accumulated gradients in the host's memory."""
        return {name: gradient.cpu() for name, gradient in self.gradients.items()}

    def restore(self, gradients: Mapping[str, Tensor]) -> None:
        """Sets the accumulated gradients to a copy."""
        self.clear()
        for name, gradient in gradients.items():
            p = self.trained[name]
            if self.masters[name] is p:
                p.grad = gradient.to(p.device)
            else:
                self.collected[name] = gradient.to(p.device)

    def clear(self) -> None:
        """Clears the gradients."""
        self.collected = {}
        for p in self.trained.values():
            p.grad = None

    def gradient_norm(self) -> float:
        """The global norm of the accumulated gradient, summed over ranks first; raises if it is not
        finite.
        """
        gradients = self.gradients
        if not gradients:
            raise RequestError("there is no gradient yet; call forward_backward first")
        if not self.sharded:
            for gradient in gradients.values():
                self.ranks.sum(gradient)
        squares = torch.stack(torch._foreach_norm([local(gradient) for gradient in gradients.values()])).square()
        if self.sharded:
            self.ranks.sum(squares)
        found = dict(zip(gradients, squares.tolist()))
        for name, square in found.items():
            if not math.isfinite(square):
                self.clear()
                raise RequestError(
                    f"the gradient of {self.pieces_of(name)[0].name} is not finite; the gradient was cleared and the weights are unchanged"
                )
        return math.sqrt(sum(found.values()))

    def step(self, params: AdamParams) -> float:
        """Applies the accumulated gradient, clears it, and returns its norm before clipping."""
        norm = self.gradient_norm()
        scale = 1.0
        if params.grad_clip_norm is not None and norm > params.grad_clip_norm:
            scale = params.grad_clip_norm / norm
        for name, gradient in self.gradients.items():
            self.masters[name].grad = gradient if scale == 1.0 else gradient.mul_(scale)
        for group in self.adam.param_groups:
            group["lr"], group["betas"], group["eps"] = params.learning_rate, (params.beta1, params.beta2), params.eps
            group["weight_decay"] = params.weight_decay if group["params"][0].dim() > 1 else 0.0
        self.adam.step()
        for name, master in self.masters.items():
            master.grad = None
            self._publish(name)
        self.clear()
        return norm

    @torch.no_grad()
    def _publish(self, name: str) -> None:
        if self.masters[name] is not self.trained[name]:
            self.trained[name].copy_(self.masters[name])

    @torch.no_grad()
    def assign(self, name: str, value: Tensor) -> None:
        """Sets a parameter, and its master, from the full tensor."""
        if name in self.masters:
            place(value, self.masters[name])
            self._publish(name)
        else:
            place(value, self.parameters[name])

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of the trained part of the weights that the model computes with."""
        return {name: local(p.detach()).clone() for name, p in self.trained.items()}

    @torch.no_grad()
    def exchange(self, snapshot: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Switches to other weights of the same shape, and returns the previous ones to switch back to."""
        if self.sharded:
            before = self.snapshot()
            for name, p in self.trained.items():
                local(p.detach()).copy_(snapshot[name])
            return before
        # Nothing is copied: what was queued with the previous weights still finds them where they were.
        before = {name: p.data for name, p in self.trained.items()}
        for name, p in self.trained.items():
            p.data = snapshot[name]
        return before

    @property
    def steps(self) -> int:
        return max((int(state["step"]) for state in self.adam.state.values()), default=0)

    def moments(self) -> Iterator[tuple[str, str, Tensor]]:
        """Adam's moments: (first or second, parameter, tensor)."""
        for name, master in self.masters.items():
            state = self.adam.state.get(master)
            if state:
                yield "first", name, state["exp_avg"]
                yield "second", name, state["exp_avg_sq"]

    @torch.no_grad()
    def assign_moments(self, moments: Mapping[str, tuple[Tensor, Tensor]], steps: int) -> None:
        """Replaces Adam's state; parameters without one are reset."""
        self.adam.state.clear()
        fused = bool(self.adam.defaults.get("fused"))
        for name, (first, second) in moments.items():
            master = self.masters[name]
            state = {"step": torch.tensor(float(steps), device=master.device if fused else "cpu")}
            for key, value in (("exp_avg", first), ("exp_avg_sq", second)):
                state[key] = torch.zeros_like(master, requires_grad=False)
                place(value, state[key])
            self.adam.state[master] = state


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a sharded tensor; any other tensor is returned unchanged."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def whole(tensor: Tensor) -> Tensor:
    """The full tensor, gathered from all ranks if it is sharded."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def place(value: Tensor, into: Tensor) -> None:
    """Copies a full tensor into one that may be sharded by rows."""
    if not hasattr(into, "to_local"):
        into.copy_(value)
        return
    part = into.to_local()
    mesh = into.device_mesh
    rows = -(-into.shape[0] // mesh.size())
    begin = min(mesh.get_local_rank() * rows, into.shape[0])
    part.copy_(value[begin : begin + part.shape[0]])
