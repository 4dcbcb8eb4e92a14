"""The papers' settings and published numbers: a YAML file beside this one for each, typed.

A file is one version of one paper. Where versions differ, the one in print stands (`stands: true`),
the other can be asked for by its name.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from medprobe.core.params import Section, section


class Row(Section):
    """Published numbers of one model under one method. Shares are in per cent, as printed."""

    model: str
    benchmark: str
    subset: str
    relation: str  # macro, micro, or a relation's name
    method: str
    variant: str = ""
    values: dict[str, float]  # by metric, named as in metrics.catalog()
    std: dict[str, float] = Field({})


class Table(Section):
    """A table of the paper: its results by model, or any other numbers by name."""

    about: str
    rows: list[Row] = Field([])
    numbers: dict[str, dict[str, float]] = Field({})


class Paper(Section):
    """A paper: where it is, how it set its methods, and its tables by number."""

    title: str
    version: str
    url: str
    stands: bool  # is it the version whose figures stand?
    settings: dict[str, dict[str, Any]] = Field({})  # by section, or method.benchmark
    details: dict[str, dict[str, Any]] = Field({})  # no settings of ours
    names: dict[str, str] = Field({})  # concepts (CUIs) by what the tables call them
    tables: dict[str, Table] = Field({})


@cache
def papers() -> dict[str, Paper]:
    """All papers by the names of their files. Raises BadInput for a file that is amiss."""
    return {
        path.stem: section(Paper, yaml.safe_load(path.read_text(encoding="utf-8")), path)
        for path in sorted(Path(__path__[0]).glob("*.yaml"))
    }


def concepts() -> dict[str, str]:
    """What the papers print for a concept, by its CUI."""
    return {cui: name for paper in papers().values() for name, cui in paper.names.items()}


def published(
    model: str, benchmark: str, subset: str, relation: str, method: str
) -> list[tuple[Paper, str, Row]]:
    """`(paper, number of the table, row)` of all that is published of this model, in the versions
    that stand. `method` may name a variant: `xfactr:confidence`."""
    name, _, variant = method.partition(":")
    wanted = (model, benchmark, subset, relation, name, variant)
    return [
        (paper, number, row)
        for paper in papers().values()
        if paper.stands
        for number, table in paper.tables.items()
        for row in table.rows
        if (row.model, row.benchmark, row.subset, row.relation, row.method, row.variant) == wanted
    ]
