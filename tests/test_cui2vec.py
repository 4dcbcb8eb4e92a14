"""cui2vec: unit vectors, neighbours, one conversion, bad files."""

from pathlib import Path

import numpy as np
import pytest

from medprobe.core.errors import BadInput
from medprobe.sources import cui2vec

GOOD = '"","V1","V2"\n"C0000001",3,4\n"C0000002",1,0\n"C0000003",0,2\n"C0000004",5,0\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_vectors_and_neighbours(tmp_path: Path) -> None:
    vectors = cui2vec.read(write(tmp_path / "v.csv", GOOD), tmp_path / "cache")
    assert np.allclose(vectors.of(["C0000001", "C0000003"]), [[0.6, 0.8], [0, 1]])
    assert vectors.matrix.dtype == np.float32
    assert "C0000009" not in vectors
    others = ["C0000004", "C0000003", "C0000002"]
    assert vectors.nearest("C0000001", others, 2) == ["C0000003", "C0000002"]  # a tie by CUI


def test_converts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "v.csv", GOOD)
    cui2vec.read(path, tmp_path / "cache")
    monkeypatch.setattr(cui2vec, "_convert", None)
    assert cui2vec.read(path, tmp_path / "cache").rows["C0000003"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("C0000002", "C2"), "line 3: 'C2' is no CUI"),
        (GOOD.replace("C0000002", "C0000001"), "line 3: C0000001 stands there twice"),
        (GOOD.replace("1,0", "1,x"), "not a table of numbers"),
        (GOOD.replace("1,0", "1,"), "line 3: a value is missing"),
        ("", "not a table of numbers"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        cui2vec.read(write(tmp_path / "v.csv", text), tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*"))
