"""A model in hand: a checkpoint of a folder or of the hub, and what it answers to one prompt."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe import methods
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput
from medprobe.core.params import Device, EngineParams, HubModel, ModelKind, Precision, parse_section
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, BenchmarkTables, check_prompts
from medprobe.engine.load import inspect
from medprobe.methods import K, Method
from medprobe.sources import hub

SEED: Final = 2021
ANSWERS: Final = "accuracy"  # the metric of methods whose predictions are answers
AS_IT_CAME: Final = {  # settings that a method demands, for a checkpoint that no project rewired
    "contrastive": {"sets": ["none"]}
}


@dataclass
class Model:
    """A checkpoint that methods can ask. Its weights are loaded when a method first asks it, and
    those of the last method are kept.
    """

    name: str
    folder: Path
    kinds: tuple[ModelKind, ...]  # what it can serve as
    engine: EngineParams = field(default_factory=EngineParams)
    seed: int = SEED
    _last: tuple[object, Method] | None = field(default=None, repr=False, compare=False)

    @property
    def methods(self) -> list[str]:
        """The names of the methods that can ask it."""
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
        """The k best of the candidates for a prompt with one slot `[Y]`, best first: columns rank,
        answer, score (higher is better; its unit is the method's).

        Raises BadInput for a prompt without exactly one slot, for no candidates, and for a method
        that ranks none, with those that do.
        """
        names = [*dict.fromkeys(candidates)]
        if not names:
            raise BadInput("rank", "no candidates", "give the names to rank")
        self._suits(method, "rank", "it ranks no candidates", writes=False)
        return self._answered(prompt, names, method, k, settings)

    def ask(
        self,
        prompt: str,
        method: str,
        *,
        k: int = K,
        settings: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """The k best answers that the model writes itself into the slot `[Y]` of a prompt, best
        first: columns rank, answer, score.

        Raises BadInput for a prompt without exactly one slot, and for a method that writes none,
        with those that do.
        """
        self._suits(method, "ask", "it writes no answers of its own", writes=True)
        return self._answered(prompt, [], method, k, settings)

    def _suits(self, method: str, what: str, problem: str, *, writes: bool) -> None:
        plugin = methods.find(method)
        if plugin.METRIC != ANSWERS or writes != plugin.WRITES:
            able = [n for n in answering(self.kinds) if writes == methods.find(n).WRITES]
            remedy = f"one of {', '.join(able)}" if able else "choose another model"
            raise BadInput(f"{what} by {method}", problem, remedy)

    def _answered(
        self,
        prompt: str,
        names: list[str],
        method: str,
        k: int,
        settings: Mapping[str, Any] | None,
    ) -> pd.DataFrame:
        listed = [(name, name, "", "") for name in names]
        tables = BenchmarkTables(
            asked(prompt), pd.DataFrame(listed, columns=CANDIDATE_COLUMNS, dtype=object)
        )
        found = answers(self.prober(method, settings), tables, k)
        return found.rename(columns={"prediction": "answer"})[["rank", "answer", "score"]]

    def prober(self, method: str, settings: Mapping[str, Any] | None = None) -> Method:
        """A method, ready to ask this model, with these of its settings, as in `params.yaml`.

        Raises BadInput for an unknown method or setting, and for a method that cannot ask models of
        this kind, with those that can.
        """
        plugin = methods.find(method)
        if not {*self.kinds} & {*plugin.KINDS}:
            serves = " or ".join(self.kinds) or "nothing"
            raise methods.mismatch_error(
                method, self.name, f"this one serves as {serves}", self.kinds
            )
        choices = AS_IT_CAME.get(method, {}) if settings is None else dict(settings)
        typed = parse_section(plugin.Settings, choices, f"settings of {method}")
        key = (method, typed.model_dump_json())
        if self._last is None or self._last[0] != key:
            self._last = None  # let go of the old weights before the new are loaded
            self._last = key, plugin(self.folder, typed, self.engine, self.seed)
        return self._last[1]


def load(
    path_or_hub: str | Path,
    *,
    revision: str | None = None,
    device: Device = "auto",
    precision: Precision = "float32",
    offline: bool = False,
    seed: int = SEED,
) -> Model:
    """A model from the folder of a checkpoint, or by its name on the hub (`dmis-lab/biobert-v1.1`),
    of the commit or branch `revision`. `offline`: only the hub's local cache is used.

    Raises BadInput where there is no such checkpoint, or one that is damaged.
    """
    engine = EngineParams(device=device, precision=precision, offline=offline)
    folder = Path(path_or_hub)
    if not folder.is_dir():
        folder = hub.fetch_snapshot(HubModel(hub=str(path_or_hub), revision=revision), offline)
    return Model(str(path_or_hub), folder, inspect(folder).kinds, engine, seed)


def answering(kinds: Iterable[str]) -> list[str]:
    """The methods whose predictions are answers, for models of these kinds."""
    return [name for name in methods.find_by_kind(kinds) if methods.find(name).METRIC == ANSWERS]


def asked(prompt: str) -> pd.DataFrame:
    """A prompt as a table of one query, whose answers nobody knows."""
    blank = dict.fromkeys(QUERY_COLUMNS, "")
    query = {**blank, "query_id": "ask", "prompt": prompt, "answers": [], "answer_ids": []}
    return pd.DataFrame([query])


def answers(prober: Method, tables: BenchmarkTables, k: int) -> pd.DataFrame:
    """The first k predictions for the one query of these tables, by the method's main pass and
    variant: columns of a prediction table, with `hit` where the query's answers are known.

    Raises BadInput for a prompt without exactly one slot, and where there is no answer.
    """
    check_prompts(tables.queries)
    [task] = prober.tasks(tables, k)
    predictions = prober.predict(task, prober.passes()[0])
    if predictions.empty:
        raise BadInput("ask", "no answer", "try another method")
    first = predictions["variant"].iloc[0]
    best = predictions[(predictions["variant"] == first) & (predictions["rank"] <= k)]
    best = best.sort_values("rank").reset_index(drop=True)
    known = len(tables.queries["answers"].iloc[0]) > 0
    return with_hits(best, tables) if known else best.drop(columns="hit", errors="ignore")
