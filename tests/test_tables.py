"""The tables that cross stages are checked where they are written and read."""

from pathlib import Path

import pandas as pd
import pytest

from medprobe.errors import BadInput
from medprobe.tables import (
    CANDIDATE_COLUMNS,
    QUERY_COLUMNS,
    Benchmark,
    candidate_hash,
    read_table,
)


def benchmark(prompt: str = "A may treat [Y] .") -> Benchmark:
    query = ["q1", "toy", "may_treat", "A", "C1", prompt, ["B"], ["C2"], "full"]
    return Benchmark(
        pd.DataFrame([query], columns=QUERY_COLUMNS),
        pd.DataFrame([["B", "C2", "disease", "full"]], columns=CANDIDATE_COLUMNS),
    )


def test_a_benchmark_is_read_as_it_was_written(tmp_path: Path) -> None:
    benchmark().write(tmp_path / "toy")
    [(subset, queries, candidates)] = Benchmark.read(tmp_path / "toy").subsets()
    assert (subset, list(queries["answers"][0]), list(candidates["name"])) == ("full", ["B"], ["B"])


@pytest.mark.parametrize("prompt", ["A may treat .", "[Y] may treat [Y] ."])
def test_a_prompt_has_one_slot(tmp_path: Path, prompt: str) -> None:
    with pytest.raises(BadInput, match=r"query q1: the prompt has [02] slots"):
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
