"""X-FACTR (Jiang et al., EMNLP 2020): decode answers of one to five tokens with a masked model.

The decoding is `engine.filling`; here its beams of all lengths become predictions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from medprobe import benchmarks
from medprobe.engine import ranking
from medprobe.engine.encode import encode
from medprobe.engine.filling import Decoding, Filling, fill, text_of
from medprobe.engine.load import Model, load
from medprobe.engine.search import nearest
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots
from medprobe.params import EngineParams, Section

INITIAL: Final = ("independent", "order", "confidence")
REFINEMENT: Final = ("none", "order", "confidence")
NAME_LENGTH: Final = 25  # tokens of a name that is matched
DECODINGS: Final = tuple(f"{i}+{r}".removesuffix("+none") for i in INITIAL for r in REFINEMENT)


class Xfactr:
    """One pass a decoding, which is the variant too."""

    KINDS = ("masked",)

    class Settings(Section):
        """The paper's: `confidence` and `order+order`, 5 masks, beam 5, at most 10 steps."""

        decodings: tuple[str, ...] = ("confidence", "order+order")
        masks: int = Field(5, gt=0)
        beam: int = Field(5, gt=0)
        max_iter: int = Field(10, gt=0)
        length_normalisation: bool = True  # lengths compete by mean log-probability, else by sum
        match: Literal["none", "nearest"] = "none"  # put the nearest candidate for what is decoded

        @model_validator(mode="after")
        def _sound(self) -> "Xfactr.Settings":
            if unknown := [name for name in self.decodings if name not in DECODINGS]:
                raise ValueError(f"no decoding {unknown[0]}, choose of {', '.join(DECODINGS)}")
            if not self.decodings or self.max_iter < self.masks:
                raise ValueError("needs a decoding, and max_iter of at least as many as masks")
            return self

    def __init__(
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.model = load(folder, "masked", engine)
        self.settings = settings
        self.decoded: dict[tuple[str, int], dict[str, list[Filling]]] = {}  # then by prompt
        self.known: tuple[list[str], np.ndarray[Any, Any]] | None = None  # names and vectors

    def passes(self) -> list[str]:
        """The decodings."""
        return list(self.settings.decodings)

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The k best texts of each query. The candidates play no part but for `match: nearest`,
        where each text becomes the candidate nearest to it.

        Raises BadInput for a prompt without exactly one slot or longer than the model's window.
        """
        where = [f"query {query}" for query in queries["query_id"]]
        slots = masked_slots(self.model.tokenizer, queries["prompt"], where)
        masks = [0] * self.settings.masks
        for slot, query in zip(slots, where, strict=True):
            check_window(slot, [masks], self.model.max_length, query, [f"{len(masks)} masks"])
        found = self._fillings(queries["prompt"].tolist(), slots, which, self._texts(k))
        named = self._matched(found, candidates) if self.settings.match == "nearest" else {}
        return predictions(self.model, queries, slots, found, k=k, named=named, variant=which)

    def _texts(self, k: int) -> int:
        """How many texts are needed for k predictions: all, where some have the same nearest."""
        every = self.settings.masks * self.settings.beam
        return every if self.settings.match == "nearest" else k

    def _matched(self, found: list[list[Filling]], candidates: pd.DataFrame) -> dict[str, str]:
        """The candidate nearest to each decoded text, by the [CLS] vectors of the model's body."""
        body = replace(self.model, model=self.model.model.base_model)
        names = sorted(set(candidates["name"]))
        if self.known is None or self.known[0] != names:
            self.known = names, encode(body, names, NAME_LENGTH)
        fillings = (filling for of_prompt in found for filling in of_prompt)
        texts = sorted({text_of(self.model, filling.tokens) for filling in fillings})
        places, _ = nearest(encode(body, texts, NAME_LENGTH), self.known[1], names, 1)
        return {text: names[place] for text, place in zip(texts, places[:, 0], strict=True)}

    def _fillings(
        self, prompts: list[str], slots: list[Slot], which: str, k: int
    ) -> list[list[Filling]]:
        """The fillings of each prompt; a prompt of several subsets is decoded once."""
        known = self.decoded.setdefault((which, k), {})
        pairs = zip(prompts, slots, strict=True)
        new = {prompt: slot for prompt, slot in pairs if prompt not in known}
        budget = self.model.token_budget
        found = fill(self.model, list(new.values()), self.decoding(which), budget, k)
        known.update(zip(new, found, strict=True))
        return [known[prompt] for prompt in prompts]

    def decoding(self, name: str) -> Decoding:
        """One decoding by name, such as `order+order`."""
        initial, _, refinement = name.partition("+")
        return Decoding(
            cast(Any, initial),
            cast(Any, refinement or "none"),
            self.settings.masks,
            self.settings.beam,
            self.settings.max_iter,
            self.settings.length_normalisation,
        )


def predictions(
    model: Model,
    queries: pd.DataFrame,
    slots: Sequence[Slot],
    found: Sequence[Sequence[Filling]],
    *,
    k: int,
    named: Mapping[str, str] | None = None,
    variant: str = "",
    replicate: str = "",
) -> pd.DataFrame:
    """The k best decoded texts of each query, or what each is `named`, as prediction rows.

    Fillings of the same text count once, with the best score. A text is a hit where one of its
    fillings, no worse than the last text shown, has exactly the tokens of an answer, or where it
    equals one by the benchmark's rule.
    """
    normalise = _normaliser(str(queries["benchmark"].iloc[0]))
    rows = []
    for query, slot, fillings in zip(queries.itertuples(), slots, found, strict=True):
        answers = list(query.answers)
        tokens = {tuple(ids) for ids in answer_ids(model.tokenizer, answers, slot.left)}
        texts = {normalise(answer) for answer in answers}
        texts_of = [text_of(model, filling.tokens) for filling in fillings]
        shown = [
            ((named or {}).get(text, text), f) for text, f in zip(texts_of, fillings, strict=True)
        ]
        scores: dict[str, float] = {}
        for text, filling in shown:
            scores.setdefault(text, filling.score)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
        hits = {
            text
            for text, filling in shown
            if filling.score >= best[-1][1]
            and (filling.tokens in tokens or normalise(text) in texts)
        }
        for row in ranking.rows(str(query.query_id), best, variant, replicate):
            rows.append({**row, "hit": row["prediction"] in hits})
    return pd.DataFrame(rows)


def _normaliser(benchmark: str) -> Callable[[str], str]:
    """A benchmark's rule for equal answers: its `normalise`, if it has one."""
    known = benchmark in benchmarks.names()
    return getattr(benchmarks.find(benchmark), "normalise", str) if known else str
