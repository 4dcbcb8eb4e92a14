"""Fine-tuning a checkpoint as a binary classifier of texts, many times from the same start.

Batches are padded to their longest text only, and the weights set back in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from medprobe.core.params import EngineParams, Section
from medprobe.engine.batching import in_batches
from medprobe.engine.load import Model, load

POOL: Final = 50  # batches among which texts of like length are brought together


class Training(Section):
    """The defaults are Alghanmi et al.'s (2021, section 4.1); early stopping's patience is not in
    their paper."""

    learning_rate: float = Field(2e-5, gt=0)
    batch: int = Field(8, gt=0)
    epochs: int = Field(8, gt=0)
    patience: int = Field(2, gt=0)  # epochs without a lower validation loss before it stops
    max_length: int = Field(256, gt=2)  # tokens of a text or pair


@dataclass(frozen=True)
class Text:
    """A tokenised text or pair: the tokenizer's rows (input_ids, …) and its label."""

    rows: dict[str, list[int]]
    label: int

    def __len__(self) -> int:
        return len(self.rows["input_ids"])


class TextClassifier:
    """One checkpoint, trained and tested on any number of splits."""

    def __init__(self, checkpoint: Path, training: Training, engine: EngineParams) -> None:
        self.checkpoint, self.training, self.engine = checkpoint, training, engine
        self._loaded: Model | None = None
        self._fresh: dict[int, dict[str, torch.Tensor]] = {}  # by seed: weights with a new head

    @property
    def loaded(self) -> Model:
        """The model, from the disk at the first use."""
        if self._loaded is None:
            self._loaded = load(self.checkpoint, "classifier", self.engine)
        return self._loaded

    def tokenize(self, texts: Sequence[list[str]], labels: Sequence[int]) -> list[Text]:
        """The texts with their labels; `texts` is one list, or two for pairs. Of a long pair the
        first text is cut."""
        rows = self.loaded.tokenizer(
            *texts,
            truncation="only_first",
            max_length=min(self.training.max_length, self.loaded.max_length),
        )
        keys = list(rows)
        return [
            Text(dict(zip(keys, row, strict=True)), label)
            for *row, label in zip(*rows.values(), labels, strict=True)
        ]

    def mean_states(self, texts: Sequence[Text]) -> NDArray[np.float32]:
        """The mean of the checkpoint's last states over each text's tokens, [texts, hidden]."""
        self._reset(0)
        encoder = self.loaded.model.base_model

        def compute(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            states = encoder(**inputs).last_hidden_state.float()
            weights = inputs["attention_mask"].unsqueeze(-1).float()
            return (states * weights).sum(1) / weights.sum(1)

        return self._run(texts, compute).astype(np.float32)

    def fine_tune(
        self, train: Sequence[Text], validation: Sequence[Text], test: Sequence[Text], seed: int
    ) -> tuple[NDArray[np.float64], list[dict[str, float]]]:
        """Probabilities of the positive class, [test], by the weights of the epoch with the lowest
        validation loss; and for each epoch its `train` and `validation` loss.

        The same seed gives the same numbers on the same machine.
        """
        self._reset(seed)
        model = self.loaded.model
        rate = self.training.learning_rate
        optimiser = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
        generator = np.random.default_rng(seed)
        curve: list[dict[str, float]] = []
        best: dict[str, torch.Tensor] = {}
        for epoch in range(self.training.epochs):
            loss = self._epoch(train, optimiser, generator)
            held = self._loss(validation)
            curve.append({"epoch": epoch + 1, "train": loss, "validation": held})
            lowest = min(range(len(curve)), key=lambda i: curve[i]["validation"])
            if lowest == epoch:
                best = {name: value.clone() for name, value in model.state_dict().items()}
            elif epoch - lowest >= self.training.patience:
                break
        model.load_state_dict(best)
        return np.exp(self._log_probabilities(test)[:, 1]), curve

    def _reset(self, seed: int) -> None:
        """The checkpoint's weights and a new head, drawn with the seed: from the disk only once."""
        if seed not in self._fresh:
            torch.manual_seed(seed)
            self._loaded = load(self.checkpoint, "classifier", self.engine)
            state = self._loaded.model.state_dict()
            self._fresh[seed] = {name: value.clone() for name, value in state.items()}
        self.loaded.model.load_state_dict(self._fresh[seed])
        torch.manual_seed(seed)

    def _epoch(
        self,
        texts: Sequence[Text],
        optimiser: torch.optim.Optimizer,
        generator: np.random.Generator,
    ) -> float:
        """Train on every text once; the mean loss."""
        model = self.loaded.model.train()
        total = 0.0
        for batch in shuffled_batches(
            [len(text) for text in texts], self.training.batch, generator
        ):
            inputs, labels = self._padded([texts[i] for i in batch])
            optimiser.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(**inputs).logits.float(), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            total += loss.item() * len(batch)
        model.eval()
        return total / len(texts)

    def _loss(self, texts: Sequence[Text]) -> float:
        """Mean cross-entropy."""
        rows = self._log_probabilities(texts)
        return float(-rows[np.arange(len(texts)), [text.label for text in texts]].mean())

    def _log_probabilities(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        model = self.loaded.model
        return self._run(texts, lambda inputs: model(**inputs).logits.double().log_softmax(-1))

    def _run(
        self, texts: Sequence[Text], compute: Callable[[dict[str, torch.Tensor]], torch.Tensor]
    ) -> NDArray[Any]:
        """What `compute` makes of each text, in their order, without gradients."""

        def batch(indices: list[int]) -> list[NDArray[Any]]:
            inputs, _ = self._padded([texts[i] for i in indices])
            with torch.inference_mode():
                return list(compute(inputs).cpu().numpy())

        lengths = [len(text) for text in texts]
        return np.stack(in_batches(lengths, self.loaded.token_budget, batch))

    def _padded(self, texts: Sequence[Text]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """The inputs of a batch, padded to its longest text, and its labels."""
        rows = [text.rows for text in texts]
        inputs = self.loaded.tokenizer.pad(rows, return_tensors="pt")
        labels = torch.tensor([text.label for text in texts])
        return dict(inputs.to(self.loaded.device)), labels.to(self.loaded.device)


def shuffled_batches(
    lengths: Sequence[int], size: int, generator: np.random.Generator
) -> Iterator[list[int]]:
    """Indices of texts in random batches. Among every POOL batches, texts of like length are
    brought together, so that little is padding."""
    order = generator.permutation(len(lengths))
    by_length = np.asarray(lengths)
    batches = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(by_length[pool], kind="stable")]
        batches += [pool[at : at + size].tolist() for at in range(0, len(pool), size)]
    for i in generator.permutation(len(batches)):
        yield batches[i]


def logistic_regression(
    known: NDArray[np.float32], labels: NDArray[np.int64], asked: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Probabilities of the positive class, [asked], by a logistic regression on standardised
    features in which both classes weigh the same."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", C=0.1, max_iter=1000)
    )
    return np.asarray(model.fit(known, labels).predict_proba(asked)[:, 1])
