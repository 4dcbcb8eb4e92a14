"""Fine-tuning as a probe: a binary classifier per disease, trained on all other diseases.

Source: Alghanmi et al. 2021, section 4.1. Each variant is a way to show an example to the model:

- "": premise and disease; "hypothesis-only": the disease alone;
- "full", "full-hypothesis-only": the same with the whole hypothesis (the paper's Table 7);
- "random": random negatives in place of similar ones (Table 8);
- "frozen": logistic regression on the mean of the untrained encoder's states, far faster;
- "always-true": no model, every example is called positive.

Texts are tokenised once, batches padded to their longest text, and the weights set back in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import Field

from medprobe.engine.batching import in_batches
from medprobe.engine.load import Model, load
from medprobe.params import EngineParams, Section

KINDS: Final = ("masked", "encoder")
POOL: Final = 50  # batches among which texts of like length are brought together


class Variant(NamedTuple):
    """What a variant shows and how it learns."""

    premise: bool
    hypothesis: Literal["hypothesis", "full_hypothesis"]  # a column of the examples
    negatives: Literal["similar", "random"]
    learning: Literal["fine-tuned", "frozen", "none"] = "fine-tuned"


VARIANTS: Final = {
    "": Variant(True, "hypothesis", "similar"),
    "hypothesis-only": Variant(False, "hypothesis", "similar"),
    "full": Variant(True, "full_hypothesis", "similar"),
    "full-hypothesis-only": Variant(False, "full_hypothesis", "similar"),
    "random": Variant(True, "hypothesis", "random"),
    "frozen": Variant(True, "hypothesis", "similar", "frozen"),
    "always-true": Variant(False, "hypothesis", "similar", "none"),
}
VariantName = Literal[
    "", "hypothesis-only", "full", "full-hypothesis-only", "random", "frozen", "always-true"
]


class ClassifierSettings(Section):
    """The defaults are the paper's; early stopping's patience is not in it."""

    variants: tuple[VariantName, ...] = ("", "hypothesis-only", "always-true")
    learning_rate: float = Field(2e-5, gt=0)
    batch: int = Field(8, gt=0)
    epochs: int = Field(8, gt=0)
    patience: int = Field(2, gt=0)  # epochs without a lower validation loss before it stops
    seeds: tuple[int, ...] = Field((0, 1, 2), min_length=1)
    max_length: int = Field(256, gt=2)  # tokens of premise and hypothesis
    diseases: int | None = Field(None, gt=0)  # only those with the most positives; all if not set


@dataclass(frozen=True)
class Text:
    """A tokenised example: the tokenizer's rows (input_ids, …) and its label."""

    rows: dict[str, list[int]]
    label: int

    def __len__(self) -> int:
        return len(self.rows["input_ids"])


class Classifier:
    """One checkpoint, trained and tested on any number of splits."""

    KINDS = KINDS
    Settings = ClassifierSettings

    def __init__(self, folder: Path, settings: ClassifierSettings, engine: EngineParams) -> None:
        self.folder, self.settings, self.engine = folder, settings, engine
        self._loaded: Model | None = None
        self._fresh: dict[int, dict[str, torch.Tensor]] = {}  # by seed: weights with a new head
        self._texts: dict[Variant, list[Text]] = {}
        self._features: dict[Variant, NDArray[np.float32]] = {}

    @property
    def loaded(self) -> Model:
        """The model, from the disk at the first use."""
        if self._loaded is None:
            self._loaded = load(self.folder, "classifier", self.engine)
        return self._loaded

    def tokenize(self, examples: pd.DataFrame, variant: Variant) -> list[Text]:
        """The examples as the variant shows them; a long premise is cut, the hypothesis is not.

        Done once for each variant: its examples must always be the same ones.
        """
        if variant not in self._texts:
            self._texts[variant] = self._tokenized(examples, variant)
        return self._texts[variant]

    def features(self, examples: pd.DataFrame, variant: Variant) -> NDArray[np.float32]:
        """The mean of the checkpoint's last states over each example's tokens, [examples, d].

        Done once for each variant, as tokenize is.
        """
        if variant not in self._features:
            self._reset(0)
            self._features[variant] = self._states(self.tokenize(examples, variant))
        return self._features[variant]

    def _tokenized(self, examples: pd.DataFrame, variant: Variant) -> list[Text]:
        hypotheses = examples[variant.hypothesis].tolist()
        texts = [examples["premise"].tolist(), hypotheses] if variant.premise else [hypotheses]
        rows = self.loaded.tokenizer(
            *texts,
            truncation="only_first",
            max_length=min(self.settings.max_length, self.loaded.max_length),
        )
        keys = list(rows)
        return [
            Text(dict(zip(keys, row, strict=True)), label)
            for *row, label in zip(*rows.values(), examples["label"].tolist(), strict=True)
        ]

    def fine_tune(
        self, train: Sequence[Text], validation: Sequence[Text], test: Sequence[Text], seed: int
    ) -> tuple[NDArray[np.float64], list[dict[str, float]]]:
        """Probabilities of the positive class, [test], by the weights of the epoch with the lowest
        validation loss; and for each epoch its `train` and `validation` loss.

        The same seed gives the same numbers on the same machine.
        """
        self._reset(seed)
        model = self.loaded.model
        rate = self.settings.learning_rate
        optimiser = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
        generator = np.random.default_rng(seed)
        curve: list[dict[str, float]] = []
        best: dict[str, torch.Tensor] = {}
        for epoch in range(self.settings.epochs):
            loss = self._epoch(train, optimiser, generator)
            held = self._loss(validation)
            curve.append({"epoch": epoch + 1, "train": loss, "validation": held})
            lowest = min(range(len(curve)), key=lambda place: curve[place]["validation"])
            if lowest == epoch:
                best = {name: value.clone() for name, value in model.state_dict().items()}
            elif epoch - lowest >= self.settings.patience:
                break
        model.load_state_dict(best)
        return np.exp(self._log_probabilities(test)[:, 1]), curve

    def _states(self, texts: Sequence[Text]) -> NDArray[np.float32]:
        encoder = self.loaded.model.base_model

        def compute(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            states = encoder(**inputs).last_hidden_state.float()
            weights = inputs["attention_mask"].unsqueeze(-1).float()
            return (states * weights).sum(1) / weights.sum(1)

        return self._run(texts, compute).astype(np.float32)

    def _reset(self, seed: int) -> None:
        """The checkpoint's weights and a new head, drawn with the seed: from the disk only once."""
        if seed not in self._fresh:
            torch.manual_seed(seed)
            self._loaded = load(self.folder, "classifier", self.engine)
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
            [len(text) for text in texts], self.settings.batch, generator
        ):
            inputs, labels = self._padded([texts[place] for place in batch])
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

    def _run(self, texts: Sequence[Text], compute: Any) -> NDArray[Any]:
        """What `compute` makes of each text, in their order, without gradients."""

        def batch(places: list[int]) -> list[NDArray[Any]]:
            inputs, _ = self._padded([texts[place] for place in places])
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
    """Places of texts in random batches. Among every POOL batches, texts of like length are brought
    together, so that little is padding."""
    order = generator.permutation(len(lengths))
    by_length = np.asarray(lengths)
    batches = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(by_length[pool], kind="stable")]
        batches += [pool[at : at + size].tolist() for at in range(0, len(pool), size)]
    for place in generator.permutation(len(batches)):
        yield batches[place]


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
