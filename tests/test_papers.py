"""Every file of published numbers is sound, and says what its paper prints."""

import pydantic
import pytest

from medprobe import benchmarks, methods
from medprobe.core.params import Section, parse_section
from medprobe.engine.rewiring import RewireSettings
from medprobe.metrics import catalog
from medprobe.papers import Paper, concepts, papers, published


@pytest.mark.parametrize("name", papers())
def test_a_paper_is_sound(name: str) -> None:
    paper, metrics = papers()[name], catalog()
    assert paper.url.startswith("https://")
    for number, table in paper.tables.items():
        assert table.rows or table.numbers, number
        seen = set()
        for row in table.rows:
            assert set(row.values) <= set(metrics), row
            assert set(row.std) <= set(row.values), row
            for metric, value in row.values.items():
                scale = 100 if metrics[metric].share else 1
                assert scale * metrics[metric].low <= value <= scale * metrics[metric].high, row
            place = (row.model, row.benchmark, row.subset, row.relation, row.method, row.variant)
            assert place not in seen, row
            seen.add(place)


@pytest.mark.parametrize(
    ("paper", "name"),
    [(paper, name) for paper, paper_file in papers().items() for name in paper_file.settings],
)
def test_settings_are_those_of_params_yaml(paper: str, name: str) -> None:
    """Quoted settings have a name and type that params.yaml takes; those not quoted may lack."""
    kind: type[Section] = RewireSettings
    method, _, benchmark = name.partition(".")
    if method in methods.list_names():
        kind = methods.find(method).Settings
        assert not benchmark or benchmark in benchmarks.list_names()
    elif name != "rewire":
        kind = benchmarks.find(name).settings
    quoted = papers()[paper].settings[name]
    fields = {key: (field.annotation, field) for key, field in kind.model_fields.items()}
    same = {key: field for key, field in fields.items() if key in quoted}
    parse_section(
        pydantic.create_model("Quoted", __base__=Section, **same), quoted, f"{paper}: {name}"
    )


@pytest.mark.parametrize("name", papers())
def test_what_is_adopted_is_what_is_quoted(name: str) -> None:
    paper = papers()[name]
    by_method = paper.adopted.methods.values()
    for part, quoted in paper.settings.items():
        if part == "rewire":
            assert quoted.items() <= paper.adopted.rewire.items()
        elif (named := part.partition("."))[0] in methods.list_names():
            only = named[2] or {"optiprompt": "biolama"}.get(part, "medlama")
            chosen = [
                choices
                for of_kind in by_method
                for method, by_benchmark in of_kind.items()
                for benchmark, choices in by_benchmark.items()
                if method == named[0] and benchmark in (only, "diskne")
            ]
            assert chosen and all(quoted.items() <= choices.items() for choices in chosen), part


@pytest.mark.parametrize("name", papers())
def test_every_printed_model_has_its_checkpoint(name: str) -> None:
    paper = papers()[name]
    printed = {row.model for table in paper.tables.values() for row in table.rows}
    left_open = " ".join(paper.open)
    assert {model for model in printed - paper.models.keys() if model not in left_open} == set()
    for model, paper_model in paper.models.items():
        assert paper_model.hub or paper_model.note, model
        assert paper_model.kind not in paper_model.heads, model


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


def test_the_version_in_print_stands() -> None:
    ((paper, number, row),) = published("PubMedBERT", "medlama", "full", "macro", "contrastive")
    assert (paper.version, number) == ("ACL 2022", "5")
    assert row.values == {"acc_at_1": 5.71, "acc_at_10": 24.31}
    assert row.std == {"acc_at_1": 0.58, "acc_at_10": 1.29}


def test_masks_of_biolama_stand_under_the_method_that_made_them() -> None:
    ((paper, number, row),) = published("BERT", "biolama", "ctd", "macro", "xfactr:confidence")
    assert (number, row.values) == ("7", {"acc_at_1": 0.06, "acc_at_5": 1.20})
    assert not published("BERT", "biolama", "ctd", "macro", "fill_mask")
    assert paper.settings["xfactr.biolama"]["masks"] == 10


def test_the_preprint_can_be_asked_for_by_name() -> None:
    paper: Paper = papers()["contrastive-probe-v1"]
    assert not paper.stands
    (row,) = [
        row
        for row in paper.tables["10"].rows
        if (row.model, row.subset, row.relation) == ("PubMedBERT", "hard", "micro")
    ]
    assert row.values == {"acc_at_1": 4.71, "acc_at_10": 22.88}
    assert paper.settings["rewire"]["temperature"] == 0.03


def test_tables_have_all_their_rows() -> None:
    tables = papers()["contrastive-probe-acl2022"].tables
    assert len(tables["5"].rows) == 9 * 2  # models on full and hard
    assert len(tables["7"].rows) == 10 * 3  # rows of the table on three sets
    best = max(tables["5"].rows, key=lambda row: row.values["acc_at_10"])
    assert (best.model, best.subset) == ("SapBERT", "full")
    (xfactr,) = published("BlueBERT", "medlama", "full", "macro", "xfactr:confidence")
    assert xfactr[2].values == {"acc_at_1": 0.74}


def test_the_names_that_a_paper_prints_are_known() -> None:
    rows = [row for table in papers()["diskne"].tables.values() for row in table.rows]
    printed = {row.relation for row in rows} - {"macro", "weighted"}
    assert printed == set(concepts().values()), "a disease in the tables has no concept"
    assert len(concepts()) == len(printed), "two diseases of the tables have one concept"


def test_the_experts_counts_give_the_shares_that_are_printed() -> None:
    """The preprint counts what the version in print gives in per cent."""
    counts = papers()["contrastive-probe-v1"].tables["5"].numbers
    table = papers()["contrastive-probe-acl2022"].tables["figure 8"]
    [row], printed = table.rows, table.numbers["predictions"]
    at_10 = [
        n
        for counts_by_rating in counts.values()
        for name, n in counts_by_rating.items()
        if name.startswith("top_10")
    ]
    assert sum(at_10) == printed["all"] == 150
    perfect = counts["score 5"]
    assert perfect["top_10_hit"] == printed["answers_rated_5"]
    assert perfect["top_10_hit"] + perfect["top_10_miss"] == printed["rated_5"]
    assert row.values["hits_of_10"] == round(100 * printed["answers_rated_5"] / 150, 2)
    assert row.values["rated_right_of_10"] == 100 * printed["rated_5"] / 150
