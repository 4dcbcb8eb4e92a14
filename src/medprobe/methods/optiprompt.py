"""OptiPrompt (Zhong et al., NAACL 2021) as BioLAMA uses it (Sung et al., 2021): trained vectors in
place of a template's words.

For each relation the vectors start from the manual template, learn from the train split, and those
of the best epoch on the dev split answer the queries, by acc@1 and, where that is equal, by the
loss; the language model stays as it is. Answers are decoded as by X-FACTR.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from medprobe import places
from medprobe.engine import filling, soft
from medprobe.engine.filling import Decoding
from medprobe.engine.load import load
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots
from medprobe.errors import BadInput
from medprobe.methods.xfactr import predictions
from medprobe.params import EngineParams, Section
from medprobe.tables import QUERY_COLUMNS, SLOT, read_table


class Optiprompt:
    """One pass, and one replicate, a seed. The benchmark must have a train and a dev table."""

    KINDS = ("masked",)

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
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.folder = folder
        self.model = load(folder, "masked", engine)
        self.model.model.requires_grad_(False)
        self.settings = settings
        self.seed = seed
        self.decoding = Decoding("confidence", "none", settings.masks, settings.beam)

    def inputs(self) -> list[Path]:
        """The files that results depend on."""
        tables = sorted(places.BENCHMARKS.glob("*/train.parquet"))
        return [self.folder, *tables, *(path.with_name("dev.parquet") for path in tables)]

    def passes(self) -> list[str]:
        """The seeds."""
        return [str(self.seed + i) for i in range(self.settings.seeds)]

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The k best texts of each query of one relation; the candidates play no part.

        Raises BadInput where the benchmark has no train split for this relation, for a prompt that
        does not hold its subject, and for one longer than the model's window.
        """
        train, dev = (_split(queries, name) for name in ("train", "dev"))
        vectors = self.train(train, dev, int(which))
        slots = self.slots(queries)
        with soft.installed(self.model, vectors):
            found = filling.fill(self.model, slots, self.decoding, self.model.token_budget, k)
        return predictions(self.model, queries, slots, found, k=k, replicate=which)

    def train(self, train: pd.DataFrame, dev: pd.DataFrame, seed: int) -> torch.Tensor:
        """The vectors, [vectors, hidden], of the epoch that is best on `dev`, the start counted; of
        the last one where `dev` is empty."""
        text = f" {_words(train.iloc[0])}"
        words = self.model.tokenizer(text, add_special_tokens=False)["input_ids"]
        vectors = soft.from_tokens(self.model, words, self.settings.vectors).requires_grad_()
        best = vectors.detach().clone()
        with soft.installed(self.model, vectors):
            most = self._quality(dev)
            for _ in self._epochs(self._examples(train), vectors, seed):
                quality = self._quality(dev)
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

    def _quality(self, dev: pd.DataFrame) -> tuple[float, float]:
        """acc@1 on the dev split, then the loss, negated: few rows leave epochs equal by acc@1."""
        if dev.empty:
            return 0.0, 0.0
        slots = self.slots(dev)
        found = filling.fill(self.model, slots, self.decoding, self.model.token_budget, 1)
        hits = predictions(self.model, dev, slots, found, k=1)["hit"]
        return float(hits.mean()), -self._loss(self._examples(dev))

    @torch.no_grad()
    def _loss(self, examples: list[soft.Example]) -> float:
        """The mean negative log-probability of all tokens of the examples' answers."""
        size, total = self.settings.batch, 0.0
        for start in range(0, len(examples), size):
            batch = examples[start : start + size]
            total += float(soft.losses(self.model, batch)) * sum(len(ids) for *_, ids in batch)
        return total / sum(len(ids) for *_, ids in examples)


def _split(queries: pd.DataFrame, name: str) -> pd.DataFrame:
    """The relation's rows of a further table of the benchmark."""
    first = queries.iloc[0]
    path = places.BENCHMARKS / first["benchmark"] / f"{name}.parquet"
    table = read_table(path, QUERY_COLUMNS)
    of_relation = (table["relation"] == first["relation"]) & (table["subset"] == first["subset"])
    if name == "train" and not of_relation.any():
        raise BadInput(path, f"no rows of relation {first['relation']}, so nothing to train on")
    return table[of_relation].reset_index(drop=True)


def _parts(row: pd.Series) -> tuple[str, str, str]:
    """The prompt before, between and after its subject and slot."""
    prompt, subject = str(row["prompt"]), str(row["subject"])
    without = prompt.replace(SLOT, "\0", 1)
    if subject not in without:
        raise BadInput(
            f"query {row['query_id']}", f"the prompt does not hold its subject {subject!r}"
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
