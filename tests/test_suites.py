"""Every check of every suite passes on sound tables and fails on a table that is broken for it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from medprobe import benchmarks
from medprobe.benchmarks import lipid_released, table
from medprobe.commands import annotate
from medprobe.commands.sample import sample
from medprobe.core.params import Params, section
from medprobe.core.tables import BenchmarkTables
from medprobe.quality import gate, suites
from medprobe.quality.suites import Suite

ROOT = Path(__file__).parents[1]
EXPECTATIONS = ROOT / "expectations"
Tables = dict[str, pd.DataFrame]
OWN = [  # file and number of each check; a suite that is like another one has that one's
    (path.relative_to(EXPECTATIONS).as_posix(), number)
    for path in sorted(EXPECTATIONS.glob("*/*.json"))
    for number in range(len(json.loads(path.read_text()).get("expectations", [])))
]
BUILT = ("medlama", "biolama", "diskne", "context", "lama", "lipid")  # of the sample world


@pytest.fixture(scope="module")
def sound(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, tuple[Tables, dict[str, Any]]]]:
    """Sound tables by builder, and the settings they were built with: those of a small sample
    world, whose sources the gate reads too, and of them made what the builders of released files
    would give."""
    params = Params.model_validate(yaml.safe_load((ROOT / "params.yaml").read_text()))
    made: dict[str, tuple[Tables, dict[str, Any]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("world"))
        sample(Path("data"), {**params.sample, "queries": 20, "reserve": 12}, params.seed)
        for builder in BUILT:
            choices = params.benchmarks[builder][builder]
            if builder == "context":
                choices = {**choices, "triples": 4}
            settings = section(benchmarks.find(builder).settings, choices, builder)
            built = benchmarks.find(builder).build(Path("data"), settings, params.seed)
            tables = {"queries": built.queries, "candidates": built.candidates, **built.others}
            asked = settings.model_dump(mode="json")
            if builder == "biolama":  # which asks for all relations by naming none
                asked["relations"] = list(built.queries["relation"].unique())
            made[builder] = tables, asked
        add_released(made)
        yield made


def add_released(made: dict[str, tuple[Tables, dict[str, Any]]]) -> None:
    made["table"], made["ratings"] = (own_table(), {}), (ratings(made["lipid"][0]), {})
    made["lipid_released"] = released_prompts(made["lipid"][0]["queries"]), {}
    medlama, settings = made["medlama"]
    made["medlama_released"] = {**medlama, "sources": released_rows(medlama)}, settings
    chosen = benchmarks.find("diskne_released").settings()
    made["diskne_released"] = released_annotation(), chosen.model_dump(mode="json")
    lines = pd.DataFrame(
        {"line": range(1, 121), "text": [f"Drug {i} cures it ." for i in range(120)]}
    )
    made["sentences"] = {"lines": lines.assign(text="On day " + lines["text"])}, {}


def own_table() -> Tables:
    """What the builder of tables of one's own makes."""
    Path("data/tables").mkdir()
    rows = [
        f"drug {number},{relation},ailment {number},drug {number} {relation} [Y] ."
        for relation in ("treats", "prevents")
        for number in range(12)
    ]
    facts = "\n".join(["subject,relation,object,prompt", *rows])
    Path("data/tables/facts.csv").write_text(facts + "\n")
    built = table.build(Path("data"), table.Settings(facts=Path("tables/facts.csv")), 0)
    return {"queries": built.queries, "candidates": built.candidates, **built.others}


def ratings(lipid: Tables) -> Tables:
    """What two raters said of twenty of LIPID's prompts."""
    folder = Path("outputs/benchmarks/lipid")
    BenchmarkTables(lipid["queries"], lipid["candidates"]).write(folder)
    drawn = annotate.draw("prompts", folder, [], 20, 1)
    sheets = annotate.write(drawn, "facts", ["anna", "ben"], "csv", Path("data"))
    for sheet in sheets.glob("*.csv"):
        rows = pd.read_csv(sheet, keep_default_na=False)
        rows.assign(rating="yes").to_csv(sheet, index=False)
    settings = benchmarks.find("ratings").settings.model_validate({"sheets": "annotations/facts"})
    built = benchmarks.find("ratings").build(Path("data"), settings, 0)
    return {"queries": built.queries, "candidates": built.candidates, **built.others}


def released_rows(tables: Tables) -> pd.DataFrame:
    sources = tables["sources"].query("what == 'queries'")
    rows = sources.assign(what="rows", name=sources["name"] + "_1000.csv")
    return pd.concat([rows, sources], ignore_index=True)


def released_prompts(queries: pd.DataFrame) -> Tables:
    """LIPID's prompts as their authors would release them, in data/lipid."""
    prompts = queries["prompt"].str.replace("[Y]", "[MASK]", regex=False)
    answers = queries["answers"].str[0]
    rows = pd.DataFrame({"type": queries["subset"], "prompt": prompts, "answer": answers})
    Path("data/lipid").mkdir()
    rows.to_json("data/lipid/LIPID.json", orient="records")
    built = lipid_released.build(Path("data"), lipid_released.Settings(), 0)
    return {"queries": built.queries, "candidates": built.candidates, **built.others}


def released_annotation() -> Tables:
    """As many positives as the released files have with negatives, of invented diseases."""
    cuis = [f"C{number:07d}" for number in range(40)]
    counts = {"symptoms": 112, "treatments": 60, "tests": 116, "procedures": 69}
    rows = []
    for category, count in {**counts, "terminological": 234}.items():
        for number in range(count):
            own = cuis[number % len(cuis)]
            others = [cuis[(number + step) % len(cuis)] for step in range(1, 21)]
            kinds = ["positive", *["similar"] * 10, *["random"] * 10]
            for kind, cui in zip(kinds, [own, *others], strict=True):
                rows.append((f"{category} {number}", category, kind, kind == "positive", cui, own))
    columns = ["pair_id", "category", "kind", "label", "cui", "original_cui"]
    examples = pd.DataFrame(rows, columns=columns).astype({"label": int})
    examples = examples.assign(
        example_id=examples.index.astype(str),
        hypothesis="sickness " + examples["cui"],
        disease="sickness " + examples["original_cui"],
        premise=examples["pair_id"],
        full_hypothesis="y",
        start=0,
        end=0,
        origin="released",
    )
    splits = [examples.assign(target=examples["original_cui"], split="test")]
    for split, step in (("train", 1), ("validation", 2)):
        others = dict(zip(cuis, cuis[step:] + cuis[:step], strict=True))
        first = examples.drop_duplicates("original_cui")
        splits.append(first.assign(target=first["original_cui"].map(others), split=split))
    names = pd.DataFrame({"cui": cuis, "name": [f"sickness {cui}" for cui in cuis]})
    sources = examples["kind"].value_counts().rename_axis("name").reset_index(name="rows")
    return {
        "examples": examples,
        "splits": pd.concat(splits, ignore_index=True)[["target", "split", "example_id"]],
        "names": names,
        "ancestors": pd.DataFrame({"cui": ["C0000099"], "ancestor": ["C0000098"]}),
        "sources": pd.concat(
            [sources.assign(source="diskne", what=what) for what in ("annotations", "rows")],
            ignore_index=True,
        ),
    }


def one(suite: Suite, number: int) -> Suite:
    return Suite(suite.table, suite.row_id, [suite.listed[number]], [suite.expectations[number]])


@pytest.fixture(scope="module")
def loaded(
    sound: dict[str, tuple[Tables, dict[str, Any]]],
) -> dict[tuple[str, str], Suite]:
    """All suites of their own, by builder and table."""
    return {
        (builder, suite.table): suite
        for builder, (_, settings) in sound.items()
        for suite in suites.load(EXPECTATIONS / builder, [], {**settings, "negatives": 4})
    }


@pytest.mark.parametrize(
    "builder", [*BUILT, "medlama_released", "lipid_released", "diskne_released", "sentences"]
)
def test_sound_tables_pass_without_a_warning(
    sound: dict[str, tuple[Tables, dict[str, Any]]],
    loaded: dict[tuple[str, str], Suite],
    builder: str,
) -> None:
    tables, _ = sound[builder]
    chosen = [suite for (of, table), suite in loaded.items() if of == builder and table in tables]
    reports = gate.run(chosen, tables, text=True)
    failed = [check for report in reports for check in report["checks"] if not check["success"]]
    assert failed == []
    if builder in BUILT:
        assert {suite.table for suite in chosen} == set(tables), "a table without a suite"


def test_every_builder_has_its_suites() -> None:
    for builder in benchmarks.names():
        there = {path.stem for path in (EXPECTATIONS / builder).glob("*.json")}
        assert {"queries", "candidates", "sources"} <= there, builder


def test_a_suite_like_another_one_has_its_checks() -> None:
    for path in EXPECTATIONS.glob("*/*.json"):
        if like := json.loads(path.read_text()).get("like"):
            base = json.loads((EXPECTATIONS / like).read_text())
            assert base["expectations"], path
            assert (EXPECTATIONS / like).parent in suites.folders(path.parent), path


# A mutation breaks `tables[table]`, or the table that it is held against, for one type of check.
Mutation = Callable[[Tables, str, dict[str, Any]], None]
MUTATIONS: dict[str, Mutation] = {}


def breaks(*types: str) -> Callable[[Mutation], Mutation]:
    def known(mutation: Mutation) -> Mutation:
        MUTATIONS.update(dict.fromkeys(types, mutation))
        return mutation

    return known


def fill(tables: Tables, table: str, column: str, value: Any) -> None:
    """One value, lists too, in all rows of a column."""
    values = pd.Series([value] * len(tables[table]), index=tables[table].index, dtype=object)
    tables[table] = tables[table].assign(**{column: values})


@breaks("expect_table_row_count_to_be_between")
def too_few(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].head(kwargs["min_value"] - 1)


@breaks("expect_column_values_to_not_be_null")
def missing(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], None)


@breaks("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
def twice(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = pd.concat([tables[table]] * 2, ignore_index=True)


@breaks("expect_column_values_to_be_in_set")
def outside(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], 7 if 1 in kwargs["value_set"] else "no such value")


@breaks("expect_column_distinct_values_to_contain_set")
def vanished(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    column = tables[table][kwargs["column"]]
    tables[table] = tables[table][column != kwargs["value_set"][0]]


@breaks("expect_column_values_to_match_regex")
def empty_text(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], "")


@breaks("expect_column_values_to_not_match_regex")
def forbidden(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    samples = ["a\x00b", "a [MASK]", "However so", "a \ufffd", "a\u200bb"]
    found = next(text for text in samples if re.search(kwargs["regex"], text))
    fill(tables, table, kwargs["column"], found)


@breaks("expect_column_value_lengths_to_be_between")
def wrong_length(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], "x" * (kwargs.get("max_value", -1) + 1))


@breaks("expect_column_values_to_be_between")
def out_of_range(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], kwargs["min_value"] - 1)


@breaks("expect_column_pair_values_a_to_be_greater_than_b")
def not_greater(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    values = tables[table][kwargs["column_B"]] - 1
    tables[table] = tables[table].assign(**{kwargs["column_A"]: values})


@breaks("expect_prompts_to_have_one_slot")
def no_slot(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], "[Y] or [Y]")


@breaks("expect_list_lengths_to_be_between")
def no_items(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], [])


@breaks("expect_list_items_to_be_unique", "expect_list_items_to_match_regex")
def blank_items(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], [" ", " "])


@breaks("expect_lists_to_be_aligned")
def one_more(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    first = kwargs["column_list"][0]
    longer = tables[table][first].map(lambda items: [*items, "one more"])
    tables[table] = tables[table].assign(**{first: longer})


@breaks("expect_items_to_be_in_table")
def not_there(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    last = kwargs["column_list"][-1]
    single = isinstance(tables[table][last].iloc[0], str)
    fill(tables, table, last, "no such name" if single else ["no such name"])


@breaks("expect_subset_to_be_within")
def beyond_the_whole(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    first = kwargs["column_list"][0]
    tables[table] = tables[table][tables[table][first] != kwargs["whole"]]


@breaks("expect_subset_values_to_be_below")
def too_high(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column_list"][-1], kwargs["below"])


@breaks("expect_group_sizes_to_be_between")
def too_many(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].iloc[[0] * (kwargs["max_value"] + 1)].reset_index(drop=True)


@breaks("expect_facts_to_be_absent_from_table")
def known_before(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = pd.concat([tables[table], tables[kwargs["other"]].head(1)], ignore_index=True)


@breaks("expect_groups_to_be_of_like_size")
def one_tiny_group(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = pd.concat([tables[table]] * (5000 // len(tables[table]) + 1), ignore_index=True)
    group = tables[table][kwargs["column_list"][-1]].copy()
    group.iloc[0] = "tiny"
    tables[table] = tables[table].assign(**{kwargs["column_list"][-1]: group})


@breaks("expect_rows_to_be_used")
def half_lost(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """Every other row is lost, or two of three where half may be."""
    other = tables[kwargs["other"]]
    key = other[kwargs["distinct"]] if "distinct" in kwargs else pd.Series(other.index, other.index)
    step = 3 if kwargs["share"] == 0.5 else 2
    tables[kwargs["other"]] = other[pd.factorize(key)[0] % step == 0]


@breaks("expect_cuis_to_be_known")
def unknown_concept(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column"], "C7777777")


@breaks("expect_negatives_to_be_of_other_positives")
def never_right(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    cui = tables[table]["cui"].where(tables[table]["label"] == 1, "C7777777")
    tables[table] = tables[table].assign(cui=cui)


@breaks("expect_names_to_be_of_their_cuis")
def other_name(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, kwargs["column_list"][0], "wheezing")


@breaks("expect_negatives_to_be_unrelated")
def itself(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].assign(cui=tables[table]["original_cui"])


@breaks("expect_positives_to_have_negatives")
def half_the_negatives(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    examples = tables[table]
    tables[table] = examples[(examples["kind"] != kwargs["kind"]) | (examples.index % 2 == 0)]


@breaks("expect_labels_to_follow_kinds")
def wrong_label(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].assign(label=1)


@breaks("expect_diseases_to_be_targets")
def forgotten_targets(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables["splits"] = tables["splits"].head(0)


@breaks("expect_examples_to_be_tested")
def untested(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables["splits"] = tables["splits"].drop_duplicates("target")


@breaks("expect_tested_premises_to_be_untrained")
def one_premise(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "examples", "premise", "x")


@breaks("expect_targets_to_be_trained")
def untrained(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].query("split != 'train'")


@breaks("expect_examples_to_differ")
def all_twice(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = pd.concat([tables[table]] * 2, ignore_index=True)


@breaks("expect_positives_to_number")
def other_category(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "category", "other")


@breaks("expect_no_disease_leakage")
def leak(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    row = tables[table].query("split == 'train'").iloc[0]
    examples = tables["examples"].copy()
    examples.loc[examples["example_id"] == row["example_id"], "original_cui"] = row["target"]
    tables["examples"] = examples


@breaks("expect_test_examples_to_be_of_the_target")
def all_test(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "split", "test")


@breaks("expect_pairs_to_be_on_one_side")
def both_sides(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    split = tables[table]["split"].where(tables[table].index % 2 == 0, "validation")
    tables[table] = tables[table].assign(split=split)


@breaks("expect_real_contexts_to_be_in_their_documents")
def other_documents(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "documents", "text", "another text")


@breaks("expect_segments_to_hold_one_entity")
def other_mentions(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "mentions", "cui", "C7777777")


@breaks("expect_steps_to_be_nested")
def nothing_shown(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "shown", [])


@breaks("expect_first_added_to_be_the_target")
def other_first(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "added_id", "C7777777")


@breaks("expect_both_centres_in_pairs")
def one_centre(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "centre", "target")


@breaks("expect_texts_to_hold_one_candidate", "expect_filled_prompts")
def other_sentence(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "sentence", "nothing of the kind")


@breaks("expect_dates_to_be_later")
def too_old(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].assign(date=tables[table]["cut_off"])


@breaks("expect_pairs_to_match")
def one_of_a_pair(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    subset = tables[table][kwargs["column_list"][0]]
    tables[table] = tables[table].drop(index=subset.index[subset == kwargs["one"]][0])


@pytest.mark.parametrize(("path", "number"), OWN)
def test_each_check_catches_a_table_that_is_broken_for_it(
    sound: dict[str, tuple[Tables, dict[str, Any]]],
    loaded: dict[tuple[str, str], Suite],
    path: str,
    number: int,
) -> None:
    builder, table = path.removesuffix(".json").split("/")
    suite = one(loaded[builder, table], number)
    (listed,) = suite.listed
    assert listed.type in MUTATIONS, f"no mutation shows what {listed.type} catches"
    tables = dict(sound[builder][0])
    MUTATIONS[listed.type](tables, table, listed.kwargs)
    ((check,),) = [report["checks"] for report in gate.run([suite], tables, text=True)]
    assert not check["success"]
    assert check["failing"] or check["problem"].startswith("found"), "failed by breaking"
