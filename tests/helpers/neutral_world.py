"""Two queries whose prompts differ in the subject alone, probed with their neutral controls."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from helpers import probing
from medprobe.core import neutral
from medprobe.core.params import Params
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, BenchmarkTables, read_table
from medprobe.pipeline.stages.probe import probe

SUBJECTS = ("Velotrine", "hepatitis B")
Probe = Callable[..., pd.DataFrame]


def world(prompt: str = "{} treats [Y] .", subset: str = "full") -> BenchmarkTables:
    """The queries differ in their answers, too."""
    queries = [
        (f"q{i}", "toy", "may_treat", name, f"S{i}", prompt.format(name), [answer], ["A"], subset)
        for i, (name, answer) in enumerate(zip(SUBJECTS, ("influenza", "SNCA"), strict=True))
    ]
    candidates = [(name, name, "", subset) for name in probing.NAMES]
    return BenchmarkTables(
        pd.DataFrame(queries, columns=QUERY_COLUMNS),
        pd.DataFrame(candidates, columns=CANDIDATE_COLUMNS),
    )


def params(kind: str, method: str, **settings: object) -> Params:
    content = {
        "models": {kind: {"tiny": {}}},
        "benchmarks": {"table": {"toy": {"facts": "tables/toy.csv"}}},
        "methods": {kind: {method: {"toy": settings}}},
    }
    return Params.model_validate(content)


def prober(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], Path]
) -> Probe:
    """`prober(…)(arch, kind, method, …)`: the predictions of a tiny model on the two queries."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("medprobe.pipeline.stages.probe.code_fingerprint", lambda *_: "code")
    world().write(folder / "outputs/benchmarks/toy")

    def probe_tiny(arch: str, kind: str, method: str, **settings: object) -> pd.DataFrame:
        if not (model := folder / "outputs/models/tiny").exists():
            shutil.copytree(tiny_model(arch), model)
        probe("tiny", method, "toy", params(kind, method, **settings))
        return read_table(folder / f"outputs/predictions/tiny/{method}/toy.parquet", [])

    return probe_tiny


def check_one_ranking(probe: Probe, arch: str, kind: str, method: str, **settings: object) -> None:
    """Fail unless the controls of both queries have one ranking, and all else is as without."""
    without = probe(arch, kind, method, **settings)
    table = probe(arch, kind, method, neutral=True, **settings)
    controls = table[table["variant"].map(neutral.is_control)]
    others = table[~table["variant"].map(neutral.is_control)].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, without)
    assert {neutral.original_variant(name) for name in controls["variant"]} == {*without["variant"]}
    columns = ["variant", "rank", "prediction", "score"]
    first, second = (
        controls.loc[controls["query_id"] == name, columns].reset_index(drop=True)
        for name in ("q0", "q1")
    )
    pd.testing.assert_frame_equal(first, second)
