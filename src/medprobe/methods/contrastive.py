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
from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, RankingSettings, Swept, Values
from medprobe.core.places import MODELS, REWIRED
from medprobe.core.tables import SLOT
from medprobe.engine.checkpoints import checkpoints
from medprobe.engine.encode import Pooling, check_layers, encode, tokenize
from medprobe.engine.load import Model, load
from medprobe.engine.ranking import TIES
from medprobe.engine.search import Distance, Index
from medprobe.methods import Method, Task

ORIGINAL = "original"  # the pass and the variant of the model as it came, not rewired
KEY = "params.yaml: methods.<kind>.contrastive.<benchmark>"


class Contrastive(Method):
    """Ranks candidates by nearness. Variants: "" (rewired, at `step`), "original" (not rewired),
    "step-<n>" (at each step, where there are several), "layer-<n>" (at `step`, other layers),
    "<setting>-<value>" (rewired with this setting varied). The sentence set is the replicate.

    Score: negative squared distance, or cosine. A query whose own subject stands at rank 1 is
    common; the share can be counted from the prediction table (prediction equals the subject).
    """

    KINDS = ("masked", "encoder")
    WHY = "it compares texts by their first token, which under a causal model has read nothing else"
    SELECTING = frozenset({"sets", "step", "sweeps"})

    class Settings(RankingSettings):
        """The paper's choice. `candidates`: `all` names; `without_subject`: all but the query's own
        subject, unless it is an answer; `answers`: names of type answer; `relation`: the answers of
        the relation's queries.
        """

        sets: tuple[str, ...] = Field(min_length=1)
        """The sentence sets to use, names of `sentence_sets`. Each is a replicate."""
        step: int | None = None
        """Training step whose checkpoint is probed. Empty: the last."""
        sweeps: dict[Swept, Values] = Field({})
        """Values of the section `sweeps` that are probed. Each is a variant."""
        layers: tuple[int, ...] = ()
        """Further layers to probe at `step`, besides the last."""
        distance: Distance = "l2"
        """Distance between vectors."""
        pooling: Pooling = "cls"
        """Vector of a text: that of its first token (`cls`), or the `mean` over tokens."""
        candidates: Literal["all", "without_subject", "answers", "relation"] = "all"
        """Names to rank: `all`; `without_subject`: all but the query's subject, unless it is an
        answer; `answers`: names of type answer; `relation`: the answers of the relation's
        queries."""
        query_length: int = 50
        """Longest query, in tokens."""
        candidate_length: int = 25
        """Longest candidate, in tokens."""
        vectors: Literal["single", "half"] = "single"
        """Precision of vectors: `single`, or rounded to `half` as in the released script."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.settings = settings
        self.engine = engine
        self.loaded: tuple[str, Model] | None = None
        self.asked: dict[str, np.ndarray[Any, Any]] = {}  # prompt -> vectors [layers, d]
        self.indexes: list[Index] = []  # of the names, one a layer
        self.counted: tuple[str, set[str]] = "", set()  # a pass and the texts that it has read

    def passes(self) -> list[str]:
        """`<set>` for the checkpoint of the chosen step, `<set>/step-<n>` for the others,
        `<set>/<setting>-<value>` for those of sweeps, and `original`; the latter alone for a
        checkpoint from elsewhere than outputs/models, which nothing rewired. Sets that are not
        meant for the model are left out.

        Raises BadInput where a set was not rewired, or has no checkpoint of the chosen step.
        """
        chosen: list[str] = []
        others: list[str] = []
        for name in self.settings.sets if self.checkpoint.parent == MODELS else ():
            steps = self._steps(name)
            if not steps:
                continue
            main = self.settings.step or max(steps)
            chosen.append(name)
            others += [f"{name}/step-{step}" for step in steps if step != main]
            for cell in self._cells():
                if self._rewired(f"{name}+{cell}").is_dir() and self._steps(f"{name}+{cell}"):
                    others.append(f"{name}/{cell}")
        if self.checkpoint.parent == MODELS and not chosen:
            problem = f"none of {', '.join(self.settings.sets)} is for {self.checkpoint.name}"
            raise BadInput(KEY, problem, "see the models of sentence_sets in params.yaml")
        return [*chosen, *others, ORIGINAL]

    def _cells(self) -> list[str]:
        """The values of sweeps, as their folders name them."""
        swept = self.settings.sweeps.items()
        return [f"{setting}-{value}" for setting, values in swept for value in values]

    def _steps(self, name: str) -> dict[int, Path]:
        """The checkpoints of a rewiring by step; none where the set is not meant for the model."""
        folder = self._rewired(name)
        steps = checkpoints(folder)
        if not folder.is_dir():
            remedy = f"add {name} to sentence_sets in params.yaml, or take it out of the sets"
            raise BadInput(folder, "the model was not rewired on this set", f"{remedy} of {KEY}")
        if steps and self.settings.step not in (None, *steps):
            remedy = f"set step in {KEY} to one of: {', '.join(map(str, steps))}"
            raise BadInput(folder, f"no checkpoint of step {self.settings.step}", remedy)
        return steps

    def inputs(self, pass_: str) -> list[Path]:
        """The one checkpoint of the pass; all of its set for the main step, as they tell which that
        is and whether it stands among others."""
        return [self._rewired(pass_) if pass_ in self.settings.sets else self._folder(pass_)]

    def shares(self, task: Task) -> str:
        """All tasks of a pass rank the same names, whose vectors are computed once."""
        return ""

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k nearest names of each query. Raises BadInput for a layer that the model does not
        have, and where `answers` are to be ranked and no candidate has that type.
        """
        replicate, variant, layers = self._variants(pass_)
        model = self._model(pass_)
        check_layers(model, layers)
        names = self._names(task.queries, task.benchmark_candidates)
        asked = self._asked(model, self._prompts(model, task), layers)
        tables = []
        for layer, queries, index in zip(
            layers, asked, self._offered(model, names, layers), strict=True
        ):
            extra = int(self.settings.candidates == "without_subject")
            found, scores = index.nearest(queries, names, task.k + extra + TIES)
            table = _table(task.queries, index.names, found, scores)
            if extra:
                table = _without_subject(table, task.queries)
            label = variant if layer == -1 else f"layer-{layer}"
            last = table["score"].where(table["rank"] <= task.k).groupby(table["query_id"])
            table = table[table["score"] >= last.transform("min")]
            for name in (label, *(self._step(replicate) if label == "" else ())):
                tables.append(table.assign(variant=name, replicate=replicate))
        return pd.concat(tables, ignore_index=True)

    def reads(self, task: Task, pass_: str) -> list[int]:
        """Prompts and names, each once a pass. All checkpoints have the same tokenizer."""
        model = self._model(ORIGINAL)
        if self.counted[0] != pass_:
            self.counted = pass_, set()
        lengths = []
        for texts, length in (
            (self._prompts(model, task), self.settings.query_length),
            (self._names(task.queries, task.benchmark_candidates), self.settings.candidate_length),
        ):
            new = [text for text in dict.fromkeys(texts) if text not in self.counted[1]]
            self.counted[1].update(new)
            lengths += [len(row) for row in dict.fromkeys(tokenize(model, new, length))]
        return lengths

    def _step(self, name: str) -> list[str]:
        """The main step of a sentence set as a variant among those of the other steps."""
        steps = self._steps(name)
        return [f"step-{self.settings.step or max(steps)}"] if len(steps) > 1 else []

    def _rewired(self, name: str) -> Path:
        """Where the checkpoints of a sentence set are."""
        return REWIRED / self.checkpoint.name / name

    def _folder(self, pass_: str) -> Path:
        """The checkpoint of a pass."""
        if pass_ == ORIGINAL:
            return self.checkpoint
        name, _, more = pass_.partition("/")
        if more.startswith("step-"):
            return self._rewired(name) / more
        folder = self._rewired(f"{name}+{more}" if more else name)
        return folder / f"step-{self.settings.step or max(checkpoints(folder))}"

    def _variants(self, pass_: str) -> tuple[str, str, list[int]]:
        """`(replicate, variant, layers)` of a pass."""
        if pass_ == ORIGINAL:
            return "", ORIGINAL, [-1]
        replicate, _, more = pass_.partition("/")
        if not more:
            return replicate, "", [-1, *self.settings.layers]
        setting, _, number = more.partition("-")
        value = np.format_float_positional(float(number), trim="-")  # 0.00002, not 2e-05
        return replicate, f"{setting}-{value}", [-1]

    def _model(self, pass_: str) -> Model:
        """The checkpoint of a pass; that of the pass before, and its vectors, are let go."""
        if self.loaded is None or self.loaded[0] != pass_:
            self.loaded, self.asked, self.indexes = None, {}, []
            folder = self._folder(pass_)
            model = load(folder, "encoder", self.engine)
            if model.tokenizer.mask_token is None:
                raise BadInput(folder, "the tokenizer has no mask token to put into the slot")
            self.loaded = pass_, model
        return self.loaded[1]

    def _prompts(self, model: Model, task: Task) -> list[str]:
        """The prompts, a mask in the slot of each."""
        mask = model.tokenizer.mask_token
        return [prompt.replace(SLOT, mask) for prompt in task.queries["prompt"]]

    def _names(self, queries: pd.DataFrame, candidates: pd.DataFrame) -> list[str]:
        """The names to rank, sorted."""
        names = set(candidates["name"])
        if self.settings.candidates == "answers":
            names = set(candidates.loc[candidates["type"] == "answer", "name"])
            if not names:
                remedy = f"choose candidates: all in {KEY}"
                raise BadInput("candidates", "none of this benchmark is marked as answer", remedy)
        if self.settings.candidates == "relation":
            own = {answer for answers in queries["answers"] for answer in answers}
            names = names & own or names
        return sorted(names)

    def _asked(
        self, model: Model, prompts: Sequence[str], layers: Sequence[int]
    ) -> np.ndarray[Any, Any]:
        """Vectors of prompts [layers, prompts, d]; each is encoded once a pass."""
        new = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self.asked]
        vectors = self._encoded(model, new, self.settings.query_length, layers)
        self.asked |= {prompt: vectors[:, i] for i, prompt in enumerate(new)}
        return np.stack([self.asked[prompt] for prompt in prompts], axis=1)

    def _offered(self, model: Model, names: Sequence[str], layers: Sequence[int]) -> list[Index]:
        """The indexes of all names so far, one a layer, which hold these: one matrix a pass for
        all relations and subsets, into which each name is encoded once."""
        self.indexes = self.indexes or [Index(self.settings.distance) for _ in layers]
        new = [name for name in names if name not in self.indexes[0]]
        if new:
            vectors = self._encoded(model, new, self.settings.candidate_length, layers)
            for index, of_layer in zip(self.indexes, vectors, strict=True):
                index.add(new, of_layer)
        return self.indexes

    def _encoded(
        self, model: Model, texts: Sequence[str], length: int, layers: Sequence[int]
    ) -> np.ndarray[Any, Any]:
        """Vectors of texts [layers, texts, d]."""
        vectors = encode(model, texts, length, self.settings.pooling, layers)
        return halved(vectors) if self.settings.vectors == "half" else vectors


def halved(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Vectors rounded to half precision, in float32.

    >>> halved(np.array([0.1], dtype=np.float32))
    array([0.09997559], dtype=float32)
    """
    return vectors.astype(np.float16).astype(np.float32)


def _table(
    queries: pd.DataFrame,
    names: Sequence[str],
    places: np.ndarray[Any, Any],
    scores: np.ndarray[Any, Any],
) -> pd.DataFrame:
    """Predictions from `Index.nearest`: columns query_id, rank, prediction, score."""
    width = places.shape[1]
    return pd.DataFrame(
        {
            "query_id": np.repeat(queries["query_id"].to_numpy(), width),
            "rank": np.tile(np.arange(1, width + 1), len(queries)),
            "prediction": np.array(names, dtype=object)[places.ravel()],
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
