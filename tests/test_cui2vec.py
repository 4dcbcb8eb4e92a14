"""cui2vec: unit vectors, neighbours, one conversion, bad files."""

from pathlib import Path

import numpy as np
import pytest

from medprobe.sources import cui2vec

GOOD = '"","V1","V2"\n"C0000001",3,4\n"C0000002",1,0\n"C0000003",0,2\n"C0000004",5,0\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_vectors_and_neighbours(tmp_path: Path) -> None:
    vectors = cui2vec.read(write(tmp_path / "v.csv", GOOD), tmp_path / "cache")
    assert np.allclose(vectors.look_up(["C0000001", "C0000003"]), [[0.6, 0.8], [0, 1]])
    assert vectors.matrix.dtype == np.float32
    assert "C0000009" not in vectors
    others = ["C0000004", "C0000003", "C0000002"]
    assert vectors.nearest("C0000001", others, 2) == ["C0000003", "C0000002"]  # a tie by CUI


def test_converts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "v.csv", GOOD)
    cui2vec.read(path, tmp_path / "cache")
    monkeypatch.setattr(cui2vec, "_convert", None)
    assert cui2vec.read(path, tmp_path / "cache").rows["C0000003"] == 2
