"""Fine-tuning as a probe: a binary classifier per disease, trained on all other diseases.

Source: Alghanmi et al. 2021, section 4.1. Each variant is a way to show an example to the model,
and to learn:

- "": premise and disease; "hypothesis-only": the disease alone;
- "full", "full-hypothesis-only": the same with the whole hypothesis (the paper's Table 7);
- "random": random negatives in place of similar ones (Table 8);
- "frozen": a linear probe of the mean of the untrained encoder's states, far faster;
  "frozen-hypothesis-only": the same of the disease alone;
- "lp-ft": fine-tuning that starts from the linear probe (Kumar et al. 2022);
- "always-true": no model, every example is called positive.
"""

import json
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.tables import BenchmarkTables
from medprobe.methods import Method, Task
from medprobe.papers.diskne.fine_tuning import (
    Curve,
    LinearProbe,
    Split,
    Text,
    TextClassifier,
    Truncation,
)
from medprobe.papers.diskne.recipe import FineTuningRecipe

TABLES: Final = {  # of the benchmark, with the columns that are read
    "examples": [
        *("example_id", "category", "kind", "label", "cui", "disease"),
        *("premise", "hypothesis", "full_hypothesis"),
    ],
    "splits": ["target", "split", "example_id", "fewest"],
}


class View(NamedTuple):
    """What the model sees of an example, and which negatives there are."""

    premise: bool
    hypothesis: Literal["hypothesis", "full_hypothesis"]  # a column of the examples
    negatives: Literal["similar", "random"] = "similar"


class Variant(NamedTuple):
    """What the model sees, and how it learns."""

    view: View
    learning: Literal["fine-tuned", "frozen", "lp-ft", "none"] = "fine-tuned"


PAIR: Final = View(True, "hypothesis")
DISEASE: Final = View(False, "hypothesis")
VARIANTS: Final = {
    "": Variant(PAIR),
    "hypothesis-only": Variant(DISEASE),
    "full": Variant(View(True, "full_hypothesis")),
    "full-hypothesis-only": Variant(View(False, "full_hypothesis")),
    "random": Variant(View(True, "hypothesis", "random")),
    "frozen": Variant(PAIR, "frozen"),
    "frozen-hypothesis-only": Variant(DISEASE, "frozen"),
    "lp-ft": Variant(PAIR, "lp-ft"),
    "always-true": Variant(DISEASE, "none"),
}
VariantName = Literal[
    "",
    "hypothesis-only",
    "full",
    "full-hypothesis-only",
    "random",
    "frozen",
    "frozen-hypothesis-only",
    "lp-ft",
    "always-true",
]


class Classifier(Method):
    """Trains a classifier per disease on all other diseases, and tests it on this one.

    One task a disease; one pass a variant and seed, which is the replicate.

    The benchmark must have the tables `examples`, and `splits`: which of them train, validate and
    test for each disease (`target`), and the `fewest` positives with which it is reported.
    """

    KINDS = ("masked", "encoder")
    METRIC = "f1"
    SIDE_TABLES: ClassVar = {  # of a variant, replicate and disease: the mean loss of each epoch
        "curves": ("variant", "replicate", "target", "epoch", "train", "validation")
    }
    ONLY_SELECTS = frozenset({"variants", "seeds", "diseases"})

    class Settings(FineTuningRecipe):
        """The defaults are the paper's; what it leaves open, `FineTuningRecipe` names."""

        max_length: int = Field(256, gt=2)
        """Longest text or pair of texts, in tokens."""
        truncation: Truncation = "only_first"
        """What is cut off a long pair: the premise (`only_first`), or the longer text."""
        lp_ft: FineTuningRecipe | None = None
        """Recipe of the variant `lp-ft`. Empty: the same as for the others."""
        variants: tuple[VariantName, ...] = ("", "hypothesis-only", "always-true")
        """What is fine-tuned; the empty name is the whole model on both texts."""
        seeds: tuple[int, ...] = Field((0, 1, 2), min_length=1)
        """Seeds of fine-tuning. Each is a replicate."""
        diseases: PositiveInt | dict[VariantName, PositiveInt] | None = None
        """How many diseases, those with the most positives, per variant."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint, self.settings = checkpoint, settings
        self.classifier = TextClassifier(checkpoint, engine)
        self._texts: dict[View, list[Text]] = {}
        self._features: dict[View, NDArray[np.float32]] = {}

    def passes(self) -> list[str]:
        """`<variant>/<seed>`, without the seed where nothing is drawn."""
        seeds = [str(seed) for seed in self.settings.seeds]
        return [
            f"{name}/{seed}"
            for name in self.settings.variants
            for seed in (seeds if VARIANTS[name].learning in ("fine-tuned", "lp-ft") else [""])
        ]

    def inputs(self, pass_: str) -> list[Path]:
        """The checkpoint, where the variant has a model."""
        return [] if VARIANTS[pass_.rpartition("/")[0]].learning == "none" else [self.checkpoint]

    @classmethod
    def needs_tables(cls, settings: Settings) -> tuple[str, ...]:
        """Examples to train on, and how they are split."""
        return tuple(TABLES)

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """One a disease, with all examples and the disease's splits; nothing is ranked.

        Raises BadInput where the benchmark has no such tables, or no negatives of a variant's kind.
        """
        examples, splits = (_select_columns(tables, name) for name in TABLES)
        for name in self.settings.variants:
            if (kind := VARIANTS[name].view.negatives) not in {*examples["kind"]}:
                problem = f"no {kind} negatives in it for variant '{name}'"
                remedy = f"import the annotation with {kind} negatives, or leave the variant out"
                raise BadInput(tables.queries["benchmark"].iloc[0], problem, remedy)
        diseases = rank_diseases(examples, splits)
        asked = {pass_: diseases[: self._limit(pass_)] for pass_ in self.passes()}
        return [
            Task(
                target,
                tables.queries[tables.queries["relation"] == target].reset_index(drop=True),
                tables.candidates.head(0),
                k,
                {
                    "examples": examples,
                    "splits": splits[splits["target"] == target].reset_index(drop=True),
                },
                passes=tuple(pass_ for pass_ in asked if target in asked[pass_]),
            )
            for target in sorted(diseases)
        ]

    def _limit(self, pass_: str) -> int | None:
        limit = self.settings.diseases
        if isinstance(limit, dict):
            return limit.get(pass_.rpartition("/")[0])  # type: ignore[call-overload]
        return limit

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Return one row per test example: its `prediction`, 1 or 0, and the probability of 1.

        Further columns: `label, target, disease, category`, the `fewest` positives of a disease
        that is reported, and the training `curves`, as SIDE_TABLES says.
        """
        name, _, seed = pass_.rpartition("/")
        variant, examples = VARIANTS[name], task.tables["examples"]
        examples_in_view = examples[examples["kind"].isin(["positive", variant.view.negatives])]
        examples_in_view = examples_in_view.reset_index(drop=True)
        # once per disease: with Arrow's strings this would be slow
        example_ids = examples_in_view["example_id"].astype(object)
        rows = {
            split: np.flatnonzero(example_ids.isin(ids.astype(object)).to_numpy())
            for split, ids in task.tables["splits"].groupby("split")["example_id"]
        }
        probabilities, curve = self._train(
            variant, examples_in_view, rows, int(seed or 0), task.state
        )
        test_examples, is_positive = examples_in_view.iloc[rows["test"]], probabilities > 0.5
        key = {"variant": name, "replicate": f"seed-{seed}" if seed else "", "target": task.name}
        return pd.DataFrame(
            {
                "variant": name,
                "replicate": key["replicate"],
                "query_id": test_examples["example_id"].to_numpy(),
                "rank": 1,
                "prediction": is_positive.astype(int).astype(str),
                "prediction_id": test_examples["cui"].to_numpy(),
                "score": probabilities,
                "hit": is_positive == (test_examples["label"].to_numpy() == 1),
                "label": test_examples["label"].to_numpy(),
                "target": task.name,
                "disease": test_examples["disease"].to_numpy(),
                "category": test_examples["category"].to_numpy(),
                "fewest": task.tables["splits"]["fewest"].iloc[0],
                "curves": json.dumps([{**key, **epoch} for epoch in curve]),
            }
        )

    def _train(
        self,
        variant: Variant,
        examples: pd.DataFrame,
        rows: dict[str, NDArray[np.intp]],
        seed: int,
        state: Path | None,
    ) -> tuple[NDArray[np.float64], Curve]:
        """Probabilities for the test examples, and the training curve, if there is one."""
        if variant.learning == "none":
            return np.ones(len(rows["test"])), []
        train, validation, test = (rows[split] for split in ("train", "validation", "test"))
        labels = examples["label"].to_numpy()
        if variant.learning == "frozen":
            features = self._mean_states(variant.view, examples)
            labelled = np.concatenate([train, validation])
            probe = LinearProbe.fit(features[labelled], labels[labelled])
            return probe.probabilities(features[test]), []
        texts = self.tokenize(variant.view, examples)
        split = Split(*([texts[i] for i in part] for part in (train, validation, test)))
        if variant.learning == "fine-tuned":
            return self.classifier.fine_tune(split, self.settings, seed, state=state)
        features = self._mean_states(variant.view, examples)
        probe = LinearProbe.fit(features[train], labels[train])
        recipe = self.settings.lp_ft or self.settings
        return self.classifier.fine_tune(split, recipe, seed, probe, state)

    def tokenize(self, view: View, examples: pd.DataFrame) -> list[Text]:
        """The examples as a variant shows them, cut by `truncation` where they are too long.

        Done once: what shows the same must always have the same examples.
        """
        if view not in self._texts:
            columns = ["premise", view.hypothesis] if view.premise else [view.hypothesis]
            texts = [examples[column].tolist() for column in columns]
            window = (self.settings.max_length, self.settings.truncation)
            self._texts[view] = self.classifier.tokenize(texts, examples["label"].tolist(), *window)
        return self._texts[view]

    def _mean_states(self, view: View, examples: pd.DataFrame) -> NDArray[np.float32]:
        """The mean state of each example, [examples, hidden]; done once, equal texts once."""
        if view not in self._features:
            texts = self.tokenize(view, examples)
            numbers, _ = pd.factorize(pd.Series([str(text.rows) for text in texts]))
            distinct = pd.Series(numbers).drop_duplicates().index
            states = self.classifier.mean_states([texts[i] for i in distinct])
            self._features[view] = states[numbers]
        return self._features[view]


def rank_diseases(examples: pd.DataFrame, splits: pd.DataFrame) -> list[str]:
    """The diseases to test, those with the most positives first, ties by CUI."""
    positives = examples[examples["label"] == 1]
    sizes = positives.groupby("cui").size().loc[lambda sizes: sizes.index.isin(splits["target"])]
    return sorted(map(str, sizes.index), key=lambda cui: (-sizes[cui], cui))


def _select_columns(tables: BenchmarkTables, name: str) -> pd.DataFrame:
    table = tables.others.get(name, pd.DataFrame())
    if missing_columns := [column for column in TABLES[name] if column not in table]:
        problem = f"no table {name} with a column {missing_columns[0]}, so nothing to train on"
        benchmark = tables.queries["benchmark"].iloc[0]
        raise BadInput(benchmark, problem, "choose a benchmark with examples and their splits")
    return table[TABLES[name]]
