"""Fine-tuning as a probe: a binary classifier per disease, trained on all other diseases.

Source: Alghanmi et al. 2021, section 4.1. Each variant is a way to show an example to the model:

- "": premise and disease; "hypothesis-only": the disease alone;
- "full", "full-hypothesis-only": the same with the whole hypothesis (the paper's Table 7);
- "random": random negatives in place of similar ones (Table 8);
- "frozen": logistic regression on the mean of the untrained encoder's states, far faster;
- "always-true": no model, every example is called positive.
"""

import json
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.tables import BenchmarkTables
from medprobe.engine.fine_tuning import Text, TextClassifier, Training, logistic_regression
from medprobe.methods import Method, Task

TABLES: Final = {  # of the benchmark, with the columns that are read
    "examples": [
        *("example_id", "category", "kind", "label", "cui", "disease"),
        *("premise", "hypothesis", "full_hypothesis"),
    ],
    "splits": ["target", "split", "example_id"],
}
CURVE: Final = ["variant", "replicate", "target"]  # what has a training curve of its own


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


class Classifier(Method):
    """One task a disease; one pass a variant and seed, which is the replicate.

    The benchmark must have the tables `examples`, and `splits`: which of them train, validate and
    test for each disease (`target`).
    """

    KINDS = ("masked", "encoder")
    METRIC = "f1"
    SELECTING = frozenset({"variants", "seeds", "diseases"})

    class Settings(Training):
        """The defaults are the paper's."""

        variants: tuple[VariantName, ...] = ("", "hypothesis-only", "always-true")
        seeds: tuple[int, ...] = Field((0, 1, 2), min_length=1)
        diseases: int | None = Field(None, gt=0)  # those with the most positives; unset: all

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint, self.settings = checkpoint, settings
        self.classifier = TextClassifier(checkpoint, settings, engine)
        self._texts: dict[Variant, list[Text]] = {}
        self._features: dict[Variant, NDArray[np.float32]] = {}

    def passes(self) -> list[str]:
        """`<variant>/<seed>`, without the seed where nothing is drawn."""
        seeds = [str(seed) for seed in self.settings.seeds]
        return [
            f"{name}/{seed}"
            for name in self.settings.variants
            for seed in (seeds if VARIANTS[name].learning == "fine-tuned" else [""])
        ]

    def inputs(self, pass_: str) -> list[Path]:
        """The checkpoint, where the variant has a model."""
        return [] if VARIANTS[pass_.rpartition("/")[0]].learning == "none" else [self.checkpoint]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """One a disease, with all examples and the disease's splits; nothing is ranked.

        Raises BadInput where the benchmark has no such tables.
        """
        examples, splits = (_table(tables, name) for name in TABLES)
        chosen = targets(examples, splits, self.settings.diseases)
        return [
            Task(
                str(target),
                tables.queries[tables.queries["relation"] == target].reset_index(drop=True),
                tables.candidates.head(0),
                k,
                {"examples": examples, "splits": of_target.reset_index(drop=True)},
            )
            for target, of_target in splits[splits["target"].isin(chosen)].groupby("target")
        ]

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """A row for each test example: its `prediction`, 1 or 0, and the probability of 1. Beside
        them `label, target, disease, category`, and the training `curve` as JSON."""
        name, _, seed = pass_.rpartition("/")
        variant, examples = VARIANTS[name], task.tables["examples"]
        shown = examples[examples["kind"].isin(["positive", variant.negatives])]
        shown = shown.reset_index(drop=True)
        rows = {
            split: np.flatnonzero(shown["example_id"].isin(ids).to_numpy())
            for split, ids in task.tables["splits"].groupby("split")["example_id"]
        }
        probabilities, curve = self._learn(variant, shown, rows, int(seed or 0))
        tested, said = shown.iloc[rows["test"]], probabilities > 0.5
        return pd.DataFrame(
            {
                "variant": name,
                "replicate": f"seed-{seed}" if seed else "",
                "query_id": tested["example_id"].to_numpy(),
                "rank": 1,
                "prediction": said.astype(int).astype(str),
                "prediction_id": tested["cui"].to_numpy(),
                "score": probabilities,
                "hit": said == (tested["label"].to_numpy() == 1),
                "label": tested["label"].to_numpy(),
                "target": task.name,
                "disease": tested["disease"].to_numpy(),
                "category": tested["category"].to_numpy(),
                "curve": json.dumps(curve),
            }
        )

    def notes(self, predictions: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
        """The predictions, and `curves`: `variant, replicate, target, epoch, train, validation`,
        the mean loss of each epoch."""
        curves = [
            {**dict(zip(CURVE, key, strict=True)), **epoch}
            for key, rows in predictions.groupby(CURVE, sort=False)
            for epoch in json.loads(rows["curve"].iloc[0])
        ]
        table = pd.DataFrame(curves, columns=[*CURVE, "epoch", "train", "validation"])
        return predictions.drop(columns="curve"), {"curves": table}

    def _learn(
        self, variant: Variant, shown: pd.DataFrame, rows: dict[str, NDArray[np.intp]], seed: int
    ) -> tuple[NDArray[np.float64], list[dict[str, float]]]:
        """Probabilities for the test examples, and the training curve, if there is one."""
        if variant.learning == "none":
            return np.ones(len(rows["test"])), []
        train, validation, test = (rows[split] for split in ("train", "validation", "test"))
        if variant.learning == "frozen":
            features = self._features_of(variant, shown)
            known = np.concatenate([train, validation])
            labels = shown["label"].to_numpy()[known]
            return logistic_regression(features[known], labels, features[test]), []
        texts = self.tokenize(variant, shown)
        learnt, held, asked = ([texts[i] for i in part] for part in (train, validation, test))
        return self.classifier.fine_tune(learnt, held, asked, seed)

    def tokenize(self, variant: Variant, shown: pd.DataFrame) -> list[Text]:
        """The examples as the variant shows them; a long premise is cut, the hypothesis is not.

        Done once for each variant: its examples must always be the same ones.
        """
        if variant not in self._texts:
            columns = ["premise", variant.hypothesis] if variant.premise else [variant.hypothesis]
            texts = [shown[column].tolist() for column in columns]
            self._texts[variant] = self.classifier.tokenize(texts, shown["label"].tolist())
        return self._texts[variant]

    def _features_of(self, variant: Variant, shown: pd.DataFrame) -> NDArray[np.float32]:
        """The mean state of each example, [examples, hidden]; done once, as `tokenize` is."""
        if variant not in self._features:
            texts = self.tokenize(variant, shown)
            self._features[variant] = self.classifier.mean_states(texts)
        return self._features[variant]


def targets(examples: pd.DataFrame, splits: pd.DataFrame, most: int | None) -> list[str]:
    """The diseases to test, those with the most positives first, ties by CUI; at most `most`."""
    positives = examples[examples["label"] == 1]
    sizes = positives.groupby("cui").size().loc[lambda sizes: sizes.index.isin(splits["target"])]
    order = sorted(sizes.index, key=lambda cui: (-sizes[cui], cui))
    return order[:most]


def _table(tables: BenchmarkTables, name: str) -> pd.DataFrame:
    """A further table of the benchmark, as far as it is read."""
    table = tables.others.get(name, pd.DataFrame())
    if missing := [column for column in TABLES[name] if column not in table]:
        problem = f"no table {name} with a column {missing[0]}, so nothing to train on"
        benchmark = tables.queries["benchmark"].iloc[0]
        raise BadInput(benchmark, problem, "choose a benchmark with examples and their splits")
    return table[TABLES[name]]
