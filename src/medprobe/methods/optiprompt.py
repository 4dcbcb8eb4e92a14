"""OptiPrompt (Zhong et al., NAACL 2021) as BioLAMA uses it (Sung et al., 2021): trained vectors in
place of a template's words.

For each relation the vectors start from the manual template, learn from the train split, and those
of the best epoch on the dev split answer the queries, by acc@1 and, where that is equal, by the
loss; the language model stays as it is. Answers are decoded as by X-FACTR.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from medprobe.core import answers
from medprobe.core.errors import BadInput, quoted
from medprobe.core.params import EngineParams, Section
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.engine import filling, soft
from medprobe.engine.decoded import predictions
from medprobe.engine.filling import Decoding
from medprobe.engine.load import load
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots
from medprobe.methods import Method, Task


class Optiprompt(Method):
    """One pass, and one replicate, a seed. The benchmark must have a train and a dev table."""

    KINDS = ("masked",)
    SELECTING = frozenset({"seeds"})

    class Settings(Section):
        """BioLAMA's, but for the number of seeds."""

        vectors: int = Field(5, gt=0)
        seeds: int = Field(3, gt=0)
        epochs: int = Field(10, gt=0)
        batch: int = Field(16, gt=0)
        learning_rate: float = Field(3e-3, gt=0)
        warmup: float = Field(0.1, ge=0, lt=1)  # share of the steps, then falling to zero
        masks: int = Field(10, gt=0, le=10)
        beam: int = Field(5, gt=0)

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "masked", engine)
        self.model.model.requires_grad_(False)
        self.settings = settings
        self.seed = seed
        self.decoding = Decoding("confidence", "none", settings.masks, settings.beam)

    def passes(self) -> list[str]:
        """The seeds."""
        return [str(self.seed + i) for i in range(self.settings.seeds)]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """One a subset and relation, with its rows of the tables `train` and `dev`.

        Raises BadInput where the benchmark has no such tables, or a relation no row to train on.
        """
        rule = answers.rule(tables.normalise)
        tasks = []
        for subset, of_subset, candidates in tables.subsets():
            for relation, rows in of_subset.groupby("relation"):
                name, queries = f"{subset} {relation}", rows.reset_index(drop=True)
                splits = {split: _split(tables, split, queries) for split in ("train", "dev")}
                tasks.append(Task(name, queries, candidates, k, splits, rule))
        return tasks

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best texts of each query of one relation; the candidates play no part.

        Raises BadInput for a prompt that does not hold its subject, and for one longer than the
        model's window.
        """
        vectors = self.train(task.tables["train"], task.tables["dev"], int(pass_), task.normalise)
        slots = self.slots(task.queries)
        with soft.installed(self.model, vectors):
            decoded = self._decode(slots, task.k)
        return predictions(
            self.model,
            task.queries,
            slots,
            decoded,
            k=task.k,
            normalise=task.normalise,
            replicate=pass_,
        )

    def train(
        self,
        train: pd.DataFrame,
        dev: pd.DataFrame,
        seed: int,
        normalise: Callable[[str], str] = answers.exact,
    ) -> torch.Tensor:
        """The vectors, [vectors, hidden], of the epoch that is best on `dev`, the start counted; of
        the last one where `dev` is empty."""
        text = f" {_words(train.iloc[0])}"
        words = self.model.tokenizer(text, add_special_tokens=False)["input_ids"]
        vectors = soft.from_tokens(self.model, words, self.settings.vectors).requires_grad_()
        best = vectors.detach().clone()
        with soft.installed(self.model, vectors):
            most = self._quality(dev, normalise)
            for _ in self._epochs(self._examples(train), vectors, seed):
                quality = self._quality(dev, normalise)
                if quality > most or dev.empty:
                    best, most = vectors.detach().clone(), quality
        return best

    def slots(self, queries: pd.DataFrame) -> list[Slot]:
        """Each query as subject, vectors, slot and a full stop, or slot, vectors and subject where
        the template has them so."""
        where = [f"query {query}" for query in queries["query_id"]]
        slot_first = [_slot_first(row) for _, row in queries.iterrows()]
        texts = [
            f"{SLOT} {subject} ." if first else f"{subject} {SLOT} ."
            for subject, first in zip(queries["subject"], slot_first, strict=True)
        ]
        ids = soft.soft_ids(self.model, self.settings.vectors)
        made = []
        for slot, first, query in zip(
            masked_slots(self.model.tokenizer, texts, where), slot_first, where, strict=True
        ):
            before, after = slot.before, slot.after
            made.append(
                Slot(before, (*ids, *after), slot.left)
                if first
                else Slot((*before, *ids), after, slot.left)
            )
            masks = self.settings.masks
            check_window(made[-1], [[0] * masks], self.model.max_length, query, [f"{masks} masks"])
        return made

    def _examples(self, train: pd.DataFrame) -> list[soft.Example]:
        """One a subject and answer, aliases left out."""
        mask = self.model.tokenizer.mask_token_id
        examples = []
        for row, slot in zip(train.itertuples(), self.slots(train), strict=True):
            labels: dict[str, str] = {}
            for identifier, name in zip(row.answer_ids, row.answers, strict=True):
                labels.setdefault(identifier, name)
            names = list(labels.values())
            for name, ids in zip(
                names, answer_ids(self.model.tokenizer, names, slot.left), strict=True
            ):
                check_window(slot, [ids], self.model.max_length, f"query {row.query_id}", [name])
                count = len(ids)
                examples.append((slot.fill([mask] * count), slot.positions(count), ids))
        return examples

    def _epochs(
        self, examples: list[soft.Example], vectors: torch.Tensor, seed: int
    ) -> Iterator[None]:
        """Train for one epoch after another, with the model's dropout."""
        settings = self.settings
        torch.manual_seed(seed)
        optimizer = torch.optim.Adam([vectors], lr=settings.learning_rate)
        steps = settings.epochs * -(-len(examples) // settings.batch)
        warm = max(1, int(steps * settings.warmup))
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        )
        for _ in range(settings.epochs):
            order = torch.randperm(len(examples)).tolist()
            self.model.model.train()
            for start in range(0, len(order), settings.batch):
                batch = [examples[i] for i in order[start : start + settings.batch]]
                optimizer.zero_grad()
                soft.losses(self.model, batch).backward()
                optimizer.step()
                scheduler.step()
            self.model.model.eval()
            yield

    def _quality(self, dev: pd.DataFrame, normalise: Callable[[str], str]) -> tuple[float, float]:
        """acc@1 on the dev split, then the loss, negated: few rows leave epochs equal by acc@1."""
        if dev.empty:
            return 0.0, 0.0
        slots = self.slots(dev)
        best = predictions(self.model, dev, slots, self._decode(slots, 1), k=1, normalise=normalise)
        return float(best["hit"].mean()), -self._loss(self._examples(dev))

    def _decode(self, slots: list[Slot], k: int) -> list[list[filling.Filling]]:
        return filling.fill(self.model, slots, self.decoding, self.model.token_budget, k)

    @torch.no_grad()
    def _loss(self, examples: list[soft.Example]) -> float:
        """The mean negative log-probability of all tokens of the examples' answers."""
        size, total = self.settings.batch, 0.0
        for start in range(0, len(examples), size):
            batch = examples[start : start + size]
            total += float(soft.losses(self.model, batch)) * sum(len(ids) for *_, ids in batch)
        return total / sum(len(ids) for *_, ids in examples)


def _split(tables: BenchmarkTables, name: str, queries: pd.DataFrame) -> pd.DataFrame:
    """The rows of a further table of the benchmark, those of the queries' relation and subset."""
    first = queries.iloc[0]
    if name not in tables.others:
        remedy = "choose a benchmark with a train and a dev table"
        raise BadInput(first["benchmark"], f"no table {name}, so nothing to train on", remedy)
    table = tables.others[name]
    own = (table["relation"] == first["relation"]) & (table["subset"] == first["subset"])
    if name == "train" and not own.any():
        problem = f"no rows of relation {first['relation']}, so nothing to train on"
        raise BadInput(f"{first['benchmark']}: {name}", problem)
    return table[own].reset_index(drop=True)


def _parts(row: pd.Series) -> tuple[str, str, str]:
    """The prompt before, between and after its subject and slot."""
    prompt, subject = str(row["prompt"]), str(row["subject"])
    without = prompt.replace(SLOT, "\0", 1)
    if subject not in without:
        raise BadInput(
            f"query {row['query_id']}", f"the prompt does not hold its subject {quoted(subject)}"
        )
    before, _, after = without.partition(subject)
    return before, subject, after


def _slot_first(row: pd.Series) -> bool:
    return "\0" in _parts(row)[0]


def _words(row: pd.Series) -> str:
    """The template's own words; a full stop where it has none."""
    before, _, after = _parts(row)
    words = f"{before} {after}".replace("\0", " ").split()
    return " ".join(words[:-1] if words[-1:] == ["."] else words) or "."
