"""A vocabulary's hierarchy of concepts in UMLS: all ancestors and descendants of a concept."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import polars as pl

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
