"""The hierarchy of diseases in the UMLS."""

from pathlib import Path

from medprobe.papers.diskne.concepts import Hierarchy
from sources.test_rrf import RELATION, write


def test_the_hierarchy_comes_from_both_directions(tmp_path: Path) -> None:
    rows = [("C1", "PAR", "C2", ""), ("C2", "CHD", "C1", "isa"), ("C2", "CHD", "C3", "")]
    rows += [("C1", "RO", "C4", ""), ("C5", "PAR", "C5", "")]
    write(tmp_path, "MRREL.RRF", *(RELATION.format(*row) for row in rows))
    tree = Hierarchy.read(tmp_path, "NCI")
    assert tree.descendants("C2") == {"C1", "C3"}
    assert not tree.descendants("C4") and not tree.descendants("C5")
