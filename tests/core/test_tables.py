"""The tables that cross stages are checked where they are written and read."""

from pathlib import Path

import pandas as pd
import pytest

from medprobe.core.errors import BadInput
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    Metadata,
    candidate_hash,
    metric_of_predictions,
    read_table,
    write_predictions,
)


def benchmark(prompt: str = "A may treat [Y] .") -> BenchmarkTables:
    query = ["q1", "toy", "may_treat", "A", "C1", prompt, ["B"], ["C2"], "full"]
    return BenchmarkTables(
        pd.DataFrame([query], columns=QUERY_COLUMNS),
        pd.DataFrame([["B", "C2", "disease", "full"]], columns=CANDIDATE_COLUMNS),
    )


def test_a_benchmark_is_read_as_it_was_written(tmp_path: Path) -> None:
    benchmark().write(tmp_path / "toy")
    [(subset, queries, candidates)] = BenchmarkTables.read(tmp_path / "toy").subsets()
    assert (subset, list(queries["answers"][0]), list(candidates["name"])) == ("full", ["B"], ["B"])


@pytest.mark.parametrize("prompt", ["A may treat .", "[Y] may treat [Y] ."])
def test_a_prompt_has_one_slot(tmp_path: Path, prompt: str) -> None:
    with pytest.raises(
        BadInput, match=r"query q1: the prompt needs exactly one \[Y\], and has [02]"
    ):
        benchmark(prompt).write(tmp_path / "toy")
    assert not list(tmp_path.iterdir())


def test_a_table_without_a_column_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"name": ["B"]}).to_parquet(tmp_path / "candidates.parquet")
    with pytest.raises(BadInput, match="no column id, type, subset"):
        read_table(tmp_path / "candidates.parquet", CANDIDATE_COLUMNS)
    with pytest.raises(BadInput, match="no such table; run `dvc repro`"):
        read_table(tmp_path / "queries.parquet", QUERY_COLUMNS)


def test_a_candidate_set_has_one_hash_whatever_its_order() -> None:
    assert candidate_hash(["b", "a"]) == candidate_hash(["a", "b"])
    assert candidate_hash(["a"]) != candidate_hash(["a", "b"])


def test_a_prediction_table_says_what_scores_it(tmp_path: Path) -> None:
    row = ["", "", "q1", 1, "B", "C2", 0.5, True]
    write_predictions(
        pd.DataFrame([row], columns=PREDICTION_COLUMNS), tmp_path / "a.parquet", "accuracy"
    )
    assert metric_of_predictions(tmp_path / "a.parquet") == "accuracy"
    assert read_table(tmp_path / "a.parquet", PREDICTION_COLUMNS)["hit"].tolist() == [True]
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(BadInput, match="no prediction table"):
        metric_of_predictions(tmp_path / "other.parquet")


def test_metadata_is_read_as_it_was_written(tmp_path: Path) -> None:
    metadata = Metadata("what", "who", "free", ("umls",), "acc_at_1")
    metadata.write(tmp_path / "toy.json")
    assert Metadata.read(tmp_path / "toy.json") == metadata
    (tmp_path / "toy.json").write_text("{")
    with pytest.raises(BadInput, match=r"toy.json: missing or cut; run `dvc repro`"):
        Metadata.read(tmp_path / "toy.json")
