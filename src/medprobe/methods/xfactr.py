"""X-FACTR (Jiang et al., EMNLP 2020): decode answers of one to five tokens with a masked model.

The decoding is `engine.filling`; here its beams of all lengths become predictions.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pandas as pd
from pydantic import Field, model_validator

from medprobe import benchmarks
from medprobe.engine import ranking
from medprobe.engine.filling import Decoding, Filling, fill
from medprobe.engine.load import Model, load
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots
from medprobe.params import EngineParams, Section

INITIAL: Final = ("independent", "order", "confidence")
REFINEMENT: Final = ("none", "order", "confidence")
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
        self.folder = folder
        self.model = load(folder, "masked", engine)
        self.settings = settings
        self.decoded: dict[str, dict[str, list[Filling]]] = {}  # by decoding, by prompt

    def inputs(self) -> list[Path]:
        """The files that results depend on."""
        return [self.folder]

    def passes(self) -> list[str]:
        """The decodings."""
        return list(self.settings.decodings)

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The k best texts of each query; the candidates play no part.

        Raises BadInput for a prompt without exactly one slot or longer than the model's window.
        """
        where = [f"query {query}" for query in queries["query_id"]]
        slots = masked_slots(self.model.tokenizer, queries["prompt"], where)
        masks = [0] * self.settings.masks
        for slot, query in zip(slots, where, strict=True):
            check_window(slot, [masks], self.model.max_length, query, [f"{len(masks)} masks"])
        found = self._fillings(queries["prompt"].tolist(), slots, which)
        return predictions(self.model, queries, slots, found, k=k, variant=which)

    def _fillings(self, prompts: list[str], slots: list[Slot], which: str) -> list[list[Filling]]:
        """The fillings of each prompt; a prompt of several subsets is decoded once."""
        known = self.decoded.setdefault(which, {})
        pairs = zip(prompts, slots, strict=True)
        new = {prompt: slot for prompt, slot in pairs if prompt not in known}
        budget = self.model.token_budget
        found = fill(self.model, list(new.values()), self.decoding(which), budget)
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
    variant: str = "",
    replicate: str = "",
) -> pd.DataFrame:
    """The k best decoded texts of each query as prediction rows.

    Fillings of the same text count once, with the best score. A text is a hit where one of its
    fillings has exactly the tokens of an answer, or where it equals one by the benchmark's rule.
    """
    normalise = _normaliser(str(queries["benchmark"].iloc[0]))
    rows = []
    for query, slot, fillings in zip(queries.itertuples(), slots, found, strict=True):
        answers = list(query.answers)
        tokens = {tuple(ids) for ids in answer_ids(model.tokenizer, answers, slot.left)}
        texts = {normalise(answer) for answer in answers}
        scores: dict[str, float] = {}
        hits: set[str] = set()
        for filling in fillings:
            text = model.tokenizer.decode(filling.tokens).strip()
            scores.setdefault(text, filling.score)
            if filling.tokens in tokens or normalise(text) in texts:
                hits.add(text)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
        for row in ranking.rows(str(query.query_id), best, variant, replicate):
            rows.append({**row, "hit": row["prediction"] in hits})
    return pd.DataFrame(rows)


def _normaliser(benchmark: str) -> Callable[[str], str]:
    """A benchmark's rule for equal answers: its `normalise`, if it has one."""
    known = benchmark in benchmarks.names()
    return getattr(benchmarks.find(benchmark), "normalise", str) if known else str
