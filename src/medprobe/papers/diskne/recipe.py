"""Settings of fine-tuning a classifier: rate, optimiser, batches, early stopping, epoch to test.

Where the paper is silent, there are two values: ours, which are the defaults, and those of the
authors' released code, which together are

    {optimiser: adam, schedule: linear, stopping: rises, tested: last, batches: shuffled,
     truncation: longest_first, gradients: kept}
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import torch
from pydantic import Field

from medprobe.core.settings import Section

POOL: Final = 50  # batches among which texts of like length are brought together


class FineTuningRecipe(Section):
    """Rate, batch, epochs and early stopping of fine-tuning.

    Source:
        Alghanmi et al. 2021, section 4.1, for rate, batch and epochs; it names early stopping
        without details.
    """

    learning_rate: float = Field(2e-5, gt=0)
    """Learning rate."""
    batch: int = Field(8, gt=0)
    """Examples per step."""
    epochs: int = Field(8, gt=0)
    """Most epochs."""
    patience: int = Field(2, gt=0)
    """Epochs that `stopping` waits for."""
    stopping: Literal["best", "rises"] = "best"
    """Training stops after `patience` epochs without a lowest validation loss (`best`), or that
    were worse than the one before (`rises`)."""
    tested: Literal["best", "last"] = "best"
    """Test the epoch with the lowest validation loss (`best`), or the `last`."""
    optimiser: Literal["adamw", "adam"] = "adamw"
    """`adamw` with weight decay 0.01, or `adam` without."""
    schedule: Literal["constant", "linear"] = "constant"
    """Learning rate over time: `constant`, or `linear` down to 0."""
    batches: Literal["by_length", "shuffled"] = "by_length"
    """How batches are formed: texts of similar length together (`by_length`), or `shuffled`."""
    gradients: Literal["cleared", "kept"] = "cleared"
    """Gradients before each step: `cleared`, or `kept` and added to."""

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, of `steps` in all epochs.

        >>> linear = FineTuningRecipe(learning_rate=0.8, schedule="linear")
        >>> [round(linear.rate(step, 4), 3) for step in range(4)]
        [0.8, 0.6, 0.4, 0.2]
        """
        share = 1 - step / steps if self.schedule == "linear" else 1.0
        return self.learning_rate * share

    def stops(self, losses: Sequence[float]) -> bool:
        """Return whether training stops after these validation losses, one per epoch.

        `best` stops after `patience` epochs in a row that were not below the lowest before them;
        `rises` after `patience` epochs in total that were not below the epoch before.

        >>> losses = [0.5, 0.4, 0.45, 0.3, 0.35]
        >>> [FineTuningRecipe(stopping=rule).stops(losses) for rule in ("best", "rises")]
        [False, True]
        """
        if len(losses) >= self.epochs:
            return True
        if self.stopping == "rises":
            rises = sum(after >= before for before, after in pairwise(losses))
            return rises >= self.patience
        return len(losses) - 1 - losses.index(min(losses)) >= self.patience

    def epoch_tested(self, losses: Sequence[float]) -> int:
        """Return which of the epochs so far, counted from 0, would be tested.

        >>> losses = [0.5, 0.4, 0.6]
        >>> [FineTuningRecipe(tested=epoch).epoch_tested(losses) for epoch in ("best", "last")]
        [1, 2]
        """
        return len(losses) - 1 if self.tested == "last" else losses.index(min(losses))

    def make_optimiser(self, weights: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """Return an optimiser for these weights."""
        kind = torch.optim.AdamW if self.optimiser == "adamw" else torch.optim.Adam
        return kind(weights, lr=self.learning_rate, fused=True)

    def order(self, lengths: Sequence[int], generator: np.random.Generator) -> list[list[int]]:
        """Return the indices of all texts in random batches.

        `by_length` groups texts of similar length within every POOL batches, to save padding.
        """
        order = generator.permutation(len(lengths))
        if self.batches == "shuffled":
            return _chunks(order, self.batch)
        by_length = np.asarray(lengths)
        batches = []
        for pool in _chunks(order, POOL * self.batch):
            indices = np.asarray(pool)[np.argsort(by_length[pool], kind="stable")]
            batches += _chunks(indices, self.batch)
        return [batches[i] for i in generator.permutation(len(batches))]


def _chunks(order: np.ndarray, size: int) -> list[list[int]]:
    return [order[start : start + size].tolist() for start in range(0, len(order), size)]
