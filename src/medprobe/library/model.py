"""A loaded model: a checkpoint of a folder or of the hub, and its answers to single prompts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from medprobe import methods
from medprobe.backends.finder import find_kinds, find_tokenizer
from medprobe.core.answers import with_hits
from medprobe.core.checkpoints import OTHER_WEIGHTS, parse_hub_name
from medprobe.core.errors import BadInput
from medprobe.core.params import Device, EngineParams, HubModel, ModelKind, Precision
from medprobe.core.progress import print_above
from medprobe.core.settings import parse_section
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    DISTRACTOR,
    QUERY_COLUMNS,
    SLOT,
    BenchmarkTables,
    check_prompts,
    check_texts,
)
from medprobe.engine import formats, windows
from medprobe.engine.slots import count_names
from medprobe.engine.tokenizer import special_tokens
from medprobe.methods import K, Method
from medprobe.sources import hub

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SEED: Final = 2021
ANSWER_METRIC: Final = "accuracy"  # the metric of methods whose predictions are answers


@dataclass
class Model:
    """A checkpoint that methods can probe.

    Its weights are loaded when a method first needs them. Those of the last method stay loaded.

    Attributes:
        name: what it is called in results.
        folder: of the checkpoint.
        kinds: the kinds of model that it can serve as, such as `masked`.
        engine: device, precision and batch size.
        seed: of every random draw.
    """

    name: str
    folder: Path
    kinds: tuple[ModelKind, ...]
    engine: EngineParams = field(default_factory=EngineParams)
    seed: int = SEED
    _prober_cache: tuple[object, Method] | None = field(default=None, repr=False, compare=False)
    _copy: TemporaryDirectory[str] | None = field(default=None, repr=False, compare=False)

    @property
    def methods(self) -> list[str]:
        """The names of the methods that can probe the model."""
        return methods.find_by_kind(self.kinds)

    def rank(
        self,
        prompt: str,
        candidates: Iterable[str],
        method: str,
        *,
        k: int = K,
        settings: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Rank candidates for one prompt.

        Args:
            prompt: a sentence with one slot `[Y]`.
            candidates: the names to rank; repeated names count once.
            method: name of a method that ranks candidates, such as `mask_average`.
            k: number of candidates to return.
            settings: settings of the method, as in `params.yaml`; the defaults if None.

        Returns:
            The k best candidates, best first: columns `rank, answer, score`. A higher score is
            better; its unit is the method's.

        Raises:
            BadInput: the prompt does not have exactly one slot, there are no candidates, or the
                method ranks none.

        Example:
            >>> model = load("bert-base-uncased")  # doctest: +SKIP
            >>> names = ["pain", "fever"]
            >>> model.rank("Aspirin treats [Y].", names, "mask_average")  # doctest: +SKIP
        """
        names = [*dict.fromkeys(candidates)]
        if isinstance(candidates, str) or not all(isinstance(name, str) for name in names):
            raise BadInput("rank", "candidates are no list of texts", "give ['fever', 'gout']")
        if not names:
            raise BadInput("rank", "no candidates", "give the names to rank")
        self._check_method(method, "rank", "it ranks no candidates", writes=False)
        return self._predict(prompt, names, method, k, settings)

    def ask(
        self,
        prompt: str,
        method: str,
        *,
        k: int = K,
        settings: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Let the model write its answers to one prompt.

        Args:
            prompt: a sentence with one slot `[Y]`.
            method: name of a method that writes answers, such as `fill_mask`, or `answering` for
                causal and chat models.
            k: number of answers to return.
            settings: settings of the method, as in `params.yaml`; the defaults if None.

        Returns:
            The k best answers, best first: columns `rank, answer, score`.

        Raises:
            BadInput: the prompt does not have exactly one slot, or the method writes no answers.
        """
        self._check_method(method, "ask", "it writes no answers of its own", writes=True)
        settings = {**(methods.find(method).WRITES_WITH or {}), **(settings or {})}
        return self._predict(prompt, [], method, k, settings)

    def _check_method(self, method: str, action: str, problem: str, *, writes: bool) -> None:
        def is_suitable(name: str) -> bool:
            settings = methods.find(name).WRITES_WITH
            return settings is not None if writes else settings != {}

        if methods.find(method).METRIC != ANSWER_METRIC or not is_suitable(method):
            alternatives = [name for name in find_answering(self.kinds) if is_suitable(name)]
            remedy = (
                f"choose one of {', '.join(alternatives)}"
                if alternatives
                else "choose another model"
            )
            raise BadInput(f"{action} by {method}", problem, remedy)

    def _predict(
        self,
        prompt: str,
        names: list[str],
        method: str,
        k: int,
        settings: Mapping[str, Any] | None,
    ) -> pd.DataFrame:
        if k < 1:
            raise BadInput("k", f"{k}", "give how many answers to return, 1 or more")
        rows = [(name, name, "", "") for name in names]
        tables = BenchmarkTables(
            make_query(prompt), pd.DataFrame(rows, columns=CANDIDATE_COLUMNS, dtype=object)
        )
        prober = self.make_prober(method, settings)
        self.check_texts(tables)
        predictions = predict_answers(prober, tables, k)
        return predictions.rename(columns={"prediction": "answer"})[["rank", "answer", "score"]]

    def check_texts(self, tables: BenchmarkTables) -> None:
        """Check the texts of a benchmark, and print how many names the model cannot tell apart.

        The line is printed on standard error. A model whose tokenizer is not known is not checked.

        Args:
            tables: the benchmark.

        Raises:
            BadInput: a text contains a special token of the model's tokenizer.
        """
        if self._tokenizer is None:
            return
        check_texts(tables, special_tokens(self._tokenizer))
        is_ranked = tables.candidates["type"] != DISTRACTOR
        counts = count_names(self._tokenizer, tables.candidates.loc[is_ranked, "name"])
        if str(counts):
            print_above(f"to the tokenizer of {self.name}, {counts}")
        if long := windows.describe_long_names(windows.find_long_names(self.folder, tables)):
            print_above(f"{self.name}: {long}")

    def shorten_prompts(self, tables: BenchmarkTables) -> BenchmarkTables:
        """Shorten prompts that the model cannot read whole to the words around their gap.

        A line on standard error counts and names them.

        Args:
            tables: the benchmark.
        """
        tables, shorter = windows.shorten_prompts(self.folder, tables)
        if shorter:
            print_above(f"{self.name}: {windows.describe_shorter(shorter)}")
        return tables

    @cached_property
    def _tokenizer(self) -> Any:
        return find_tokenizer(self.folder)

    def check_kind(self, method: str) -> None:
        """Raise BadInput if a method probes no model of this kind."""
        if not {*self.kinds} & {*methods.find(method).KINDS}:
            kinds = " or ".join(self.kinds) or "nothing"
            raise methods.mismatch_error(
                method, self.name, f"this one serves as {kinds}", self.kinds
            )

    def make_prober(self, method: str, settings: Mapping[str, Any] | None = None) -> Method:
        """Prepare a method to probe this model.

        Args:
            method: name of the method.
            settings: settings of the method, as in `params.yaml`; the defaults if None.

        Raises:
            BadInput: the method or a setting is unknown, or the method cannot probe models of this
                kind.
        """
        self.check_kind(method)
        plugin = methods.find(method)
        typed = parse_section(plugin.Settings, settings or {}, f"settings of {method}")
        key = (method, typed.model_dump_json())
        if self._prober_cache is None or self._prober_cache[0] != key:
            self._prober_cache = None  # let go of the old weights before the new are loaded
            self._prober_cache = key, plugin(self.folder, typed, self.engine, self.seed)
        return self._prober_cache[1]


def load(
    path_or_hub: str | Path | None = None,
    *,
    model: "PreTrainedModel | None" = None,
    tokenizer: "PreTrainedTokenizerBase | None" = None,
    revision: str | None = None,
    device: Device = "auto",
    precision: Precision = "float32",
    offline: bool = False,
    seed: int = SEED,
) -> Model:
    """Open a model from a folder, from the hub or from memory.

    Of a model in memory, and of a GGUF file, a copy is written to a temporary folder, which goes
    with the returned object. The model itself is not touched, so it can go on training.

    Args:
        path_or_hub: folder of a checkpoint, a `.gguf` file, or a name on the hub such as
            `dmis-lab/biobert-base-cased-v1.2`.
        model: a model of transformers in memory, in place of `path_or_hub`.
        tokenizer: the tokenizer of this model.
        revision: commit or branch on the hub; the main branch if None.
        device: where the model runs.
        precision: of its weights.
        offline: use only the hub's local cache.
        seed: of every random draw.

    Raises:
        BadInput: there is no such checkpoint, or it is damaged; or neither or both of a path and a
            model are given, or a model without its tokenizer.

    Example:
        >>> load("bert-base-uncased").methods  # doctest: +SKIP
        ['contrastive', 'fill_mask', 'judgment', 'likelihood', ...]
        >>> load(model=model, tokenizer=tokenizer).methods  # doctest: +SKIP
    """
    engine = EngineParams(device=device, precision=precision, offline=offline)
    if (path_or_hub is None) == (model is None) or (model is None) != (tokenizer is None):
        remedy = "give a folder or a name on the hub, or both model= and tokenizer="
        raise BadInput("load", "expected one model", remedy)
    if model is not None and tokenizer is not None:
        copy = TemporaryDirectory(prefix="medprobe-model-")
        model.save_pretrained(copy.name)
        tokenizer.save_pretrained(copy.name)
        folder = Path(copy.name)
        name = model.config.name_or_path or type(model).__name__
        return Model(name, folder, find_kinds(folder), engine, seed, _copy=copy)
    if not isinstance(path_or_hub, str | Path):
        raise BadInput("load", f"a {type(path_or_hub).__name__}", "give a path or a name")
    folder = Path(path_or_hub)
    if formats.is_gguf(folder):
        copy = TemporaryDirectory(prefix="medprobe-model-")
        formats.convert(folder, Path(copy.name))
        folder = Path(copy.name)
        return Model(str(path_or_hub), folder, find_kinds(folder), engine, seed, _copy=copy)
    if folder.is_file() or (folder.suffix in OTHER_WEIGHTS and not folder.is_dir()):
        problem = f"a file, expected the folder of a checkpoint or a {formats.ENDING} file"
        raise BadInput(path_or_hub, problem, "give one of these")
    if not folder.is_dir():
        if parse_hub_name(str(path_or_hub)) is None:
            remedy = "give a checkpoint's folder, or a model's name"
            raise BadInput(path_or_hub, "no such folder, and no name on the hub", remedy)
        folder = hub.fetch_snapshot(HubModel(hub=str(path_or_hub), revision=revision), offline)
    return Model(str(path_or_hub), folder, find_kinds(folder), engine, seed)


def find_answering(kinds: Iterable[str]) -> list[str]:
    """List the methods whose predictions are answers, for models of these kinds.

    Example:
        >>> find_answering(["encoder"])
        ['contrastive']
    """
    return [
        name for name in methods.find_by_kind(kinds) if methods.find(name).METRIC == ANSWER_METRIC
    ]


def make_query(prompt: str) -> pd.DataFrame:
    """Return a query table of one prompt whose answers are unknown."""
    if not isinstance(prompt, str):
        raise BadInput("prompt", f"a {type(prompt).__name__}", "give one text")
    if "[X]" in prompt:
        raise BadInput("prompt", "[X] has no meaning here", "write the subject in its place")
    if (slots := prompt.count(SLOT)) != 1:
        problem = f"needs exactly one {SLOT}, and has {slots}"
        raise BadInput("prompt", problem, f"put {SLOT} where the answer belongs")
    blank = dict.fromkeys(QUERY_COLUMNS, "")
    query = {**blank, "query_id": "ask", "prompt": prompt, "answers": [], "answer_ids": []}
    return pd.DataFrame([query])


def predict_answers(prober: Method, tables: BenchmarkTables, k: int) -> pd.DataFrame:
    """Predict the answers to a single query by the method's main pass and variant."""
    check_prompts(tables.queries)
    [task] = prober.tasks(tables, k)
    predictions = prober.predict(replace(task, keep_best=True), prober.passes()[0])
    if predictions.empty:
        raise BadInput("ask", "no answer", "try another method")
    variant = predictions["variant"].iloc[0]
    best_predictions = predictions[(predictions["variant"] == variant) & (predictions["rank"] <= k)]
    best_predictions = best_predictions.sort_values("rank").reset_index(drop=True)
    has_answers = len(tables.queries["answers"].iloc[0]) > 0
    return (
        with_hits(best_predictions, tables)
        if has_answers
        else best_predictions.drop(columns="hit", errors="ignore")
    )
