"""docs/reference/papers.md speaks of every table and figure, and quotes settings that there are."""

import re
from pathlib import Path

import pydantic
import pytest
import yaml

from medprobe import benchmarks, methods
from medprobe.core.params import Section, parse_section
from medprobe.engine.rewiring import RewireSettings
from medprobe.papers import papers

PAGE = (Path(__file__).parent.parent / "docs/reference/papers.md").read_text(encoding="utf-8")
CHAPTER = PAGE.split("## Tables and figures\n")[1].split("\n## ")[0]
PRINTED = {  # tables and figures of each paper
    "contrastive-probe-acl2022": (9, 9),
    "contrastive-probe-v1": (10, 8),
    "context": (3, 2),
    "template_free": (6, 2),
    "diskne": (8, 1),
}
SECTIONS = {
    re.search(r"\(`(.+?)`\)", part)[1]: part  # type: ignore[index]
    for part in CHAPTER.split("\n### ")[1:]
}


def named_tables(text: str) -> set[str]:
    """The tables and figures that the first cells of a text's rows name: "Tables 2, 3 and 5"."""
    names = set()
    for cell in re.findall(r"^\| ([^|]+?)(?:: [^|]*)? \|", text, re.MULTILINE):
        for kind, numbers in re.findall(r"(Table|Figure)s? ((?:\d+(?:, | and | to )?)+)", cell):
            for first, _, last in re.findall(r"(\d+)( to (\d+))?", numbers):
                names |= {f"{kind} {n}" for n in range(int(first), int(last or first) + 1)}
    return names


@pytest.mark.parametrize("name", papers())
def test_every_table_and_figure_has_a_row(name: str) -> None:
    tables, figures = PRINTED[name]
    wanted = {f"Table {n}" for n in range(1, tables + 1)}
    assert named_tables(SECTIONS[name]) == wanted | {f"Figure {n}" for n in range(1, figures + 1)}
    for number in papers()[name].tables:
        row = number.capitalize() if number.startswith("figure") else f"Table {number}"
        assert row in named_tables(SECTIONS[name]) | {"Table text"}
        assert number != "text" or "(Table text)" in SECTIONS[name]


def test_every_row_says_all_four_things() -> None:
    rows = re.findall(r"^\|.*\|$", CHAPTER, re.MULTILINE)
    assert len(rows) > 40
    assert {len(row.split(" | ")) for row in rows} == {4}


QUOTED = re.findall(r"`((\w+): \{.*?\})`", CHAPTER)


@pytest.mark.parametrize(("text", "owner"), QUOTED, ids=[text for text, _ in QUOTED])
def test_what_is_quoted_can_be_set(text: str, owner: str) -> None:
    """Those of a setting's keys that are not quoted may lack."""
    if owner == "track":
        return  # whole, and checked with all documents
    kind: type[Section] = RewireSettings
    if owner != "rewire":
        settings = methods.find(owner).Settings if owner in methods.list_names() else None
        kind = settings or benchmarks.find(owner).settings
    quoted = yaml.safe_load(text)[owner]
    fields = {key: (field.annotation, field) for key, field in kind.model_fields.items()}
    same = {key: field for key, field in fields.items() if key in quoted}
    parse_section(pydantic.create_model("Quoted", __base__=Section, **same), quoted, text)
