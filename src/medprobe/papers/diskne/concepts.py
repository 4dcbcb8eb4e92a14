"""What is known of medical concepts: cui2vec's vectors, and a vocabulary's hierarchy in UMLS.

cui2vec has a vector for each of 109,053 concepts (Beam et al. 2020). The released file is a CSV of
1 GB. It is converted once; the copy is memory-mapped, so that reading it again takes no time, and
only rows that are used are loaded.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray

from medprobe.core.errors import BadInput, quote
from medprobe.core.files import replacing
from medprobe.sources.records import CUI, DOWNLOAD_AGAIN
from medprobe.sources.rrf import read_mrrel


class Hierarchy:
    """Concepts (CUIs) above and below each other.

    A concept can have many parents. Cycles are allowed: UMLS has them where two codes share a
    concept.

    >>> tree = Hierarchy([("C3", "C2"), ("C2", "C1")])
    >>> sorted(tree.ancestors("C3")), sorted(tree.descendants("C1"))
    (['C1', 'C2'], ['C2', 'C3'])
    """

    def __init__(self, edges: Iterable[tuple[str, str]]) -> None:
        """From `(concept, its parent)` pairs."""
        self._parents: dict[str, list[str]] = defaultdict(list)
        self._children: dict[str, list[str]] = defaultdict(list)
        for child, parent in edges:
            self._parents[child].append(parent)
            self._children[parent].append(child)

    @classmethod
    def read(cls, folder: Path, vocabulary: str = "SNOMEDCT_US") -> "Hierarchy":
        """From the PAR and CHD rows of `folder/MRREL.RRF` whose SAB is `vocabulary`."""
        where = (pl.col("SAB") == vocabulary) & pl.col("REL").is_in(["PAR", "CHD"])
        where &= pl.col("CUI1") != pl.col("CUI2")
        rows = read_mrrel(folder, ["CUI1", "CUI2", "REL"], where)
        up = rows.filter(pl.col("REL") == "PAR").select(child="CUI1", parent="CUI2")
        down = rows.filter(pl.col("REL") == "CHD").select(child="CUI2", parent="CUI1")
        return cls(pl.concat([up, down]).unique().iter_rows())

    def ancestors(self, cui: str) -> frozenset[str]:
        """All concepts above, at any distance."""
        return _reach(self._parents, cui)

    def descendants(self, cui: str) -> frozenset[str]:
        """All concepts below, at any distance."""
        return _reach(self._children, cui)

    def related(self, cui: str) -> frozenset[str]:
        """All concepts above and below, at any distance."""
        return self.ancestors(cui) | self.descendants(cui)


def _reach(steps: dict[str, list[str]], start: str) -> frozenset[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for cui in steps.get(waiting.pop(), ()):
            if cui not in reached:
                reached.add(cui)
                waiting.append(cui)
    return frozenset(reached - {start})


@dataclass(frozen=True)
class Vectors:
    """Unit vectors, float32 [concepts, dimensions], and the row of each concept (CUI)."""

    matrix: NDArray[np.float32]
    rows: dict[str, int]

    def look_up(self, cuis: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of these concepts, [cuis, dimensions]. Raises KeyError for an unknown one."""
        return np.asarray(self.matrix[[self.rows[cui] for cui in cuis]])

    def nearest(self, cui: str, among: Sequence[str], n: int) -> list[str]:
        """The `n` concepts of `among` most similar to `cui` by cosine, ties by CUI."""
        cosines = self.look_up(among) @ self.look_up([cui])[0]
        order = np.lexsort((np.array(among), -cosines))
        return [among[place] for place in order[:n]]


def read(path: Path, cache: Path) -> Vectors:
    """Read `cui2vec_pretrained.csv`."""
    if not path.is_file():
        raise BadInput(path, "no such file", "get cui2vec_pretrained.csv and put it there")
    state = path.stat()
    copy = cache / f"cui2vec-{state.st_size}-{state.st_mtime_ns}"
    if not copy.is_dir():
        _convert(path, copy)
    matrix = np.load(copy / "vectors.npy", mmap_mode="r")
    cuis = (copy / "cuis.txt").read_text(encoding="utf-8").split("\n")
    return Vectors(matrix, {cui: row for row, cui in enumerate(cuis)})


def _convert(path: Path, copy: Path) -> None:
    """Check a CSV file of vectors, and write them as rows of length 1 to the folder `copy`."""
    try:
        table = pl.read_csv(path, infer_schema=False)
        if CUI.fullmatch(table.columns[0]) or table.is_empty():
            raise BadInput(
                f"{path}, line 1", "expected a header, then one concept per line", DOWNLOAD_AGAIN
            )
        expected = [f"V{number}" for number in range(1, table.width)]
        if wrong := [name for name in table.columns[1:] if name not in expected]:
            problem = f"column {quote(wrong[0])}, expected V1 to V{table.width - 1}"
            raise BadInput(f"{path}, line 1", problem, "leave out what is no dimension")
        cuis = table.to_series(0).to_list()
        values = table.select(pl.exclude(table.columns[0]).cast(pl.Float32))
    except pl.exceptions.PolarsError as error:
        problem = str(error).splitlines()[0]
        raise BadInput(path, f"not a table of numbers: {problem}", DOWNLOAD_AGAIN) from None
    for line, cui in enumerate(cuis, start=2):
        if not CUI.fullmatch(cui or ""):
            problem = f"{quote(cui)} is not a CUI"
            raise BadInput(f"{path}, line {line}", problem, "expected C and 7 digits")
    for row in np.flatnonzero(pd.Index(cuis).duplicated())[:1]:
        raise BadInput(f"{path}, line {row + 2}", f"{cuis[row]} occurs twice")
    matrix = values.to_numpy()
    invalid_rows = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if invalid_rows.size:
        raise BadInput(f"{path}, line {invalid_rows[0] + 2}", "a value is missing or not a number")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    for row in np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))[:1]:
        problem = "a vector of length 0, or too long for 32 bits, has no direction"
        raise BadInput(f"{path}, line {row + 2}", problem, DOWNLOAD_AGAIN)
    with replacing(copy) as folder:
        folder.mkdir()
        np.save(folder / "vectors.npy", np.ascontiguousarray(matrix / lengths))
        (folder / "cuis.txt").write_text("\n".join(cuis), encoding="utf-8")
