"""A vocabulary's hierarchy of concepts in UMLS: all ancestors and descendants of a concept."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from medprobe.sources.rrf import mrrel


class Hierarchy:
    """Concepts (CUIs) above and below each other. A concept may have many parents; a circle, as
    UMLS has where two codes share a concept, does no harm.

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
        rows = mrrel(folder, ["CUI1", "CUI2", "REL"], where)
        up = rows.filter(pl.col("REL") == "PAR").select(child="CUI1", parent="CUI2")
        down = rows.filter(pl.col("REL") == "CHD").select(child="CUI2", parent="CUI1")
        return cls(pl.concat([up, down]).unique().iter_rows())

    def ancestors(self, cui: str) -> frozenset[str]:
        """All concepts above, at any distance."""
        return _reach(self._parents, cui)

    def descendants(self, cui: str) -> frozenset[str]:
        """All concepts below, at any distance."""
        return _reach(self._children, cui)


def _reach(steps: dict[str, list[str]], start: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for cui in steps.get(waiting.pop(), ()):
            if cui not in found:
                found.add(cui)
                waiting.append(cui)
    return frozenset(found - {start})
