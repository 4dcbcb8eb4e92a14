"""Training of soft prompts, from step to step."""

from collections.abc import Sequence
from typing import Any, Final

import torch

from medprobe.engine.soft import Example, Spread
from medprobe.engine.soft_released import Released
from medprobe.engine.training_state import StateFile

Quality = tuple[float, float]  # of vectors, higher is better: an accuracy, a negative loss
_PROGRESS: Final = ("epochs", "order", "position", "best_vectors", "best_quality")


class SoftTraining:
    """Vectors in training; everything that their next step needs.

    Args:
        recipe: How vectors are trained.
        vectors: They are trained in place, [vectors, hidden].
        examples: What they learn from.
        batch: Examples per step.
        scheduler: Of the rate of the vectors' optimizer.
        file: Of a training with the same arguments, which continues from it.
    """

    def __init__(
        self,
        recipe: Spread | Released,
        vectors: torch.Tensor,
        examples: Sequence[Example],
        batch: int,
        scheduler: torch.optim.lr_scheduler.LambdaLR,
        *,
        file: StateFile,
    ) -> None:
        self.recipe, self.model, self.vectors = recipe, recipe.model.model, vectors
        self.examples, self.batch = examples, batch
        self.optimizer, self.scheduler, self.file = scheduler.optimizer, scheduler, file
        self.epochs = 0  # that are finished
        self.order: list[int] = []  # of the examples in the current epoch, or the last
        self.position = 0  # in this order; 0 between epochs
        self.best_vectors = vectors.detach().clone()
        self.best_quality: Quality | None = None  # None: not yet measured
        if state := file.read():
            self._restore(state)

    def epoch(self) -> None:
        """Train on every example once, or on those that a stopped epoch left."""
        if not self.position:
            self.order = self.recipe.order(len(self.examples), self.order)
        self.model.train()
        while self.position < len(self.order):
            batch = self.order[self.position : self.position + self.batch]
            self.optimizer.zero_grad()
            self.recipe.losses([self.examples[i] for i in batch]).backward()
            self.optimizer.step()
            self.scheduler.step()
            self.position += self.batch
            self.file.write_if_due(self._state)
        self.model.eval()

    def end_epoch(self) -> None:
        """Count the epoch, once its vectors are measured."""
        self.epochs, self.position = self.epochs + 1, 0

    def keep_best(self, quality: Quality, *, always: bool) -> None:
        """Keep the vectors if they are better than the best so far, or `always`."""
        if always or self.best_quality is None or quality > self.best_quality:
            self.best_vectors, self.best_quality = self.vectors.detach().clone(), quality

    def _state(self) -> dict[str, Any]:
        return {
            "vectors": self.vectors.detach(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            **{name: getattr(self, name) for name in _PROGRESS},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.vectors.copy_(state["vectors"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        for name in _PROGRESS:
            setattr(self, name, state[name])
        self.best_vectors = self.best_vectors.to(self.vectors.device)
