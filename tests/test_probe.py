"""The probe stage: parts that are finished are kept, hits are marked, misfits are refused."""

import re
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

from medprobe import methods
from medprobe.errors import BadInput
from medprobe.params import EngineParams, Params, Section
from medprobe.stages.probe import probe, with_hits
from medprobe.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, Benchmark, read_table

DOCS = Path(__file__).parent.parent / "docs"


class Settings(Section):
    pass


class Alphabetical:
    """A method that ranks candidates by their names, and can be told to break down."""

    KINDS: ClassVar = ("masked",)
    Settings: ClassVar = Settings
    ran: ClassVar[list[str]] = []
    breaks_at: ClassVar[str | None] = None

    def __init__(
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.folder = folder

    def inputs(self) -> list[Path]:
        return [self.folder]

    def passes(self) -> list[str]:
        return [""]

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        relation = queries["relation"][0]
        if relation == self.breaks_at:
            raise KeyboardInterrupt
        self.ran.append(relation)
        rows = [
            ("", "", query, rank, name, -float(rank))
            for query in queries["query_id"]
            for rank, name in enumerate(sorted(candidates["name"])[:k], start=1)
        ]
        columns = ["variant", "replicate", "query_id", "rank", "prediction", "score"]
        return pd.DataFrame(rows, columns=columns)


PARAMS = Params.model_validate(
    {
        "models": {
            "masked": {"bert": {"folder": "x"}},
            "causal": {"gpt": {"folder": "x"}},
        },
        "benchmarks": {"medlama": {}},
        "methods": {"alphabetical": {"benchmarks": ["medlama"]}},
    }
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("medprobe.stages.probe.track", lambda *_: None)  # has tests of its own
    monkeypatch.setattr(Alphabetical, "ran", [])
    monkeypatch.setattr(Alphabetical, "breaks_at", None)
    real = methods.find
    monkeypatch.setattr(
        methods, "find", lambda name: Alphabetical if name == "alphabetical" else real(name)
    )
    queries = [
        [f"{subset}-{relation}", "medlama", relation, "s", "C1", "s [Y]", ["b"], ["C2"], subset]
        for subset in ("full", "hard")
        for relation in ("may_prevent", "may_treat")
    ]
    candidates = [[name, f"C-{name}", "", s] for s in ("full", "hard") for name in "cab"]
    Benchmark(
        pd.DataFrame(queries, columns=QUERY_COLUMNS),
        pd.DataFrame(candidates, columns=CANDIDATE_COLUMNS),
    ).write(tmp_path / "outputs/benchmarks/medlama")
    model = tmp_path / "outputs/models/bert"
    model.mkdir(parents=True)
    (model / "weights").write_text("1")
    return tmp_path


def predictions(project: Path) -> pd.DataFrame:
    return read_table(project / "outputs/predictions/bert/alphabetical/medlama.parquet", [])


def test_every_query_has_its_ranks_ids_and_hits(project: Path) -> None:
    probe("bert", "alphabetical", PARAMS)
    table = predictions(project)
    first = table[table["query_id"] == "full-may_treat"]
    assert list(first["prediction"]) == ["a", "b", "c"]
    assert list(first["prediction_id"]) == ["C-a", "C-b", "C-c"]
    assert list(first["hit"]) == [False, True, False]
    assert table["query_id"].nunique() == 4


def test_a_stopped_probe_goes_on_where_it_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Alphabetical, "breaks_at", "may_treat")
    with pytest.raises(KeyboardInterrupt):
        probe("bert", "alphabetical", PARAMS)
    assert not (project / "outputs/predictions").exists()
    assert Alphabetical.ran == ["may_prevent"] * 2
    monkeypatch.setattr(Alphabetical, "breaks_at", None)
    probe("bert", "alphabetical", PARAMS)
    resumed = predictions(project)
    assert Alphabetical.ran == ["may_prevent"] * 2 + ["may_treat"] * 2
    for part in (project / "outputs/parts").iterdir():
        part.unlink()
    probe("bert", "alphabetical", PARAMS)
    pd.testing.assert_frame_equal(predictions(project), resumed)


def test_other_weights_are_other_parts(project: Path) -> None:
    probe("bert", "alphabetical", PARAMS)
    (project / "outputs/models/bert/weights").write_text("2")
    probe("bert", "alphabetical", PARAMS)
    assert len(Alphabetical.ran) == 8


def test_a_method_and_a_model_that_do_not_fit(project: Path) -> None:
    with pytest.raises(BadInput, match="needs a model of kind masked, this one is causal"):
        probe("gpt", "alphabetical", PARAMS)


def test_a_benchmarks_own_rule_says_what_is_a_hit() -> None:
    class Folded:
        normalise = staticmethod(str.lower)

    queries = pd.DataFrame({"query_id": ["q"], "answers": [["Aspirin"]]})
    benchmark = Benchmark(queries, pd.DataFrame({"name": ["aspirin"], "id": ["C1"]}))
    table = pd.DataFrame({"query_id": ["q"], "prediction": ["aspirin"]})
    assert with_hits(table, benchmark, Folded)["hit"].all()
    assert not with_hits(table, benchmark, object)["hit"].any()


def test_the_method_of_the_documents_runs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "extending.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    written: dict[str, type] = {}
    exec(code, written)
    monkeypatch.setattr(methods, "find", lambda name: written["ShortestFirst"])
    monkeypatch.setattr("medprobe.stages.probe._code", lambda found: [])
    probe("bert", "alphabetical", PARAMS)
    assert list(predictions(project)["prediction"][:3]) == ["a", "b", "c"]
