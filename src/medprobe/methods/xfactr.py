"""X-FACTR (Jiang et al., EMNLP 2020): decode answers of one to five tokens with a masked model.

The decoding is `engine.filling`; its beams of all lengths become predictions (`engine.decoding`).
"""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import pandas as pd
from pydantic import Field, model_validator

from medprobe.core import answers
from medprobe.core.params import EngineParams
from medprobe.engine.decoding import DecodingSettings, predictions
from medprobe.engine.encode import encode
from medprobe.engine.filling import Cursor, Decoding, Filling, fill, text_of
from medprobe.engine.load import load
from medprobe.engine.search import NameIndex
from medprobe.engine.slots import Slot, check_window, masked_slots
from medprobe.methods import Method, Task

INITIAL: Final = ("independent", "order", "confidence")
REFINEMENT: Final = ("none", "order", "confidence")
DECODINGS: Final = tuple(f"{i}+{r}".removesuffix("+none") for i in INITIAL for r in REFINEMENT)


class Xfactr(Method):
    """Writes answers of one or more tokens into masks.

    One pass a decoding, which is the variant too.
    """

    KINDS = ("masked",)
    WRITES_WITH = MappingProxyType({})
    ONLY_SELECTS = frozenset({"decodings"})

    class Settings(DecodingSettings):
        """The paper's settings: `confidence` and `order+order`, 5 masks, beam 5, at most 10 steps.

        BioLAMA's manual prompts use `confidence`, 10 masks, and the settings that
        `DecodingSettings` names.
        """

        decodings: tuple[str, ...] = ("confidence", "order+order")
        """Ways to fill masks: `confidence`, `order`, `independent`, or two joined by `+`."""
        max_iter: int = Field(10, gt=0)
        """Most refinement steps."""
        cursor: Cursor = "own"
        """Refinement `order`: one cursor per beam (`own`), or one for all (`shared`, released)."""
        match: Literal["none", "nearest"] = "none"
        """Replace what is decoded by the `nearest` candidate."""
        name_length: int = Field(20, gt=2)
        """Longest name that is matched, in tokens."""

        @model_validator(mode="after")
        def _check_decodings(self) -> "Xfactr.Settings":
            if unknown := [name for name in self.decodings if name not in DECODINGS]:
                raise ValueError(f"no decoding {unknown[0]}, choose of {', '.join(DECODINGS)}")
            if not self.decodings or self.max_iter < self.masks:
                raise ValueError("needs a decoding, and max_iter of at least as many as masks")
            return self

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "masked", engine)
        self.settings = settings
        self.filling_cache: dict[tuple[str, int], dict[str, list[Filling]]] = {}  # then by prompt
        self.index = NameIndex()  # of the names

    def passes(self) -> list[str]:
        """The decodings."""
        return list(self.settings.decodings)

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Return the k best texts of each query.

        Candidates are used only by `match: nearest`, where each text becomes the candidate nearest
        to it.
        """
        prompts = task.queries["prompt"].tolist()
        slots = masked_slots(self.model.tokenizer, prompts, task.query_labels)
        masks = [0] * self.settings.masks
        for slot, query in zip(slots, task.query_labels, strict=True):
            check_window(slot, [masks], self.model.max_length, query, [f"{len(masks)} masks"])
        fillings = self._fillings(prompts, slots, pass_, self._text_count(task.k))
        match = self.settings.match == "nearest"
        return predictions(
            self.model,
            task.queries,
            slots,
            fillings,
            k=task.k,
            normalise=task.normalise if match else answers.uncased(task.normalise),
            equal=self.settings.equal,
            named=self._match_names(fillings, sorted(set(task.benchmark_candidates["name"])))
            if match
            else {},
            variant=pass_,
        )

    def _text_count(self, k: int) -> int:
        """How many texts are needed for k predictions: all, where some have the same nearest."""
        all_fillings = self.settings.masks * self.settings.beam
        return (
            all_fillings if self.settings.match == "nearest" else self.settings.texts_to_decode(k)
        )

    def _match_names(self, fillings: list[list[Filling]], names: list[str]) -> dict[str, str]:
        """The name nearest to each decoded text, by the [CLS] vectors of the model's body."""
        body = replace(self.model, model=self.model.model.base_model)
        unindexed = [name for name in names if name not in self.index]
        if unindexed:
            self.index.add(unindexed, encode(body, unindexed, self.settings.name_length))
        all_fillings = (filling for prompt_fillings in fillings for filling in prompt_fillings)
        texts = sorted({text_of(self.model, filling.tokens) for filling in all_fillings})
        vectors = encode(body, texts, self.settings.name_length)
        neighbours, _ = self.index.nearest(vectors, names, 1)
        return {text: self.index.names[i] for text, i in zip(texts, neighbours[:, 0], strict=True)}

    def _fillings(
        self, prompts: list[str], slots: list[Slot], decoding: str, k: int
    ) -> list[list[Filling]]:
        """The fillings of each prompt; a prompt of several subsets is decoded once."""
        cached = self.filling_cache.setdefault((decoding, k), {})
        pairs = zip(prompts, slots, strict=True)
        uncached = {prompt: slot for prompt, slot in pairs if prompt not in cached}
        budget = self.model.token_budget
        fillings = fill(self.model, list(uncached.values()), self.decoding(decoding), budget, k)
        cached.update(zip(uncached, fillings, strict=True))
        return [cached[prompt] for prompt in prompts]

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
            self.settings.cursor,
            self.settings.bias,
        )
