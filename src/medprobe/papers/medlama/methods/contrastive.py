"""Contrastive-Probe (Meng et al., ACL 2022, section 3): the filled prompt's nearest names.

Query and candidates go through the same encoder; the names nearest to the query are its answers.
The encoder is rewired first (stage `rewire`), on several sentence sets, with a checkpoint every so
many steps; probing it as it came shows what rewiring brings.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.places import MODELS
from medprobe.core.progress import print_above
from medprobe.core.settings import Section, Values
from medprobe.core.tables import SLOT
from medprobe.engine.encode import encode, read_characters
from medprobe.engine.load import Model, load
from medprobe.engine.pooling import FIRST_TOKEN, MODULES, Pooling, Reading, read_modules
from medprobe.engine.ranking import MAX_TIES
from medprobe.engine.search import Distance, NameIndex
from medprobe.methods import Method, Task
from medprobe.papers.medlama.rewired import (
    READ,
    RECORD,
    REWIRED,
    Pass,
    checkpoints,
    read_settings,
    rewired_sets,
)
from medprobe.papers.medlama.settings.sweeps import Swept

KEY = "params.yaml: methods.<kind>.contrastive.<benchmark>"


class Contrastive(Method):
    """Ranks candidates by their nearness to the query.

    Variants: "" (rewired, at `step`), "original" (not rewired), "step-<n>" (at each step, if there
    are several), "read_layers-<n>" (at `step`, a layer of the whole rewired encoder),
    "<setting>-<value>" (rewired with this setting varied, at `step`) and
    "<setting>-<value>-step-<n>". The base settings are a value of each sweep too. The sentence set
    is the replicate.

    Score: negative squared distance, or cosine. A query whose own subject ranks first is common;
    the share can be counted from the prediction table (prediction equals the subject).
    """

    KINDS = ("masked", "encoder")
    WHY = "it compares texts by their first token, which under a causal model has read nothing else"
    ONLY_SELECTS = frozenset({"sets", "step", "sweeps"})
    READS = ("outputs/rewired/${item.model}",)
    ASK_PRIORITY = MappingProxyType({"rank": 2})

    class Settings(Section):
        """The paper's choice."""

        sets: tuple[str, ...] | None = None
        """The sentence sets to use, names of `sentence_sets`. Each is a replicate. Empty: all of
        them; `[]`: none, the model is probed as it came. A set that the model is not rewired on is
        left out."""
        step: int | None = None
        """Training step whose checkpoint is probed. Empty: the last."""
        sweeps: dict[Swept, Values] = Field({})
        """Values of the section `sweeps` that are probed. Each is a variant."""
        read_layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
        """Further layers of the rewired encoder to read (0: embeddings). Those that a model lacks
        are left out. `rewire.layers` cuts upper layers before rewiring."""
        distance: Distance = "l2"
        """Distance between vectors."""
        pooling: Pooling | None = None
        """Vector of a text: its first token's (`cls`, the paper's), or the `mean`. Empty: as the
        checkpoint's modules.json says, with its dense layers and normalisation; without such a
        file, and after rewiring, the first token's."""
        candidates: Literal["all", "without_subject", "answers", "relation"] = "all"
        """Names to rank: `all`, all `without_subject`, those of type answer (`answers`), or the
        answers of the `relation`."""
        query_length: int = 128
        """Longest query, in tokens. The paper's 50 cut the slot of a few of MedLAMA's prompts."""
        candidate_length: int = 25
        """Longest candidate, in tokens."""
        vectors: Literal["single", "half"] = "single"
        """Precision of vectors: `single`, or `half`, as released."""

        @model_validator(mode="before")
        @classmethod
        def _refuse_layers(cls, choices: Any) -> Any:
            if isinstance(choices, dict) and "layers" in choices:
                message = (
                    "layers can mean two things: write read_layers to read layers of the whole "
                    "rewired encoder, or sweeps: {layers: ...} to rewire the first layers alone"
                )
                raise PydanticCustomError("layers", message)
            return choices

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.settings = settings
        self.engine = engine
        self.pass_model: tuple[Pass, Model] | None = None
        self.reading = FIRST_TOKEN
        self.prompt_vectors: dict[str, np.ndarray[Any, Any]] = {}  # prompt -> vectors [layers, d]
        self.indexes: list[NameIndex] = []  # of the names, one a layer
        self.has_reported = False  # which of `read_layers` the model lacks

    def passes(self) -> list[Pass]:
        """List the checkpoints to probe: of each set that of the chosen step, then all others.

        A checkpoint outside outputs/models was not rewired. Sets that are not meant for the model
        are left out.
        """
        main_passes: list[Pass] = []
        further_passes: list[Pass] = []
        sets: Sequence[str] = ()
        if self.checkpoint.parent == MODELS:
            named = self.settings.sets
            sets = rewired_sets(self.checkpoint.name) if named is None else named
        if sets and not (folder := REWIRED / self.checkpoint.name).is_dir():
            remedy = f"run `medprobe rewire --model {folder.name}`, or set sets: [] in {KEY}"
            raise BadInput(folder, "the model was not rewired", remedy)
        for main in filter(self._is_rewired, map(Pass, sets)):
            main_passes.append(main)
            further_passes += self._further_steps(main)
            for swept in self._swept(main.set):
                further_passes += [swept, *self._further_steps(swept)]
        return [*main_passes, *further_passes, Pass()]

    def _swept(self, name: str) -> list[Pass]:
        """The values of sweeps that the model was rewired with on a set."""
        swept = [
            Pass(name, setting, value)
            for setting, values in self.settings.sweeps.items()
            for value in values
        ]
        return [*filter(self._is_rewired, swept)]

    def _is_rewired(self, rewiring: Pass) -> bool:
        return self._folder(rewiring).is_dir()

    def _further_steps(self, rewiring: Pass) -> list[Pass]:
        steps, main = self._steps(rewiring), self._main_step(rewiring)
        return [replace(rewiring, step=step) for step in steps if step != main]

    def _steps(self, rewiring: Pass) -> dict[int, Path]:
        """The checkpoints of a rewiring by step."""
        folder = self._folder(rewiring)
        steps = checkpoints(folder)
        if self.settings.step not in (None, *steps):
            remedy = f"set step in {KEY} to one of: {', '.join(map(str, steps))}"
            raise BadInput(folder, f"no checkpoint of step {self.settings.step}", remedy)
        return steps

    def _main_step(self, rewiring: Pass) -> int:
        return self.settings.step or max(checkpoints(self._folder(rewiring)))

    def inputs(self, pass_: Pass) -> list[Path]:
        """List the checkpoint of the pass; for the main step all checkpoints of its rewiring.

        Which checkpoints there are decides which of them is the main one, and whether it is also a
        variant of its own step. The records of sweeps decide whether the base settings are a value
        of theirs.
        """
        folder, records = self._folder(pass_), self._records(pass_)
        return [folder, *(records[1:] if _is_main(pass_) else records)]

    def batch_key(self, task: Task) -> str:
        """All tasks of a pass rank the same names, whose vectors are computed once."""
        return ""

    def predict(self, task: Task, pass_: Pass) -> pd.DataFrame:
        """Return the k nearest names of each query."""
        model = self._model(pass_)
        layers = self._layers(model, pass_)
        names = self._names(task.queries, task.benchmark_candidates)
        self._check_prompts(model, task)
        query_vectors = self._encode_prompts(model, self._prompts(model, task), layers)
        tables = []
        for layer, queries, index in zip(
            layers, query_vectors, self._index_names(model, names, layers), strict=True
        ):
            spare = int(self.settings.candidates == "without_subject")
            neighbours, scores = index.nearest(queries, names, task.k + spare + MAX_TIES)
            table = _table(task.queries, index.names, neighbours, scores)
            if spare:
                table = _without_subject(table, task.queries)
            label = Pass(pass_.set, READ, str(layer)).variant
            worst_scores = table["score"].where(table["rank"] <= task.k).groupby(table["query_id"])
            table = table[table["score"] >= worst_scores.transform("min")]
            for name in self._variants(model, pass_) if layer == -1 else [label]:
                tables.append(table.assign(variant=name, replicate=pass_.set))
        return pd.concat(tables, ignore_index=True)

    def _variants(self, model: Model, pass_: Pass) -> list[str]:
        """The names of a pass's predictions: each place of them in a curve is a variant.

        The main step is one of the steps. The base settings are a value of each sweep, unless the
        sweep names this value itself.
        """
        own = [pass_]
        if _is_main(pass_) and len(self._steps(pass_)) > 1:
            own.append(replace(pass_, step=self._main_step(pass_)))
        points = [*own]
        if self._records(pass_):
            recorded = read_settings(self._folder(pass_.rewiring))
            swept = {rewiring.setting for rewiring in self._swept(pass_.set)}
            for setting, values in self.settings.sweeps.items():
                value = recorded[setting]
                if setting in swept and value not in map(float, values):
                    points += [replace(each, setting=setting, value=str(value)) for each in own]
        depth, further = model.config.num_hidden_layers, self.settings.read_layers
        if not pass_.variant and further and depth not in further:
            points.append(Pass(pass_.set, READ, str(depth)))
        return [point.variant for point in points]

    def _records(self, pass_: Pass) -> list[Path]:
        """The settings of a set's rewiring, and of its sweeps, for a pass of the base settings.

        None where there are no sweeps, or no record of them.
        """
        if pass_.setting or not pass_.set:
            return []
        swept = self._swept(pass_.set)
        paths = [self._folder(rewiring) / RECORD for rewiring in (pass_.rewiring, *swept)]
        return paths if swept and all(path.is_file() for path in paths) else []

    def _folder(self, pass_: Pass) -> Path:
        """The checkpoint of a pass; for the main step the folder of all checkpoints."""
        return REWIRED / self.checkpoint.name / str(pass_) if pass_.set else self.checkpoint

    def _checkpoint(self, pass_: Pass) -> Path:
        is_main = _is_main(pass_)
        return self._folder(replace(pass_, step=self._main_step(pass_)) if is_main else pass_)

    def _layers(self, model: Model, pass_: Pass) -> list[int]:
        """The layers to read: the last, and under the base settings those of `read_layers`.

        Prints which of these the model lacks, once.
        """
        depth = model.config.num_hidden_layers
        further = dict.fromkeys(() if pass_.variant else self.settings.read_layers)
        missing = [str(layer) for layer in further if layer > depth]
        if missing and not self.has_reported:
            name = self.checkpoint.name
            print(f"{name} has {depth} layers: left out of read_layers {', '.join(missing)}")
            self.has_reported = True
        return [-1, *(layer for layer in further if layer <= depth)]

    def _model(self, pass_: Pass) -> Model:
        """Load the checkpoint of a pass, and free the previous one with its vectors."""
        if self.pass_model is None or self.pass_model[0] != pass_:
            self.pass_model, self.prompt_vectors, self.indexes = None, {}, []
            folder = self._checkpoint(pass_)
            model = load(folder, "encoder", self.engine)
            if model.tokenizer.mask_token is None:
                raise BadInput(folder, "the tokenizer has no mask token to put into the slot")
            self.pass_model = pass_, model
            self.reading = self._read_pooling(folder, model)
        return self.pass_model[1]

    def _read_pooling(self, folder: Path, model: Model) -> Reading:
        """Return how vectors come about; print what the checkpoint's own files say."""
        if self.settings.pooling:
            return Reading((self.settings.pooling,))
        own = read_modules(folder, model.device)
        if own:
            line = f"a text's vector is {own}, as {MODULES} says"
            print_above(
                f"{self.checkpoint.name}, contrastive: {line} (pooling: cls is the paper's)"
            )
        return own or FIRST_TOKEN

    def _prompts(self, model: Model, task: Task) -> list[str]:
        mask = model.tokenizer.mask_token
        return [prompt.replace(SLOT, mask) for prompt in task.queries["prompt"]]

    def _check_prompts(self, model: Model, task: Task) -> None:
        """Raise BadInput for a prompt whose slot or subject is not among its first tokens."""
        limit, setting = min((self.settings.query_length, "query_length"), (model.max_length, ""))
        prompts, mask = self._prompts(model, task), model.tokenizer.mask_token
        characters = read_characters(model, prompts, limit)
        for prompt, subject, label, length in zip(
            prompts, task.queries["subject"], task.query_labels, characters, strict=True
        ):
            parts = {"slot": mask, "subject": subject}
            lost = [
                name
                for name, part in parts.items()
                if length is not None and part in prompt and length < prompt.find(part) + len(part)
            ]
            if lost:
                count = len(model.tokenizer(prompt, verbose=False)["input_ids"])
                problem = f"the prompt has {count} tokens, of which contrastive reads {limit}"
                remedy = f"raise {setting} in {KEY}, or shorten" if setting else "shorten"
                lost_parts = f"without its {' and '.join(lost)}"
                raise BadInput(label, f"{problem}: {lost_parts}", f"{remedy} the prompt")

    def _report_cut(self, model: Model, names: Sequence[str]) -> None:
        """Print how many names are cut, in the first pass."""
        limit = self.settings.candidate_length
        characters = read_characters(model, names, limit)
        count = sum(length is not None for length in characters)
        if count and self.pass_model and self.pass_model[0] == self.passes()[0]:
            line = f"{self.checkpoint.name}, contrastive: {count} of {len(names)} names are longer "
            print_above(f"{line}than candidate_length: {limit} tokens of each are read")

    def _names(self, queries: pd.DataFrame, candidates: pd.DataFrame) -> list[str]:
        """The names to rank, sorted."""
        rows = candidates
        if self.settings.candidates == "answers":
            rows = rows[rows["type"] == "answer"]
            if rows.empty:
                remedy = f"choose candidates: all in {KEY}"
                raise BadInput("candidates", "none of this benchmark is marked as answer", remedy)
        names: list[str] = rows["name"].unique().tolist()
        if self.settings.candidates == "relation":
            relation_answers = {answer for answers in queries["answers"] for answer in answers}
            names = [name for name in names if name in relation_answers] or names
        return sorted(names)

    def _encode_prompts(
        self, model: Model, prompts: Sequence[str], layers: Sequence[int]
    ) -> np.ndarray[Any, Any]:
        """Vectors of prompts [layers, prompts, d]; each is encoded once a pass."""
        unread = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self.prompt_vectors]
        vectors = self._encode(model, unread, self.settings.query_length, layers)
        self.prompt_vectors |= {prompt: vectors[:, i] for i, prompt in enumerate(unread)}
        return np.stack([self.prompt_vectors[prompt] for prompt in prompts], axis=1)

    def _index_names(
        self, model: Model, names: Sequence[str], layers: Sequence[int]
    ) -> list[NameIndex]:
        """The indexes of all names so far, one per layer, after adding these names.

        A pass has one matrix for all relations and subsets, into which each name is encoded once.
        """
        self.indexes = self.indexes or [NameIndex(self.settings.distance) for _ in layers]
        unread = [name for name in names if name not in self.indexes[0]]
        if unread:
            self._report_cut(model, unread)
            vectors = self._encode(model, unread, self.settings.candidate_length, layers)
            for index, layer_vectors in zip(self.indexes, vectors, strict=True):
                index.add(unread, layer_vectors)
        return self.indexes

    def _encode(
        self, model: Model, texts: Sequence[str], length: int, layers: Sequence[int]
    ) -> np.ndarray[Any, Any]:
        """Vectors of texts [layers, texts, d]."""
        vectors = encode(model, texts, length, self.reading, layers)
        return round_to_half(vectors) if self.settings.vectors == "half" else vectors


def _is_main(pass_: Pass) -> bool:
    return bool(pass_.set) and pass_.step is None


def round_to_half(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Vectors rounded to half precision, in float32.

    >>> round_to_half(np.array([0.1], dtype=np.float32))
    array([0.09997559], dtype=float32)
    """
    return vectors.astype(np.float16).astype(np.float32)


def _table(
    queries: pd.DataFrame,
    names: Sequence[str],
    neighbours: np.ndarray[Any, Any],
    scores: np.ndarray[Any, Any],
) -> pd.DataFrame:
    """Predictions from `Index.nearest`: columns query_id, rank, prediction, score."""
    width = neighbours.shape[1]
    return pd.DataFrame(
        {
            "query_id": np.repeat(queries["query_id"].to_numpy(), width),
            "rank": np.tile(np.arange(1, width + 1), len(queries)),
            "prediction": np.array(names, dtype=object)[neighbours.ravel()],
            "score": scores.ravel(),
        }
    )


def _without_subject(table: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """Leave the query's own subject out, unless it is an answer, and close the ranks up."""
    own_subjects = {
        (row.query_id, row.subject)
        for row in queries.itertuples()
        if row.subject not in row.answers
    }
    pairs = zip(table["query_id"], table["prediction"], strict=True)
    rows_left = table[[pair not in own_subjects for pair in pairs]]
    return rows_left.assign(rank=rows_left.groupby("query_id", sort=False).cumcount() + 1)
