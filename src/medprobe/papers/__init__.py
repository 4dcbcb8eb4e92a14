"""The papers' settings and published numbers: one YAML file of this folder per paper, typed.

A file is one version of one paper. Where versions differ, the one in print stands (`stands: true`),
the other can be asked for by its name.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from medprobe.core.params import Choices, ModelKind, Name, Section, parse_section


class PublishedRow(Section):
    """Published numbers of one model under one method. Shares are in per cent, as printed."""

    model: str
    benchmark: str
    subset: str
    relation: str  # macro, micro, or a relation's name
    method: str
    variant: str = ""
    values: dict[str, float]  # by metric, named as in metrics.catalog()
    std: dict[str, float] = Field({})


class PublishedTable(Section):
    """A table of the paper: its results by model, or any other numbers by name."""

    about: str
    rows: list[PublishedRow] = Field([])
    numbers: dict[str, dict[str, float]] = Field({})


class PaperModel(Section):
    """A model of a paper. Where no hub name is given, its note says where it is."""

    hub: str | None = None
    revision: str = "main"  # a commit only where somebody has verified which one it was
    kind: ModelKind  # as the paper probed it: by a head, or as an encoder without one
    heads: tuple[ModelKind, ...] = ()  # further ones that it has
    category: Literal["general", "adapted", "biomedical"]  # the text it was trained on, and last on
    gated: bool = False  # does the hub ask for consent?
    named_by: Literal["paper", "code", "us"] = "us"  # who says that this is the checkpoint
    note: str = ""


class PaperSections(Section):
    """Sections of `params.yaml` as the paper has them; each replaces your own."""

    sentence_sets: dict[Name, Choices] = Field({})
    rewire: Choices = Field({})
    benchmarks: dict[str, dict[Name, Choices]]
    methods: dict[ModelKind, dict[str, dict[Name, Choices]]]


class Paper(Section):
    """A paper: where it is, how it set its methods, and its tables by number."""

    title: str
    version: str
    url: str
    stands: bool  # is it the version whose figures stand?
    settings: dict[str, dict[str, Any]] = Field({})  # by section, or method.benchmark
    details: dict[str, dict[str, Any]] = Field({})  # no settings of ours
    sizes: dict[str, dict[str, dict[str, int]]] = Field({})  # queries of benchmarks, by subset
    names: dict[str, str] = Field({})  # concepts (CUIs) by what the tables call them
    models: dict[str, PaperModel]  # by their names in the tables
    adopted: PaperSections  # for `medprobe adopt`
    open: tuple[str, ...] = ()  # what the paper leaves open, and what is taken instead
    notes: tuple[str, ...] = ()  # where what is printed contradicts itself
    tables: dict[str, PublishedTable] = Field({})


@cache
def papers() -> dict[str, Paper]:
    """Return all papers by the names of their files.

    Raises:
        BadInput: a file that is amiss.
    """
    return {
        path.stem: parse_section(
            Paper, yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader), path
        )
        for path in sorted(Path(__path__[0]).glob("[!.]*.yaml"))
    }


def concepts() -> dict[str, str]:
    """Return what the papers print for a concept, by its CUI."""
    return {cui: name for paper in papers().values() for name, cui in paper.names.items()}


def _standing_rows() -> Iterator[tuple[str, str, PublishedRow]]:
    """All published numbers of the versions that stand, with the names of paper and table."""
    for name, paper in papers().items():
        if paper.stands:
            for number, table in paper.tables.items():
                for row in table.rows:
                    yield name, number, row


def published(
    model: str, benchmark: str, subset: str, relation: str, method: str
) -> list[tuple[Paper, str, PublishedRow]]:
    """List what is published of a model, in the versions of papers that stand.

    Args:
        model: its name in the tables.
        benchmark: its name.
        subset: of the benchmark.
        relation: a relation, `macro` or `micro`.
        method: its name, with a variant such as `xfactr:confidence` if it has one.

    Returns:
        For each result the paper, the number of the table, and the row.
    """
    name, _, variant = method.partition(":")
    wanted = (model, benchmark, subset, relation, name, variant)
    return [
        (papers()[paper], number, row)
        for paper, number, row in _standing_rows()
        if (row.model, row.benchmark, row.subset, row.relation, row.method, row.variant) == wanted
    ]


def strongest(
    benchmark: str, subset: str, metric: str, *, lower: bool
) -> tuple[str, str, PublishedRow] | None:
    """Find the best published macro mean on a benchmark, in the versions of papers that stand.

    Args:
        benchmark: its name in the tables.
        subset: of the benchmark.
        metric: by which results are ranked.
        lower: whether lower values are better.

    Returns:
        The paper's name, the number of the table, and the row; None if nothing is published.
    """
    rows = [
        (paper, number, row)
        for paper, number, row in _standing_rows()
        if (row.benchmark, row.subset, row.relation) == (benchmark, subset, "macro")
        and metric in row.values
    ]
    sign = 1 if lower else -1
    return min(rows, key=lambda entry: sign * entry[2].values[metric], default=None)
