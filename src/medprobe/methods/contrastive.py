"""Contrastive-Probe (Meng et al., ACL 2022, section 3): the filled prompt's nearest names.

Query and candidates go through the same encoder; the names nearest to the query are its answers.
The encoder is rewired first (stage `rewire`), on several sentence sets, with a checkpoint every so
many steps; probing it as it came shows what rewiring brings.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from medprobe import places
from medprobe.engine.encode import Pooling, check_layers, encode
from medprobe.engine.load import Model, load
from medprobe.engine.rewiring import checkpoints
from medprobe.engine.search import Distance, nearest
from medprobe.errors import BadInput
from medprobe.params import EngineParams, Section
from medprobe.tables import SLOT

ORIGINAL = "original"  # the pass and the variant of the model as it came, not rewired


class Contrastive:
    """Ranks candidates by nearness. Variants: "" (rewired, at `step`), "original" (not rewired),
    "step-<n>" (at other steps), "layer-<n>" (at `step`, other layers). The sentence set is the
    replicate.

    Score: negative squared distance, or cosine. A query whose own subject stands at rank 1 is
    common; the share can be counted from the prediction table (prediction equals the subject).
    """

    KINDS = ("masked", "encoder")

    class Settings(Section):
        """The paper's choice. `candidates`: `all` names; `without_subject`: all but the query's own
        subject, unless it is an answer; `answers`: names of type answer; `relation`: the answers of
        the relation's queries.
        """

        step: int = 200
        layers: tuple[int, ...] = ()  # more layers to probe at `step`, beside the last
        distance: Distance = "l2"
        pooling: Pooling = "cls"
        candidates: Literal["all", "without_subject", "answers", "relation"] = "all"
        query_length: int = 50  # tokens
        candidate_length: int = 25  # tokens

    def __init__(
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.folder = folder
        self.rewired = places.REWIRED / model
        self.sets: list[str] | None = None  # the sets to probe; none: all that were rewired
        self.settings = settings
        self.engine = engine
        self.loaded: tuple[str, Model] | None = None
        self.known: dict[tuple[str, int], np.ndarray[Any, Any]] = {}

    def inputs(self) -> list[Path]:
        """The model's folder, and that of its rewired checkpoints where there is one."""
        return [path for path in (self.folder, self.rewired) if path.exists()]

    def passes(self) -> list[str]:
        """`<set>/step-<n>` for all checkpoints, those of the chosen step first, and `original`.

        Raises BadInput where a set has no checkpoint of the chosen step.
        """
        chosen: list[str] = []
        others: list[str] = []
        there = sorted(path for path in self.rewired.glob("*") if path.is_dir())
        for folder in there:
            if self.sets is not None and folder.name not in self.sets:
                continue
            steps = checkpoints(folder)
            if self.settings.step not in steps:
                known = ", ".join(map(str, steps)) or "none"
                remedy = f"set methods.contrastive.step to one of: {known}"
                raise BadInput(folder, f"no checkpoint of step {self.settings.step}", remedy)
            for step in steps:
                group = chosen if step == self.settings.step else others
                group.append(f"{folder.name}/step-{step}")
        return [*chosen, *others, ORIGINAL]

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The k nearest names of each query in pass `which`. Raises BadInput for a layer that the
        model does not have, and where `answers` are to be ranked and no candidate has that type.
        """
        replicate, variant, layers = self._variants(which)
        model = self._model(which)
        check_layers(model, layers)
        names = self._names(queries, candidates)
        prompts = queries["prompt"].str.replace(SLOT, model.tokenizer.mask_token, regex=False)
        found = self._vectors(model, list(prompts), self.settings.query_length, layers)
        among = self._vectors(model, names, self.settings.candidate_length, layers)
        tables = []
        for layer, asked, offered in zip(layers, found, among, strict=True):
            extra = int(self.settings.candidates == "without_subject")
            places_, scores = nearest(asked, offered, names, k + extra, self.settings.distance)
            table = _table(queries, names, places_, scores)
            if extra:
                table = _without_subject(table, queries)
            label = variant if layer == -1 else f"layer-{layer}"
            tables.append(table[table["rank"] <= k].assign(variant=label, replicate=replicate))
        return pd.concat(tables, ignore_index=True)

    def _variants(self, which: str) -> tuple[str, str, list[int]]:
        """`(replicate, variant, layers)` of a pass."""
        if which == ORIGINAL:
            return "", ORIGINAL, [-1]
        replicate, checkpoint = which.split("/")
        if checkpoint == f"step-{self.settings.step}":
            return replicate, "", [-1, *self.settings.layers]
        return replicate, checkpoint, [-1]

    def _model(self, which: str) -> Model:
        """The checkpoint of a pass; that of the pass before, and its vectors, are let go."""
        if self.loaded is None or self.loaded[0] != which:
            self.known.clear()
            self.loaded = None
            folder = self.folder if which == ORIGINAL else self.rewired / which
            model = load(folder, "encoder", self.engine)
            if model.tokenizer.mask_token is None:
                raise BadInput(folder, "the tokenizer has no mask token to put into the slot")
            self.loaded = which, model
        return self.loaded[1]

    def _names(self, queries: pd.DataFrame, candidates: pd.DataFrame) -> list[str]:
        """The names to rank, sorted."""
        names = set(candidates["name"])
        if self.settings.candidates == "answers":
            names = set(candidates.loc[candidates["type"] == "answer", "name"])
            if not names:
                remedy = "choose methods.contrastive.candidates: all"
                raise BadInput("candidates", "none of this benchmark is marked as answer", remedy)
        if self.settings.candidates == "relation":
            own = {answer for answers in queries["answers"] for answer in answers}
            names = names & own or names
        return sorted(names)

    def _vectors(
        self, model: Model, texts: Sequence[str], length: int, layers: Sequence[int]
    ) -> np.ndarray[Any, Any]:
        """Vectors [layers, texts, d]; each text is encoded once a pass, whoever asks for it."""
        new = [text for text in dict.fromkeys(texts) if (text, length) not in self.known]
        found = encode(model, new, length, self.settings.pooling, list(layers))
        for place, text in enumerate(new):
            self.known[text, length] = found[:, place]
        return np.stack([self.known[text, length] for text in texts], axis=1)


def _table(
    queries: pd.DataFrame,
    names: Sequence[str],
    found: np.ndarray[Any, Any],
    scores: np.ndarray[Any, Any],
) -> pd.DataFrame:
    """Predictions from `nearest`: columns query_id, rank, prediction, score."""
    width = found.shape[1]
    return pd.DataFrame(
        {
            "query_id": np.repeat(queries["query_id"].to_numpy(), width),
            "rank": np.tile(np.arange(1, width + 1), len(queries)),
            "prediction": np.array(names, dtype=object)[found.ravel()],
            "score": scores.ravel(),
        }
    )


def _without_subject(table: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """Leave the query's own subject out, unless it is an answer, and close the ranks up."""
    own = {
        (row.query_id, row.subject)
        for row in queries.itertuples()
        if row.subject not in row.answers
    }
    pairs = zip(table["query_id"], table["prediction"], strict=True)
    kept = table[[pair not in own for pair in pairs]]
    return kept.assign(rank=kept.groupby("query_id", sort=False).cumcount() + 1)
