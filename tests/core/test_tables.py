"""The tables that cross stages are checked where they are written and read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from medprobe.core.errors import BadInput
from medprobe.core.parts import read_part, write_part
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    Metadata,
    candidate_hash,
    count_rows,
    metric_of_predictions,
    read_predictions,
    read_refusal,
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


READERS: dict[str, Callable[[Path], Any]] = {
    "read_table": lambda path: read_table(path, ["query_id"]),
    "read_predictions": lambda path: list(read_predictions(path)),
    "read_refusal": read_refusal,
    "metric_of_predictions": metric_of_predictions,
    "count_rows": count_rows,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kept", [0, 3, 100, -100, -9, -1])
def test_a_cut_table_is_a_line_with_the_stage_that_makes_it(
    working_folder: Path, reader: str, kept: int
) -> None:
    out = {"stages": {"probe-x@m-b": {"cmd": "x", "outs": [{"path": "outputs/m", "md5": "0"}]}}}
    Path("dvc.lock").write_text(yaml.safe_dump(out))
    path = Path("outputs/m/b.parquet")
    row = ["", "", "q1", 1, "B", "C2", 0.5, True]
    write_predictions(pd.DataFrame([row], columns=PREDICTION_COLUMNS), path, "accuracy")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(BadInput, match=r"outputs/m/b.parquet: .*; run `dvc repro probe-x@m-b` to"):
        READERS[reader](path)


def test_a_damaged_part_is_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A part of zeros at any place, or that ends at any place, as a power failure leaves it."""
    table = pd.DataFrame({"name": [f"name {i}" for i in range(300)], "score": range(300)})
    path = tmp_path / "part.parquet"
    write_part(table, path)
    whole, made_again = path.read_bytes(), 0
    damaged = [whole[:at] for at in range(0, len(whole), 97)]
    damaged += [whole[:at] + bytes(97) + whole[at + 97 :] for at in range(0, len(whole) - 97, 97)]
    for content in damaged:
        path.write_bytes(content)
        stored = read_part(path)
        line = capsys.readouterr().err
        if stored is None:
            assert not path.exists() and line.startswith(f"{path}: cut or damaged")
            made_again += 1
        else:
            pd.testing.assert_frame_equal(stored, table)
    assert made_again > len(damaged) / 2


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
