"""docs/reference/papers.md has every item of the papers, and names parameters that there are."""

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

import pydantic
import pytest
import yaml
from bench import reference
from pydantic.fields import FieldInfo

from helpers import ROOT
from medprobe import benchmarks, methods
from medprobe.core.papers import papers, place

PAGE: Final = ROOT / "docs/reference/papers.md"
HEAD: Final = "| item | state | parameters or reason |\n| --- | --- | --- |\n"
STATES: Final = {"as in the paper", "other than the paper", "cannot be had"}
FILES: Final = {"LIPID.json"}  # named in the rows, and no parameters
NUMBERS_SHOWN: Final = "*Published numbers in the report*"
COUNTS: Final = {  # items of each section, by the files of its papers
    ("contrastive-probe-acl2022", "contrastive-probe-v1"): 47,
    ("template_free",): 25,
    ("diskne",): 36,
    ("context",): 35,
}
PRINTED: Final = {  # tables and figures of each paper
    "contrastive-probe-acl2022": (9, 9),
    "contrastive-probe-v1": (10, 8),
    "context": (3, 2),
    "template_free": (6, 2),
    "diskne": (8, 1),
}


def sections() -> dict[tuple[str, ...], list[tuple[str, str, str]]]:
    """The rows of each section (item, state, parameters), by the files that its heading names."""
    by_files = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n### ")[1:]:
        heading, _, text = part.partition("\n")
        table = text[text.index(HEAD) + len(HEAD) :].partition("\n\n")[0]
        rows = [tuple(row.strip("| ").split(" | ")) for row in table.splitlines()]
        by_files[tuple(re.findall(r"`(.+?)`", heading))] = rows
    return by_files


SECTIONS: Final = sections()
ROWS: Final = [row for rows in SECTIONS.values() for row in rows]


def named(item: str) -> set[str]:
    """The tables, figures and sections that an item names: "Tables 2, 3 and 5"."""
    names = set(re.findall(r"section [\d.]*\d", item))
    for kind, numbers in re.findall(r"(Table|Figure)s? ((?:\d+(?:, | and | to )?)+)", item):
        for first, _, last in re.findall(r"(\d+)( to (\d+))?", numbers):
            names |= {f"{kind.lower()} {n}" for n in range(int(first), int(last or first) + 1)}
    return names


def rows_of(paper: str) -> list[tuple[set[str], str]]:
    """For each row of a paper, the tables and figures that it names, and its last cell.

    What a row says of the preprint is in brackets.
    """
    (rows,) = [rows for files, rows in SECTIONS.items() if paper in files]
    brackets = r"\(preprint: (.*?)\)"
    if papers()[paper].stands:
        return [(named(re.sub(brackets, "", item)), reason) for item, _, reason in rows]
    return [(named(" ".join(re.findall(brackets, item))), reason) for item, _, reason in rows]


def test_all_items_are_there() -> None:
    assert {files: len(rows) for files, rows in SECTIONS.items()} == COUNTS
    assert len({item for item, *_ in ROWS}) == sum(COUNTS.values()), "an item stands twice"


@pytest.mark.parametrize(("item", "state", "reason"), ROWS, ids=[item[:40] for item, *_ in ROWS])
def test_an_item_has_a_state_and_a_reason(item: str, state: str, reason: str) -> None:
    assert state in STATES
    if state != "as in the paper":
        assert re.search(r"[a-z]{2}", re.sub(r"`.*?`", "", reason)), f"no reason: {item}"


@pytest.mark.parametrize("paper", papers())
def test_every_table_and_figure_has_a_row(paper: str) -> None:
    tables, figures = PRINTED[paper]
    wanted = {f"table {n}" for n in range(1, tables + 1)}
    wanted |= {f"figure {n}" for n in range(1, figures + 1)}
    mentioned = set().union(*(names for names, _ in rows_of(paper)))
    assert {name for name in mentioned if not name.startswith("section")} == wanted


@pytest.mark.parametrize("paper", [name for name, paper in papers().items() if paper.stands])
def test_the_page_says_which_published_numbers_the_report_shows(paper: str) -> None:
    names = set().union(*(names for names, reason in rows_of(paper) if NUMBERS_SHOWN in reason))
    assert names == {place(name) for name, table in papers()[paper].tables.items() if table.rows}


def quoted() -> Iterator[tuple[str, str | None]]:
    """The parameters of all rows, each with its value, if one follows.

    They are what stands between backticks and has a dot; paths and commands are not meant.
    """
    for *_, reason in ROWS:
        for text in re.findall(r"`([^`]+)`", reason):
            match = re.fullmatch(r"(\w+(?:\.[\w<>]+)+)(?:: (.+))?", text)
            if match and match[1] not in FILES:
                yield match[1], match[2]


def classes(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:
    """The classes of settings within a type, such as that of a map's values."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from classes(inner)


def find(parameter: str) -> FieldInfo:
    """A parameter's field, by its dotted name; a key that the user chooses may be `<any name>`."""
    owner, *path = parameter.split(".")
    kinds: list[type[pydantic.BaseModel]]
    if owner in methods.list_names():
        kinds = [methods.find(owner).Settings]
    elif owner in benchmarks.list_names():
        kinds = [benchmarks.find(owner).settings]
    else:
        kinds = [kind for kind in [reference.SECTIONS[owner][1]] if kind]
    *parents, name = [key for key in path if not key.startswith("<")]
    for parent in parents:
        kinds = [*classes(kinds[0].model_fields[parent].annotation)]
    (field,) = [kind.model_fields[name] for kind in kinds if name in kind.model_fields]
    return field


QUOTED: Final = sorted(set(quoted()), key=str)
assert len(QUOTED) > 80


@pytest.mark.parametrize(("parameter", "value"), QUOTED, ids=[name for name, _ in QUOTED])
def test_a_quoted_parameter_can_be_set(parameter: str, value: str | None) -> None:
    field = find(parameter)
    if value is not None:
        model = pydantic.create_model("Quoted", value=(field.annotation, field))
        model.model_validate({"value": yaml.safe_load(value)})


def test_a_parameter_that_there_is_not_is_found_out() -> None:
    assert find("context.resources.<resource>.path").annotation
    for wrong in ("medlama.reach", "nothing.at_all", "context.resources.<resource>.reach"):
        with pytest.raises((KeyError, ValueError)):
            find(wrong)
