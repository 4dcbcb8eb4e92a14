"""Fine-tuning of a checkpoint as a binary classifier of texts, many times from the same start.

Batches are padded to their longest text only, and the initial weights are kept in memory. A
`LinearProbe` is a logistic regression on the frozen encoder's features, one weight per feature.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.engine.batching import compute_in_batches
from medprobe.engine.load import Model, load
from medprobe.engine.training_state import StateFile
from medprobe.papers.diskne.recipe import FineTuningRecipe


@dataclass(frozen=True)
class LinearProbe:
    """The log-odds of the positive class are `features @ weights + bias`."""

    weights: NDArray[np.float64]  # [hidden]
    bias: float

    @classmethod
    def fit(cls, features: NDArray[np.float32], labels: NDArray[np.int64]) -> "LinearProbe":
        """Fit a probe. Features are standardised and both classes weigh the same.

        Args:
            features: [examples, hidden].
            labels: 0 or 1, [examples].
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        scale, features = StandardScaler(), features.astype(float)
        model = LogisticRegression(
            class_weight="balanced", C=0.1, solver="newton-cholesky", tol=1e-8
        ).fit(scale.fit_transform(features), labels)
        weights = model.coef_[0] / scale.scale_
        return cls(weights, float(model.intercept_[0] - weights @ scale.mean_))

    def probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probabilities of the positive class, [examples]."""
        odds = features @ self.weights + self.bias
        return np.asarray(
            0.5 * (1 + np.tanh(0.5 * odds))
        )  # the logistic function, without overflow


Truncation = Literal["only_first", "longest_first"]
Curve = list[dict[str, float]]  # epoch, train, validation: the mean losses of each epoch
Weights = dict[str, torch.Tensor]  # of a model, by name
CLASSES: Final = 2


@dataclass(frozen=True)
class Text:
    """A tokenised text or pair: the tokenizer's rows (input_ids, …) and its label."""

    rows: dict[str, list[int]]
    label: int

    def __len__(self) -> int:
        return len(self.rows["input_ids"])


class Split(NamedTuple):
    """Texts to train on, to validate on (for early stopping), and to test on."""

    train: Sequence[Text]
    validation: Sequence[Text]
    test: Sequence[Text]


class MeanPooled(torch.nn.Module):
    """An encoder with a linear layer on the mean of its last states, which starts as a probe."""

    def __init__(self, encoder: torch.nn.Module, probe: LinearProbe) -> None:
        super().__init__()
        self.encoder = encoder
        like = next(encoder.parameters())
        self.head = torch.nn.Linear(len(probe.weights), CLASSES).to(like.device, like.dtype)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor(np.stack([0 * probe.weights, probe.weights])))
            self.head.bias.copy_(torch.tensor([0.0, probe.bias]))

    def forward(self, **inputs: torch.Tensor) -> SimpleNamespace:
        """Return the `logits`, [texts, 2]."""
        states = mean_state(self.encoder, inputs)
        return SimpleNamespace(logits=self.head(states.to(self.head.weight.dtype)))


def mean_state(encoder: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the mean of the last states over each text's tokens, [texts, hidden]."""
    states = encoder(**inputs).last_hidden_state.float()
    weights = inputs["attention_mask"].unsqueeze(-1).float()
    return torch.as_tensor((states * weights).sum(1) / weights.sum(1))


class TextClassifier:
    """A checkpoint that is trained and tested on any number of splits."""

    def __init__(self, checkpoint: Path, engine: EngineParams) -> None:
        self.checkpoint, self.engine = checkpoint, engine
        self._initial_weights: dict[int, Weights] = {}  # by seed, with a new head

    @cached_property
    def loaded(self) -> Model:
        """The model, loaded at its first use."""
        return load(self.checkpoint, "classifier", self.engine)

    def tokenize(
        self,
        texts: Sequence[list[str]],
        labels: Sequence[int],
        max_length: int,
        truncation: Truncation = "only_first",
    ) -> list[Text]:
        """Tokenise texts with their labels."""
        tokenizer, length = self.loaded.tokenizer, min(max_length, self.loaded.max_length)
        if len(texts) > 1 and truncation == "only_first":
            seconds = tokenizer(sorted(set(texts[1])), add_special_tokens=False)["input_ids"]
            longest = max(map(len, seconds))
            if longest >= length - tokenizer.num_special_tokens_to_add(True):
                problem = f"a second text of {longest} tokens leaves the first no room"
                remedy = "raise it as far as the model allows, or set truncation: longest_first"
                raise BadInput(f"max_length: {length}", problem, remedy)
        rows = tokenizer(*texts, truncation=truncation, max_length=length)
        keys = list(rows)
        return [
            Text(dict(zip(keys, row, strict=True)), label)
            for *row, label in zip(*rows.values(), labels, strict=True)
        ]

    def mean_states(self, texts: Sequence[Text]) -> NDArray[np.float32]:
        """Return the mean of the last states over each text's tokens, [texts, hidden]."""
        self._reset(0)
        encoder = self.loaded.model.base_model
        return self._compute(texts, lambda inputs: mean_state(encoder, inputs)).astype(np.float32)

    def fine_tune(
        self,
        split: Split,
        recipe: FineTuningRecipe,
        seed: int,
        probe: LinearProbe | None = None,
        state: Path | None = None,
    ) -> tuple[NDArray[np.float64], Curve]:
        """Fine-tune on a split and test.

        The head is the architecture's own and new. With a `probe` it is a layer on the mean state
        that starts as that probe, and both classes weigh the same, as they do in the probe. The
        same seed gives the same numbers on the same machine.

        Returns:
            Probabilities of the positive class, [test], and the losses of each epoch.

        Source:
            Linear probing, then fine-tuning: Kumar et al. 2022.
        """
        self._reset(seed)
        model = (
            self.loaded.model if probe is None else MeanPooled(self.loaded.model.base_model, probe)
        )
        weights = torch.ones(CLASSES) if probe is None else balance(split.train)
        training = _Training(recipe, model, weights.to(self.loaded.device), seed, StateFile(state))
        while not training.curve or not recipe.stops(training.validation_losses):
            training.epoch(split.train, self._padded)
            training.end_epoch(len(split.train), self._loss(model, split.validation))
        model.load_state_dict(training.best_weights)
        return np.exp(self._log_probabilities(model, split.test)[:, 1]), training.curve

    def _reset(self, seed: int) -> None:
        """Restore the checkpoint's weights and a new head drawn with the seed."""
        if seed not in self._initial_weights:
            torch.manual_seed(seed)
            self.loaded = load(self.checkpoint, "classifier", self.engine)
            self._initial_weights[seed] = _copy_weights(self.loaded.model)
        self.loaded.model.load_state_dict(self._initial_weights[seed])
        torch.manual_seed(seed)

    def _loss(self, model: torch.nn.Module, texts: Sequence[Text]) -> float:
        """Return the mean cross-entropy."""
        rows = self._log_probabilities(model, texts)
        return float(-rows[np.arange(len(texts)), [text.label for text in texts]].mean())

    def _log_probabilities(
        self, model: torch.nn.Module, texts: Sequence[Text]
    ) -> NDArray[np.float64]:
        return self._compute(texts, lambda inputs: model(**inputs).logits.double().log_softmax(-1))

    def _compute(
        self, texts: Sequence[Text], outputs_of: Callable[[dict[str, torch.Tensor]], torch.Tensor]
    ) -> NDArray[Any]:
        """Return the outputs of each text, in their order, computed without gradients."""

        def batch(indices: list[int]) -> list[NDArray[Any]]:
            inputs, _ = self._padded([texts[i] for i in indices])
            with torch.inference_mode():
                return list(outputs_of(inputs).cpu().numpy())

        lengths = [len(text) for text in texts]
        return np.stack(compute_in_batches(lengths, self.loaded.token_budget, batch))

    def _padded(self, texts: Sequence[Text]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return the inputs of a batch, padded to its longest text, and its labels."""
        rows = [text.rows for text in texts]
        inputs = self.loaded.tokenizer.pad(rows, return_tensors="pt")
        labels = torch.tensor([text.label for text in texts])
        return dict(inputs.to(self.loaded.device)), labels.to(self.loaded.device)


class _Training:
    """A model in training, from step to step: all that its next step needs."""

    def __init__(
        self,
        recipe: FineTuningRecipe,
        model: torch.nn.Module,
        weights: torch.Tensor,
        seed: int,
        file: StateFile,
    ) -> None:
        self.recipe, self.model, self.weights, self.file = recipe, model, weights, file
        self.optimiser = recipe.make_optimiser(model.parameters())
        self.optimiser.zero_grad(set_to_none=True)  # nothing is kept of an earlier training
        self.generator = np.random.default_rng(seed)
        self.curve: Curve = []
        self.best_weights: Weights = {}
        self.step = 0
        self.batches: list[list[int]] = []  # of the epoch; none between epochs
        self.position = 0  # in these
        self.total = 0.0  # loss of the epoch's texts so far
        if state := file.read():
            self._restore(state)

    @property
    def validation_losses(self) -> list[float]:
        """One per finished epoch."""
        return [epoch["validation"] for epoch in self.curve]

    def epoch(
        self,
        texts: Sequence[Text],
        padded: Callable[[Sequence[Text]], tuple[dict[str, torch.Tensor], torch.Tensor]],
    ) -> None:
        """Train on every text once, or on those that a stopped epoch left."""
        self.model.train()
        recipe, optimiser = self.recipe, self.optimiser
        if not self.batches:
            self.batches = recipe.order([len(text) for text in texts], self.generator)
        for batch in self.batches[self.position :]:
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate(self.step, len(self.batches) * recipe.epochs)
            inputs, labels = padded([texts[i] for i in batch])
            if recipe.gradients == "cleared":
                optimiser.zero_grad(set_to_none=True)
            logits = self.model(**inputs).logits.float()
            losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
            loss = (losses * self.weights[labels]).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            self.step += 1
            self.position += 1
            self.total += loss.item() * len(batch)
            self.file.write_if_due(self._state)
        self.model.eval()

    def end_epoch(self, texts: int, validation: float) -> None:
        """Record an epoch's losses, and its weights if they are the ones to test so far."""
        epoch = len(self.curve) + 1
        self.curve.append({"epoch": epoch, "train": self.total / texts, "validation": validation})
        if self.recipe.epoch_tested(self.validation_losses) == epoch - 1:
            self.best_weights = _copy_weights(self.model)
        self.batches, self.position, self.total = [], 0, 0.0

    def _state(self) -> dict[str, Any]:
        is_kept = self.recipe.gradients == "kept"
        parameters = self.model.parameters()
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "gradients": [parameter.grad for parameter in parameters] if is_kept else [],
            "generator": self.generator.bit_generator.state,
            **{name: getattr(self, name) for name in _PROGRESS},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.generator.bit_generator.state = state["generator"]
        for parameter, gradient in zip(self.model.parameters(), state["gradients"], strict=False):
            parameter.grad = None if gradient is None else gradient.to(parameter.device)
        for name in _PROGRESS:
            setattr(self, name, state[name])


_PROGRESS: Final = ("curve", "best_weights", "step", "batches", "position", "total")


def _copy_weights(model: torch.nn.Module) -> Weights:
    return {name: value.clone() for name, value in model.state_dict().items()}


def balance(texts: Sequence[Text]) -> torch.Tensor:
    """Return the weights of the two classes that make both weigh the same, with mean 1 per text."""
    counts = torch.tensor([sum(text.label == label for text in texts) for label in range(CLASSES)])
    return len(texts) / (CLASSES * counts.clamp(min=1).float())
