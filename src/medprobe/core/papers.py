"""The papers' settings and published numbers, typed: a plugin `published/<name>.yaml` a paper.

A file is one version of one paper. Where versions differ, the one in print stands (`stands: true`),
the other can be asked for by its name.
"""

from functools import cache
from typing import Final

import yaml
from pydantic import ConfigDict, Field

from medprobe.core.params import ModelKind, ModelParams
from medprobe.core.plugins import find_plugins
from medprobe.core.settings import Choices, Name, Section, parse_section

MEAN: Final = "mean"  # in place of a model: the mean over all models of the paper


class PublishedRow(Section):
    """Published numbers of one model under one method. Shares are in per cent, as printed."""

    model: str  # a name in the paper's `models`, or MEAN
    benchmark: str
    subset: str
    relation: str  # macro, micro, or a relation's name
    method: str
    variant: str = ""
    values: dict[str, float]  # by metric, named as in metrics.catalog()
    std: dict[str, float] = Field({})


class PublishedTable(Section):
    """A table, a figure or a section of the paper: the results that it prints."""

    about: str
    rows: list[PublishedRow] = Field([])
    notes: tuple[str, ...] = ()  # where what is printed contradicts itself; the report shows them
    open: tuple[str, ...] = ()  # as `Paper.open`, of this table alone
    repeats: dict[str, tuple[str, ...]] = Field({})  # rows of other tables, of these models, too
    models: tuple[str, ...] = ()  # of a figure, which prints no numbers: what it shows
    adopted: Choices = Field({})  # sections that are others for this table alone


class PaperModel(Section):
    """A checkpoint of a paper. Where no hub name is given, its note says where it is."""

    hub: str | None = None
    revision: str = "main"  # a commit only where somebody has verified which one it was
    kind: ModelKind  # as the paper probed it: by a head, or as an encoder without one
    heads: tuple[ModelKind, ...] = ()  # further ones that it has
    group: str = ""  # as the paper calls it; none if the paper has no groups, or not of this model
    larger_than: str = ""  # the smaller model of its series, by its name in the tables
    averaged: bool | dict[str, bool] = True  # in which means over models the paper counts it
    lower_case: bool = False  # did the paper's code read a cased checkpoint in lower case?
    gated: bool = False  # does the hub ask for consent?
    named_by: str = ""  # the section of the paper or the file of its code that names it
    note: str = ""  # if nothing names it: what is not stated, and what is taken

    def counts_in(self, subset: str) -> bool:
        """Whether the paper counts it in means over models on a subset."""
        return ModelParams(averaged=self.averaged).counts_in(subset)


class PaperSections(Section):
    """Sections of `params.yaml` as the paper has them; each replaces your own."""

    model_config = ConfigDict(extra="allow")  # sections that papers and extensions add

    benchmarks: dict[str, dict[Name, Choices]]
    methods: dict[ModelKind, dict[str, dict[Name, Choices]]]
    main: dict[ModelKind, Name] = Field({})  # `score.main`: by which method it compares models


class PublishedFiles(Section):
    """The files of a source as their publisher released them."""

    release: str
    files: dict[str, tuple[int, int, str]]  # by name: bytes, rows, SHA-256


class Paper(Section):
    """A paper: where it is, its checkpoints, what `medprobe adopt` writes, and what it prints."""

    title: str
    version: str
    url: str
    stands: bool  # is it the version whose figures stand?
    variants: dict[str, Choices] = Field({})  # further settings of a builder, to be added by hand
    sizes: dict[str, dict[str, dict[str, float]]] = Field({})  # counts of benchmarks, by subset
    released: dict[str, dict[str, dict[str, float]]] = Field({})  # those of the released files
    files: dict[str, PublishedFiles] = Field({})  # released ones, by the source's folder in data/
    trained_until: str | None = None  # the day by which all its models were trained
    names: dict[str, str] = Field({})  # concepts (CUIs) by what the tables call them
    models: dict[str, PaperModel]  # by the names of `checkpoints`
    adopted: PaperSections  # for `medprobe adopt`
    open: tuple[str, ...] = ()  # what the paper leaves open, and what is taken instead
    tables: dict[str, PublishedTable] = Field({})  # by number, or by name where it is no table


@cache
def papers() -> dict[str, Paper]:
    """Return all papers by the names of their files."""
    return {
        name: parse_section(
            Paper, yaml.load(plugin.path.read_text(encoding="utf-8"), yaml.CSafeLoader), plugin.path
        )
        for name, plugin in find_plugins("published").items()
    }


def built_benchmark(builder: str) -> str:
    """Return the benchmark of the papers that a builder builds in some form.

    >>> built_benchmark("medlama_released"), built_benchmark("medlama")
    ('medlama', 'medlama')
    """
    return builder.partition("_")[0]


def concepts() -> dict[str, str]:
    """Return what the papers print for a concept, by its CUI."""
    return {cui: name for paper in papers().values() for name, cui in paper.names.items()}


def checkpoints() -> dict[str, list[PaperModel]]:
    """Return all checkpoints of the papers by name: the entry of each paper that has it.

    A name is what the tables print. Where they print one name for several checkpoints, as they do
    for BioBERT, each has a name of its own, such as `BioBERT v1.1`: a published number is of one
    checkpoint.
    """
    by_name: dict[str, list[PaperModel]] = {}
    for paper in papers().values():
        for name, model in paper.models.items():
            by_name.setdefault(name, []).append(model)
    return dict(sorted(by_name.items()))


def place(number: str) -> str:
    """Name the place of numbers in a paper.

    >>> place("5"), place("figure 8"), place("section 5.2")
    ('table 5', 'figure 8', 'section 5.2')
    """
    return f"table {number}" if number.isdigit() else number


def published(
    model: str, benchmark: str, subset: str, relation: str, method: str
) -> list[tuple[Paper, str, PublishedRow]]:
    """List what is published of a model, in the versions of papers that stand."""
    name, _, variant = method.partition(":")
    version, _, model = model.rpartition("/")
    wanted = (model, benchmark, subset, relation, name, variant)
    replaced = papers()[version].title if version else ""
    return [
        (paper, number, row)
        for file, paper in papers().items()
        if file == version or (paper.stands and paper.title != replaced)
        for number, table in paper.tables.items()
        for row in table.rows
        if (row.model, row.benchmark, row.subset, row.relation, row.method, row.variant) == wanted
    ]
