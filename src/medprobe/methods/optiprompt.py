"""OptiPrompt: trained vectors in place of a template's words.

For each relation the vectors start from the manual template and learn from the train split. Those
of the best epoch on the dev split answer the queries. The language model itself does not change.
Answers are decoded as by X-FACTR. The recipes are `engine.soft.Spread` and
`engine.soft_released.Released`.

Source: Zhong et al., NAACL 2021; Sung et al., 2021, use it for BioLAMA.
"""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import pandas as pd
import torch
from pydantic import Field

from medprobe.core import answers
from medprobe.core.errors import BadInput, quote
from medprobe.core.params import EngineParams
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.engine import filling, soft
from medprobe.engine.decoding import DecodingSettings, predictions
from medprobe.engine.filling import Decoding
from medprobe.engine.load import load
from medprobe.engine.slots import Slot, check_window
from medprobe.engine.soft_released import Quality, Released, SoftTraining
from medprobe.engine.training_state import StateFile
from medprobe.methods import Method, Task

SPLITS: Final = ("train", "dev")  # tables of the benchmark


class Optiprompt(Method):
    """Learns vectors in place of a template's words from a train split, and writes answers.

    One pass, and one replicate, a seed. The benchmark must have a train and a dev table.
    """

    KINDS = ("masked",)
    WRITES_WITH = MappingProxyType({})
    ONLY_SELECTS = frozenset({"seeds"})

    class Settings(DecodingSettings):
        """BioLAMA's settings, except for the number of seeds and the recipe.

        Its published numbers were made by `recipe: released` and the settings that
        `DecodingSettings` names.
        """

        recipe: Literal["spread", "released"] = "spread"
        """`spread` (ours), or the `released` recipe that made the published numbers."""
        vectors: int = Field(5, gt=0)
        """Soft prompt vectors, for the recipe `spread`."""
        seeds: int = Field(3, gt=0)
        """Number of seeds. Each is a replicate."""
        epochs: int = Field(10, gt=0)
        """Epochs of training."""
        batch: int = Field(16, gt=0)
        """Examples per step."""
        learning_rate: float = Field(3e-3, gt=0)
        """Learning rate."""
        warmup: float = Field(0.1, ge=0, lt=1)
        """Share of the steps in which the learning rate rises."""
        masks: int = Field(10, gt=0, le=10)
        """Longest answer, in masks."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "masked", engine)
        self.model.model.requires_grad_(False)
        self.settings = settings
        self.seed = seed
        self.recipe: soft.Spread | Released = (
            Released(self.model)
            if settings.recipe == "released"
            else soft.Spread(self.model, settings.vectors)
        )
        self.trained: dict[tuple[str, str, int], torch.Tensor] = {}  # vectors by relation and seed
        self.decoding = Decoding(
            masks=settings.masks,
            beam=settings.beam,
            normalised=settings.length_normalisation,
            bias=settings.bias,
        )

    def passes(self) -> list[str]:
        """The seeds."""
        return [str(self.seed + i) for i in range(self.settings.seeds)]

    @classmethod
    def needs_tables(cls, settings: Settings) -> tuple[str, ...]:
        """Facts to train on, and to choose the epoch by."""
        return SPLITS

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """One a subset and relation, with its rows of the tables `train` and `dev`.

        Raises BadInput where the benchmark has no such tables, or a relation no row to train on.
        """
        rule = answers.find_rule(tables.normalise)
        tasks = []
        for subset, subset_queries, candidates in tables.subsets():
            for relation, rows in subset_queries.groupby("relation"):
                name, queries = f"{subset} {relation}", rows.reset_index(drop=True)
                splits = {split: _select_rows(tables, split, queries) for split in SPLITS}
                tasks.append(Task(name, queries, candidates, k, splits, rule))
        return tasks

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best texts of each query of one relation; the candidates play no part.

        Raises BadInput for a prompt that does not hold its subject, and for one longer than the
        model's window.
        """
        query = task.queries.iloc[0]
        train, key = task.tables["train"], (query["subset"], query["relation"], int(pass_))
        if key not in self.trained:
            dev = task.tables["dev"]
            self.trained[key] = self.train(train, dev, int(pass_), task.normalise, task.state)
        with self.recipe.install_vectors(self.trained[key]):
            slots = self.slots(task.queries)
            return self._predictions(task.queries, slots, task.k, task.normalise, pass_)

    def train(
        self,
        train: pd.DataFrame,
        dev: pd.DataFrame,
        seed: int,
        normalise: Callable[[str], str] = answers.exact,
        state: Path | None = None,
    ) -> torch.Tensor:
        """Train the vectors of a relation.

        Returns:
            The vectors [vectors, hidden] of the epoch that is best on `dev`, the start included;
            those of the last epoch if `dev` is empty.
        """
        torch.manual_seed(seed)
        vectors = self.recipe.start(_recover_template(train.iloc[0]).template).requires_grad_()
        training = self._training(self._examples(train), vectors, StateFile(state))
        with self.recipe.install_vectors(vectors):
            if training.best_quality is None:
                training.keep_best(self._quality(dev, normalise), always=True)
            while training.epochs < self.settings.epochs:
                training.epoch()
                training.keep_best(self._quality(dev, normalise), always=dev.empty)
                training.end_epoch()
        return training.best_vectors

    def slots(self, queries: pd.DataFrame) -> list[Slot]:
        """Put the vectors in place of the words of each query."""
        labels = [f"query {label}" for label in queries["query_id"]]
        return self._slots([_recover_template(row) for _, row in queries.iterrows()], labels)

    def _slots(self, prompts: list[soft.SoftPrompt], labels: list[str]) -> list[Slot]:
        vector_slots = self.recipe.slots(prompts, labels)
        masks = self.settings.masks
        for slot, label in zip(vector_slots, labels, strict=True):
            check_window(slot, [[0] * masks], self.model.max_length, label, [f"{masks} masks"])
        return vector_slots

    def _examples(self, train: pd.DataFrame) -> list[soft.Example]:
        """One a subject and answer, aliases left out."""
        mask = self.model.tokenizer.mask_token_id
        examples = []
        for row, slot in zip(train.itertuples(), self.slots(train), strict=True):
            labels: dict[str, str] = {}
            for identifier, name in zip(row.answer_ids, row.answers, strict=True):
                labels.setdefault(identifier, name)
            names = list(labels.values())
            for name, ids in zip(names, self.recipe.answer_ids(names, slot), strict=True):
                check_window(slot, [ids], self.model.max_length, f"query {row.query_id}", [name])
                count = len(ids)
                examples.append((slot.fill([mask] * count), slot.positions(count), ids))
        return examples

    def _training(
        self, examples: list[soft.Example], vectors: torch.Tensor, file: StateFile
    ) -> SoftTraining:
        """The training of these vectors, with the model's dropout."""
        settings, recipe = self.settings, self.recipe
        optimizer = recipe.optimizer(vectors, settings.learning_rate)
        steps = settings.epochs * -(-len(examples) // settings.batch)
        shares = recipe.schedule(int(steps * settings.warmup), steps)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, shares)
        return SoftTraining(recipe, vectors, examples, settings.batch, scheduler, file=file)

    def _quality(self, dev: pd.DataFrame, normalise: Callable[[str], str]) -> Quality:
        """acc@1 on the dev split, then the negative loss.

        The loss decides between epochs that few rows leave equal by acc@1.

        The released recipe uses acc@1 alone and so takes the first of equal epochs.
        """
        if dev.empty:
            return 0.0, 0.0
        accuracy = float(self._predictions(dev, self.slots(dev), 1, normalise)["hit"].mean())
        is_released = self.settings.recipe == "released"
        return accuracy, 0.0 if is_released else -self._loss(self._examples(dev))

    def _predictions(
        self,
        queries: pd.DataFrame,
        slots: list[Slot],
        k: int,
        normalise: Callable[[str], str],
        replicate: str = "",
    ) -> pd.DataFrame:
        """The k best texts of each query, with the vectors that are installed.

        `slots` has one slot per query, or a single slot that all queries share.
        """
        needed = self.settings.texts_to_decode(k)
        fillings = filling.fill(self.model, slots, self.decoding, self.model.token_budget, needed)
        repeats = len(queries) // len(slots)
        return predictions(
            self.model,
            queries,
            slots * repeats,
            fillings * repeats,
            k=k,
            normalise=answers.uncased(normalise),
            equal=self.settings.equal,
            replicate=replicate,
        )

    @torch.no_grad()
    def _loss(self, examples: list[soft.Example]) -> float:
        """The mean negative log-probability of all tokens of the examples' answers."""
        size, total = self.settings.batch, 0.0
        for start in range(0, len(examples), size):
            batch = examples[start : start + size]
            total += float(soft.losses(self.model, batch)) * sum(len(ids) for *_, ids in batch)
        return total / sum(len(ids) for *_, ids in examples)


def _select_rows(tables: BenchmarkTables, name: str, queries: pd.DataFrame) -> pd.DataFrame:
    """The rows of a further table of the benchmark, those of the queries' relation and subset."""
    query = queries.iloc[0]
    if name not in tables.others:
        remedy = "choose a benchmark with a train and a dev table"
        raise BadInput(query["benchmark"], f"no table {name}, so nothing to train on", remedy)
    table = tables.others[name]
    same_relation = (table["relation"] == query["relation"]) & (table["subset"] == query["subset"])
    if name == "train" and not same_relation.any():
        problem = f"no rows of relation '{query['relation']}', so nothing to train on"
        raise BadInput(f"{query['benchmark']}: {name}", problem, "ask about a relation it has")
    return table[same_relation].reset_index(drop=True)


def _recover_template(row: pd.Series) -> soft.SoftPrompt:
    """The template that a query was made from, and its subject."""
    subject = str(row["subject"])
    before, slot, after = str(row["prompt"]).partition(SLOT)
    if subject in before:
        before = before.replace(subject, soft.SUBJECT, 1)
    elif subject in after:
        after = after.replace(subject, soft.SUBJECT, 1)
    else:
        problem = f"the prompt does not hold its subject {quote(subject)}"
        raise BadInput(f"query {row['query_id']}", problem)
    return soft.SoftPrompt(before + slot + after, subject)
