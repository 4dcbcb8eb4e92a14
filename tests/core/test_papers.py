"""Each file of published numbers is sound. What its paper prints is tested with the paper."""

import re

import pytest

from medprobe.core.papers import MEAN, checkpoints, papers
from medprobe.metrics import catalog

SOURCE = re.compile(  # a place in the paper, or a file of its code
    r'(section|table|footnote|appendix) (\d|[A-Z]\.|")|\b[\w./-]+\.(sh|py|md)\b'
)


@pytest.mark.parametrize("name", papers())
def test_a_paper_is_sound(name: str) -> None:
    paper, metrics = papers()[name], catalog()
    assert paper.url.startswith("https://")
    for number, table in paper.tables.items():
        assert table.rows or table.notes or table.repeats or table.adopted, number
        assert {*table.repeats} <= {*paper.tables}, number
        seen = set()
        for row in table.rows:
            assert row.model in paper.models or row.model == MEAN, row
            assert set(row.values) <= set(metrics), row
            assert set(row.std) <= set(row.values), row
            for metric, value in row.values.items():
                scale = 100 if metrics[metric].share else 1
                assert scale * metrics[metric].low <= value <= scale * metrics[metric].high, row
            place = (row.model, row.benchmark, row.subset, row.relation, row.method, row.variant)
            assert place not in seen, row
            seen.add(place)


def test_a_name_is_of_one_checkpoint_and_a_checkpoint_has_one_name() -> None:
    names_by_hub: dict[str, set[str]] = {}
    for name, models in checkpoints().items():
        assert len({model.hub for model in models}) == 1, name
        if models[0].hub:
            names_by_hub.setdefault(models[0].hub, set()).add(name)
    assert all(len(names) == 1 for names in names_by_hub.values()), names_by_hub
    assert len({name.casefold() for name in checkpoints()}) == len(checkpoints())


@pytest.mark.parametrize(
    ("paper", "name"), [(paper, name) for paper in papers() for name in papers()[paper].models]
)
def test_a_checkpoint_says_what_names_it(paper: str, name: str) -> None:
    """A section or a file names it, or a note has what is not stated, and where."""
    model = papers()[paper].models[name]
    note = model.note
    if see := re.match(r"see (.+)", note):  # another model's note
        note = papers()[paper].models[see[1]].note
    assert SOURCE.search(model.named_by or note), name
    assert model.named_by or "not stated" in note or not model.hub or "cites" in note, name
    assert model.hub or model.note, name
    assert model.kind not in model.heads, name


def test_no_two_papers_that_stand_disagree() -> None:
    values_by_row: dict[tuple, dict[str, float]] = {}
    for paper in papers().values():
        for table in paper.tables.values() if paper.stands else []:
            for row in table.rows:
                place = (
                    row.model,
                    row.benchmark,
                    row.subset,
                    row.relation,
                    row.method,
                    row.variant,
                )
                assert values_by_row.setdefault(place, row.values) == row.values, place
