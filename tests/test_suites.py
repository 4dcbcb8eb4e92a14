"""Every check of every suite passes on sound tables and fails on a table that is broken for it."""

import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
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
from medprobe.quality.suites import Listed, Suite
from medprobe.sample import corpus

ROOT = Path(__file__).parents[1]
EXPECTATIONS = ROOT / "expectations"
Tables = dict[str, pd.DataFrame]
OWN = [  # suites with checks of their own: one that is like another has that one's
    path.relative_to(EXPECTATIONS).with_suffix("").as_posix()
    for path in sorted(EXPECTATIONS.glob("*/*.json"))
    if json.loads(path.read_text()).get("expectations")
]
Reported = dict[int, set[int]]  # the numbers of the rows that each check reports
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
        patch.setattr(corpus, "CASES", 1)  # which the models read, and no gate
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
    chosen = benchmarks.find("diskne_released").settings(without_negatives="keep")
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
    """As many positives as the released files have, of invented diseases; five of each category
    have their negatives here."""
    cuis = [f"C{number:07d}" for number in range(40)]
    counts = {"symptoms": 112, "treatments": 60, "tests": 116, "procedures": 69}
    rows = []
    for category, count in {**counts, "terminological": 234}.items():
        for number in range(count):
            own = cuis[number % len(cuis)]
            others = [cuis[(number + step) % len(cuis)] for step in range(1, 21)]
            kinds = ["positive", *(["similar"] * 10 + ["random"] * 10 if number < 5 else [])]
            for kind, cui in zip(kinds, [own, *others][: len(kinds)], strict=True):
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


def test_what_a_check_of_rows_reads_is_never_missing(
    loaded: dict[tuple[str, str], Suite],
) -> None:
    """Such a check skips rows in which a value is missing, so that another one has to report it."""
    for path, suite in loaded.items():
        held = {
            listed.kwargs["column"]
            for listed in suite.listed
            if listed.type == "expect_column_values_to_not_be_null"
            and listed.severity == "critical"
        }
        for listed in suite.listed:
            if listed.type != "expect_compound_columns_to_be_unique":
                assert set(listed.kwargs.get("column_list", [])) <= held, (path, listed)


# What breaks a row for one type of check: it changes the row, and may copy another one.
Row = dict[str, Any]
Spoil = Callable[[Row, Row, dict[str, Any]], object]
SPOILS: dict[str, Spoil] = {}
APT = {  # the rows that a type of check can be broken in
    "expect_first_added_to_be_the_target": "step == 1",
    "expect_labels_to_follow_kinds": "label == 0",
    "expect_negatives_to_be_unrelated": "label == 0",
}
NEUTRAL = {  # the rows that no other row is held against
    "medlama/queries": lambda t: (t["subset"] == "full") & ~t["subject_id"].isin(hard(t)),
    "medlama/candidates": lambda t: (t["subset"] == "full") & ~t["id"].isin(hard(t)),
    "lama/queries": lambda t: t["subset"].isin(["conceptnet", "squad"]),
    "lama/sources": lambda t: t["what"] != "facts",
    "lama/candidates": lambda t: t["subset"].isin(["conceptnet", "squad"]),
    "context/queries": lambda t: (t["kind"] == "knowledge-only") & (t["step"] == 1),
    "diskne/examples": lambda t: t["label"] == 0,
    "diskne_released/examples": lambda t: t["label"] == 0,
}


def hard(rows: pd.DataFrame) -> "pd.Series[str]":
    return rows.loc[rows["subset"] == "hard", "subject_id" if "subject_id" in rows else "id"]


def spoils(*types: str) -> Callable[[Spoil], Spoil]:
    def known(spoil: Spoil) -> Spoil:
        SPOILS.update(dict.fromkeys(types, spoil))
        return spoil

    return known


def to(value: Any) -> Spoil:
    """The check's column, or the last of its columns, becomes a value."""

    def spoil(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
        row[column(kwargs)] = value(kwargs) if callable(value) else value

    return spoil


def column(kwargs: dict[str, Any]) -> str:
    name: str = kwargs["column"] if "column" in kwargs else kwargs["column_list"][-1]
    return name


def filled(row: Row) -> None:
    """The sentence of a row becomes its prompt with its answer, as before it was changed."""
    if "sentence" in row:
        row["sentence"] = row["prompt"].replace("[Y]", row["answers"][0])


SPOILS |= {
    "expect_column_values_to_not_be_null": to(None),
    "expect_column_values_to_be_in_set": to(lambda k: 7 if 1 in k["value_set"] else "no such"),
    "expect_column_value_lengths_to_be_between": to(lambda k: "x" * (k.get("max_value", -1) + 1)),
    "expect_column_values_to_be_between": to(lambda k: k["min_value"] - 1),
    "expect_cuis_to_be_known": to("C7777777"),
    "expect_texts_to_hold_one_candidate": to("nothing of the kind"),
    "expect_filled_prompts": to("nothing of the kind"),
    "expect_first_added_to_be_the_target": lambda row, other, _: row.update(added_id="C7777777"),
    "expect_dates_to_be_later": lambda row, other, _: row.update(date=row["cut_off"]),
    "expect_labels_to_follow_kinds": lambda row, other, _: row.update(label=1),
    "expect_negatives_to_be_unrelated": lambda row, other, _: row.update(
        cui=row["original_cui"], hypothesis=row["disease"]
    ),
    "expect_names_to_be_of_their_cuis": lambda row, other, k: row.update(
        {k["column_list"][0]: "no such name"}
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": lambda row, other, k: row.update(
        {k["column_A"]: row[k["column_B"]] - 1}
    ),
    "expect_list_lengths_to_be_between": lambda row, other, _: row.update(
        answers=[], answer_ids=[]
    ),
    "expect_lists_to_be_aligned": lambda row, other, _: row.update(
        answer_ids=[*row["answer_ids"], "C7777777"]
    ),
}


@spoils("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
def twice(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    for name in kwargs.get("column_list", [kwargs.get("column")]):
        row[name] = other[name]


@spoils("expect_column_values_to_match_regex")
def other_form(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    """Blank, or, where some rows may be so, one long word."""
    word = "x" * 20 + re.sub(r"\W", "", row[kwargs["column"]])
    row[kwargs["column"]] = word if "mostly" in kwargs else " "


@spoils("expect_column_values_to_not_match_regex")
def forbidden(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    samples = ["a\x00b ", "a [MASK] ", "However so ", "a \ufffd ", "a\u200bb "]
    found = next(text for text in samples if re.search(kwargs["regex"], text))
    row[kwargs["column"]] = found + row[kwargs["column"]]
    if kwargs["column"] == "prompt":
        filled(row)


@spoils("expect_prompts_to_have_one_slot")
def no_slot(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    row["prompt"] = row["prompt"].replace("[Y]", row["answers"][0])


@spoils("expect_list_items_to_be_unique")
def items_twice(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    for name in (kwargs["column"], *(["answer_ids"] if kwargs["column"] == "answers" else [])):
        row[name] = [*row[name][:1]] * 2


@spoils("expect_list_items_to_match_regex", "expect_items_to_be_in_table")
def other_item(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    name = kwargs["column"] if "regex" in kwargs else kwargs["column_list"][-1]
    text = " " if "regex" in kwargs else "no such name"
    row[name] = text if isinstance(row[name], str) else [text, *row[name][1:]]
    filled(row)


# A mutation breaks a table, or the one it is held against, where no single row can be broken.
Mutation = Callable[[Tables, str, dict[str, Any]], object]
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


def drop(tables: Tables, table: str, gone: Any) -> None:
    tables[table] = tables[table][~np.asarray(gone)].reset_index(drop=True)


def more(rows: pd.DataFrame, times: int) -> pd.DataFrame:
    """So many copies of queries, no two of them alike."""
    parts = []
    for number in range(times):
        part = rows.copy()
        for name in part.columns.intersection(["query_id", "context_id", "pair_id"]):
            part[name] = part[name].astype(str) + f"/{number}"
        part["subject_id"] = [f"C9{number:03}{row:03}" for row in range(len(part))]
        part["prompt"] = f"{number} " + part["prompt"]
        if "sentence" in part:
            part["sentence"] = f"{number} " + part["sentence"]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


@breaks("expect_table_row_count_to_be_between")
def too_few(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    tables[table] = tables[table].head(kwargs["min_value"] - 1)


@breaks("expect_column_distinct_values_to_contain_set")
def vanished(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    drop(tables, table, tables[table][kwargs["column"]] == kwargs["value_set"][0])


@breaks("expect_subset_to_be_within")
def beyond_the_whole(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    first, *rest = kwargs["column_list"]
    keys = tables[table][rest].astype(str).agg("|".join, axis=1)
    inside = tables[table][first] == kwargs["whole"]
    drop(tables, table, inside & (keys == keys[~inside].iloc[0]))


@breaks("expect_subset_values_to_be_below")
def too_high(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    first, *_, last = kwargs["column_list"]
    value = tables[table][last].mask(tables[table][first] == kwargs["subset"], kwargs["below"])
    tables[table] = tables[table].assign(**{last: value})


@breaks("expect_group_sizes_to_be_between")
def too_many(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    copies = more(rows[rows["subset"] == "full"].head(1), kwargs["max_value"])
    tables[table] = pd.concat([rows, copies], ignore_index=True)


@breaks("expect_groups_to_be_of_like_size")
def one_tiny_group(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """One query is left of a group, and the others are many. An only group gives one to another."""
    last = kwargs["column_list"][-1]
    rows = tables[table]
    group = rows[last] == rows[last].iloc[0]
    if group.all():
        tables[table] = rows.assign(**{last: rows[last].where(rows.index > 0, "another")})
        return
    drop(tables, table, group & (rows.index != rows.index[0]))
    others = tables[table][tables[table][last] != rows[last].iloc[0]]
    copies = more(others, 1 + int(30 // max(1, others.groupby(last).size().median() or 1)))
    tables[table] = pd.concat([tables[table], copies], ignore_index=True)


@breaks("expect_rows_to_be_used")
def lost(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """One thing is lost, or two of three where some may be."""
    other = tables[kwargs["other"]]
    used = other.query(kwargs["where"]) if "where" in kwargs else other
    key = used[kwargs["distinct"]] if "distinct" in kwargs else pd.Series(used.index, used.index)
    numbers = pd.factorize(key)[0]
    gone = used.index[numbers % 3 != 0 if kwargs["share"] < 1 else numbers == 0]
    drop(tables, kwargs["other"], other.index.isin(gone))


@breaks("expect_facts_to_be_absent_from_table")
def known_before(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    other = kwargs["other"]
    tables[other] = pd.concat([tables[other], tables[table].head(1)], ignore_index=True)


@breaks("expect_negatives_to_be_of_other_positives")
def never_right(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """A disease that is no positive's any more: its positives are gone."""
    rows = tables[table]
    wrong = rows.loc[rows["label"] == 0, "cui"].unique()[: 10 if "mostly" in kwargs else 1]
    drop(tables, table, rows["original_cui"].isin(wrong))


@breaks("expect_positives_to_have_negatives")
def one_negative_left(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    own = (rows["kind"] == kwargs["kind"]) & (rows["pair_id"] == rows["pair_id"].iloc[0])
    drop(tables, table, own & (rows.index != rows.index[own][0]))


@breaks("expect_diseases_to_be_targets")
def forgotten_target(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    drop(tables, "splits", tables["splits"]["target"] == tables["splits"]["target"].iloc[0])


@breaks("expect_examples_to_be_tested")
def untested(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    splits = tables["splits"]
    first = splits[splits["split"] == "test"].iloc[0]
    same = (splits["target"] == first["target"]) & (splits["example_id"] == first["example_id"])
    drop(tables, "splits", same)


@breaks("expect_tested_premises_to_be_untrained")
def one_premise(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """One that trains a disease and one that tests it have one premise."""
    of = tables[table][tables[table]["target"] == tables[table]["target"].iloc[0]]
    first = of.drop_duplicates("split").set_index("split")["example_id"]
    examples = tables["examples"]
    both = examples["example_id"].isin(first[["train", "test"]])
    tables["examples"] = examples.assign(premise=examples["premise"].mask(both, "x"))


@breaks("expect_targets_to_be_trained")
def untrained(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    drop(tables, table, tables[table]["split"] == "train")


@breaks("expect_examples_to_differ")
def one_twice(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    again = tables[table].tail(1).assign(example_id="again")
    tables[table] = pd.concat([tables[table], again], ignore_index=True)


@breaks("expect_positives_to_number")
def too_few_of_a_category(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    of = rows["category"] == kwargs["category"]
    few = rows[of & (rows["label"] == 1)].head(min(1, kwargs["min_value"] - 1))
    drop(tables, table, of & ~rows["pair_id"].isin(few["pair_id"]))


@breaks("expect_no_disease_leakage")
def leak(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    row = tables[table].query("split == 'train'").iloc[0]
    examples = tables["examples"].copy()
    examples.loc[examples["example_id"] == row["example_id"], "premise"] += next(
        " with " + name.name for name in tables["names"].itertuples() if name.cui == row["target"]
    )
    tables["examples"] = examples


@breaks("expect_test_examples_to_be_of_the_target")
def other_test(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    splits = tables[table]
    of = splits["split"] == "test"
    others = dict(zip(splits["target"].unique(), splits["target"].unique()[::-1], strict=True))
    swapped = splits["target"].where(~of, splits["target"].map(others))
    tables[table] = splits.assign(target=swapped)


@breaks("expect_pairs_to_be_on_one_side")
def both_sides(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    splits = tables[table]
    pairs = splits["example_id"].map(tables["examples"].set_index("example_id")["pair_id"])
    shared = pd.concat([splits[["target", "split"]], pairs], axis=1).duplicated(keep=False)
    first = splits.index[shared & (splits["split"] == "train")][0]
    tables[table] = splits.assign(split=splits["split"].where(splits.index != first, "validation"))


@breaks("expect_real_contexts_to_be_in_their_documents")
def other_documents(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "documents", "text", "another text")


@breaks("expect_segments_to_hold_one_entity")
def other_mentions(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "mentions", "cui", "C7777777")


@breaks("expect_steps_to_be_nested")
def nothing_shown(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "shown", [])


@breaks("expect_both_centres_in_pairs")
def one_centre(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    first = rows["pair_id"] == rows["pair_id"].iloc[0]
    tables[table] = rows.assign(centre=rows["centre"].mask(first, "target"))


@breaks("expect_pairs_to_match")
def one_of_a_pair(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    of = tables[table][kwargs["column_list"][0]] == kwargs["one"]
    drop(tables, table, of & (tables[table].index == of.idxmax()))


UNKNOWN = "what is no CUI, or none of UMLS, is nothing's"
OTHER = "what is copied from another row is of another concept or disease"
ALONE = "one row of its kind is too few"
# What else must report a row that is broken for a check, and why: by the check, behind its suite.
OVERLAPS: dict[str, dict[str, str]] = {
    "* table_row_count_to_be_between": {
        "column_distinct_values_to_contain_set *": "no row, none of what is asked for",
        "table_row_count_to_be_between": "sentences have two bounds",
    },
    "* column_distinct_values_to_contain_set *": {
        "column_distinct_values_to_contain_set *": "what is of a subset goes with it",
        "table_row_count_to_be_between": "of a table that has no other",
    },
    "context/mentions column_values_to_not_be_null *": {
        "column_pair_values_a_to_be_greater_than_b *": "a span without an end has no length",
    },
    "* column_values_to_be_in_set *": {
        "groups_to_be_of_like_size *": ALONE,
        "items_to_be_in_table *": "candidates are of a known subset or relation",
    },
    "* column_values_to_match_regex *": {
        "cuis_to_be_known *": UNKNOWN,
        "names_to_be_of_their_cuis *": UNKNOWN,
        "negatives_to_be_of_other_positives *": UNKNOWN,
        "targets_to_be_trained *": ALONE,
        "first_added_to_be_the_target *": UNKNOWN,
        "items_to_be_in_table *": "no candidate is blank",
    },
    "* cuis_to_be_known *": {
        "names_to_be_of_their_cuis *": UNKNOWN,
        "negatives_to_be_of_other_positives *": UNKNOWN,
        "targets_to_be_trained *": ALONE,
    },
    "* column_values_to_be_unique example_id": {"examples_to_be_tested *": OTHER},
    "* compound_columns_to_be_unique *": {
        "examples_to_be_tested *": OTHER,
        "names_to_be_of_their_cuis *": OTHER,
        "no_disease_leakage *": OTHER,
        "tested_premises_to_be_untrained *": OTHER,
    },
    "* list_items_to_match_regex *": {"items_to_be_in_table *": "no candidate is blank"},
    "* positives_to_number *": {"negatives_to_be_of_other_positives *": "of the lost category"},
    "* negatives_to_be_of_other_positives *": {"positives_to_number *": "positives are gone"},
    "* test_examples_to_be_of_the_target *": {
        "compound_columns_to_be_unique *": "it trains the disease that it tests now",
        "tested_premises_to_be_untrained *": "it trains the disease that it tests now",
    },
    "lipid/queries compound_columns_to_be_unique *": {"items_to_be_in_table *": OTHER},
    "lipid/queries *items_to_*": {"texts_to_hold_one_candidate *": "its sentence holds none"},
    "* list_lengths_to_be_between answers": {"filled_prompts *": "no answer fills it"},
    "medlama/queries groups_to_be_of_like_size *": {"subset_to_be_within *": "hard ones go too"},
    "lama/queries groups_to_be_of_like_size *": {"pairs_to_match *": "halves of pairs go too"},
    "* rows_to_be_used *": {"rows_to_be_used *": "half is less than all"},
    "context/queries groups_to_be_of_like_size *": {
        "items_to_be_in_table *": "the small world has one relation: another has no candidates",
    },
}
WIDE = (  # those that judge a row by others: rows that are broken side by side show in them
    *("expect_both_centres_in_pairs", "expect_steps_to_be_nested", "expect_rows_to_be_used"),
    *("expect_positives_to_have_negatives", "expect_pairs_to_be_on_one_side"),
    *("expect_segments_to_hold_one_entity", "expect_real_contexts_to_be_in_their_documents"),
)


def called(listed: Listed) -> str:
    kwargs = listed.kwargs
    columns = kwargs.get("column_list", [kwargs[k] for k in ("column", "column_A") if k in kwargs])
    words = (listed.type.removeprefix("expect_"), *columns, kwargs.get("kind", ""))
    return " ".join(words).strip()


def overlapping(path: str, broken: Listed, other: Listed) -> bool:
    """Is it said of these two checks that one cannot be broken without the other?"""
    return any(
        fnmatch(f"{path} {called(broken)}", first) and fnmatch(called(other), second)
        for first, others in OVERLAPS.items()
        for second in others
    )


def rounds(suite: Suite, rows: pd.DataFrame, path: str) -> Iterator[tuple[pd.DataFrame, Reported]]:
    """Tables in which a row is broken for each of some checks, and the rows that each is to report:
    its own, or both that are alike. In few rounds, each row is broken for one check."""
    left = [n for n, listed in enumerate(suite.listed) if listed.type in SPOILS]
    neutral = NEUTRAL.get(path, lambda table: pd.Series(True, table.index))(rows)
    while left:
        free, expected, changed = neutral.copy(), {}, rows.to_dict("records")
        for number in list(left):
            listed = suite.listed[number]
            apt = rows.query(
                listed.kwargs.get("row_condition") or APT.get(listed.type, "index >= 0")
            )
            chosen = [row for row in apt.index if free[row]]
            if "mostly" in listed.kwargs:
                if expected:
                    continue
                chosen, mine = [*rows.index], [*rows.index]
            elif SPOILS[listed.type] is twice:
                mine = [chosen[0], chosen[-1]] if len(chosen) > 1 else []
            else:
                mine = chosen[:1]
            if not mine:
                continue
            for row in mine if "mostly" in listed.kwargs else mine[:1]:
                SPOILS[listed.type](changed[row], changed[mine[-1]], listed.kwargs)
            free[mine] = False
            expected[number] = {-1} if "mostly" in listed.kwargs else {row + 1 for row in mine}
            left.remove(number)
            if "mostly" in listed.kwargs:
                break
        assert expected, f"no row of {path} can be broken for {called(suite.listed[left[0]])}"
        table = pd.DataFrame(changed, columns=rows.columns, dtype=object)
        numbers = rows.select_dtypes("number").columns
        whole = [name for name in numbers if table[name].notna().all()]
        yield table.astype(rows.dtypes[whole].to_dict()), expected


@pytest.mark.parametrize("path", OWN)
def test_each_check_is_broken_and_it_alone_reports_it(
    sound: dict[str, tuple[Tables, dict[str, Any]]],
    loaded: dict[tuple[str, str], Suite],
    path: str,
) -> None:
    builder, table = path.split("/")
    assert wrong(path, loaded[builder, table], sound[builder][0]) == []


def wrong(path: str, suite: Suite, tables: Tables) -> list[tuple[str, str]]:
    """Which check was broken, and which one else reported it, or did not."""
    tables = {name: rows.reset_index(drop=True) for name, rows in tables.items()}
    if suite.table == "splits":  # to look for leaks takes time
        few = tables["splits"]["target"].isin(tables["splits"]["target"].unique()[:2])
        drop(tables, "splits", ~few)
    found = []
    for broken, expected in rounds(suite, tables[suite.table], path):
        seen = [
            set() if check["type"] in WIDE else reported(check)
            for check in report(suite, {**tables, suite.table: broken})
        ]
        for number, rows in expected.items():
            found += [
                (suite.listed[number], suite.listed[other])
                for other, numbers in enumerate(seen)
                if (not rows <= numbers if other == number else rows & numbers)
            ]
        own = set().union(*expected.values())
        found += [
            (one, one) for one, numbers in zip(suite.listed, seen, strict=True) if numbers - own
        ]
    for number, listed in enumerate(suite.listed):
        if listed.type not in SPOILS:
            mutated = dict(tables)
            MUTATIONS[listed.type](mutated, suite.table, listed.kwargs)
            found += [
                (listed, suite.listed[other])
                for other, check in enumerate(report(suite, mutated))
                if check["success"] == (other == number)
            ]
    return [
        (called(broken), called(other))
        for broken, other in found
        if broken is other or not overlapping(path, broken, other)
    ]


def reported(check: dict[str, Any]) -> set[int]:
    """The rows that a check reports, unless it lets them pass; -1 for more than it names, or where
    it broke."""
    if check["success"]:
        return set()
    if check["failing"] > len(check["examples"]) or check["problem"]:
        return {-1}
    return {row["number"] for row in check["examples"]}


def report(suite: Suite, tables: Tables) -> list[dict[str, Any]]:
    ((checks),) = [one["checks"] for one in gate.run([suite], tables, text=True)]
    return list(checks)
