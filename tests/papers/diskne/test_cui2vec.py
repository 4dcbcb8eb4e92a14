"""cui2vec: unit vectors, neighbours, one conversion, bad files."""

from pathlib import Path

import numpy as np
import pytest

from medprobe.core.errors import BadInput
from medprobe.papers.diskne import concepts

GOOD = '"","V1","V2"\n"C0000001",3,4\n"C0000002",1,0\n"C0000003",0,2\n"C0000004",5,0\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_vectors_and_neighbours(tmp_path: Path) -> None:
    vectors = concepts.read(write(tmp_path / "v.csv", GOOD), tmp_path / "cache")
    assert np.allclose(vectors.look_up(["C0000001", "C0000003"]), [[0.6, 0.8], [0, 1]])
    assert vectors.matrix.dtype == np.float32
    assert "C0000009" not in vectors.rows
    others = ["C0000004", "C0000003", "C0000002"]
    assert vectors.nearest("C0000001", others, 2) == ["C0000003", "C0000002"]  # a tie by CUI


@pytest.mark.parametrize("header", ['"","V1","row"', '"","V1","V3"', '"","V2","count"'])
def test_a_column_that_is_no_dimension_is_refused(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "v.csv", GOOD.replace('"","V1","V2"', header))
    with pytest.raises(BadInput, match=r"line 1: column .*, expected V1 to V2; leave out"):
        concepts.read(path, tmp_path / "cache")


@pytest.mark.parametrize("values", ["0,0", "3e38,3e38"])
def test_a_vector_without_direction_is_refused(tmp_path: Path, values: str) -> None:
    path = write(tmp_path / "v.csv", GOOD.replace("3,4", values))
    with pytest.raises(BadInput, match="line 2: a vector of length 0, or too long"):
        concepts.read(path, tmp_path / "cache")


def test_converts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "v.csv", GOOD)
    concepts.read(path, tmp_path / "cache")
    monkeypatch.setattr(concepts, "_convert", None)
    assert concepts.read(path, tmp_path / "cache").rows["C0000003"] == 2
