"""DisKnE's rules: candidates, negatives, articles, splits; against an obvious implementation."""

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import ROOT
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.gate import suites
from medprobe.gate.run import run
from medprobe.papers.diskne import mednli
from medprobe.papers.diskne.benchmarks import diskne, diskne_released
from medprobe.papers.diskne.benchmarks.diskne import DISEASES, candidates
from medprobe.papers.diskne.benchmarks.diskne.negatives import replace_disease
from medprobe.papers.diskne.benchmarks.diskne.splits import Match, split, touched
from medprobe.papers.diskne.concepts import Hierarchy
from medprobe.sources.forms import Forms
from papers.diskne import diskne_world
from sources.test_rrf import RELATION, write


@pytest.fixture
def data(working_folder: Path) -> Path:
    diskne_world.write(working_folder / "data")
    return working_folder / "data"


def build(data: Path, **changes: object) -> BenchmarkTables:
    choices = {"negatives": 2, **changes}
    return diskne.build(data, diskne.Settings.model_validate(choices), seed=1)


def test_examples(data: Path) -> None:
    examples = build(data).others["examples"]
    assert examples.groupby("kind").size().to_dict() == {"positive": 9, "random": 18, "similar": 18}
    gout = examples[(examples["pair_id"] == "p4") & (examples["kind"] == "similar")]
    # as near as asthma is acute gout, but it is below gout
    assert gout["hypothesis"].tolist() == ["asthma", "influenza"]
    assert gout["full_hypothesis"].iloc[0] == "The patient has asthma."
    first = examples.iloc[0]
    assert (first["example_id"], first["label"], first["hypothesis"]) == ("0000", 1, "asthma")
    assert first["full_hypothesis"] == "The patient has asthma."


def test_splits_hold_no_synonym(data: Path) -> None:
    benchmark = build(data)
    examples, splits = benchmark.others["examples"], benchmark.others["splits"]
    assert sorted(splits["target"].unique()) == ["C0000001"]  # two positives in one category
    table = splits.merge(examples, on="example_id")
    test = table[table["split"] == "test"]
    assert set(test["original_cui"]) == {"C0000001"}
    assert len(test) == 3 * 5  # three positives, two similar and two random negatives each
    rest = table[table["split"] != "test"]
    assert not {"C0000001"} & (set(rest["cui"]) | set(rest["original_cui"]))
    gout = build(data, positives=1).others
    trained = gout["splits"].merge(gout["examples"], on="example_id")
    trained = trained[(trained["target"] == "C0000002") & (trained["split"] != "test")]
    assert "p9" not in set(trained["pair_id"])  # its premise says podagra
    assert "acute gout" not in set(trained["hypothesis"])  # gout is named in it
    assert "p6" in set(trained["pair_id"])


@pytest.mark.parametrize(
    ("positives", "reported"),
    [
        (2, {"symptoms": ["C0000001"], "full": ["C0000001"]}),
        (3, {}),  # asthma has three, in two categories
    ],
)
def test_the_positives_that_a_disease_needs_hold_for_what_is_reported(
    data: Path, positives: int, reported: dict[str, list[str]]
) -> None:
    assert diskne_world.report(build(data, positives=positives)) == reported


def test_with_one_positive_every_disease_is_reported_in_each_of_its_categories(data: Path) -> None:
    asthma, gout, acute, flu, measles, anemia = (f"C000000{number}" for number in range(1, 7))
    assert diskne_world.report(build(data, positives=1)) == {
        "full": [asthma, gout, acute, flu, measles, anemia],
        "symptoms": [asthma, gout, flu, anemia],
        "terminological": [measles],
        "tests": [acute, anemia],
        "treatments": [asthma],
    }


def test_is_a_benchmark_with_prompts_too(data: Path, tmp_path: Path) -> None:
    benchmark = build(data)
    benchmark.write(tmp_path / "out")
    row = BenchmarkTables.read(tmp_path / "out").queries.iloc[0]
    assert row["prompt"] == "He wheezes at night. The patient has [Y]."
    assert (list(row["answers"]), row["subset"]) == (["asthma"], "symptoms")
    assert set(benchmark.candidates["name"]) == set(diskne_world.CUIS)


def test_what_trains_validates_and_tests_is_counted(data: Path) -> None:
    benchmark = build(data, positives=1)
    splits = benchmark.others["splits"]
    sizes = benchmark.notes["split_sizes"].set_index("target")
    for (target, name), rows in splits.groupby(["target", "split"]):
        assert sizes.loc[target, name] == len(rows)
    assert sizes.to_numpy().sum() == len(splits)
    kinds = benchmark.notes["kinds"].set_index("category")
    assert kinds.loc["symptoms"].to_dict() == {"positive": 5, "random": 10, "similar": 10}


def test_same_seed_same_tables(data: Path) -> None:
    first, second = build(data, positives=1), build(data, positives=1)
    for name, table in first.others.items():
        pd.testing.assert_frame_equal(table, second.others[name])


@pytest.mark.parametrize(
    ("hypothesis", "disease", "expected"),
    [
        ("has a stroke now", "aneurysm", "has an aneurysm now"),
        ("has an aneurysm now", "stroke", "has a stroke now"),
        ("An aneurysm", "stroke", "A stroke"),
        ("has the stroke", "aneurysm", "has the aneurysm"),
        ("vitamin A stroke", "aneurysm", "vitamin An aneurysm"),
        ("banana stroke", "aneurysm", "banana aneurysm"),
    ],
)
def test_articles(hypothesis: str, disease: str, expected: str) -> None:
    best = re.search("stroke|aneurysm", hypothesis)
    assert best
    assert replace_disease(hypothesis, best.start(), best.end(), disease) == expected


def test_candidates(data: Path) -> None:
    pairs = mednli.read(data / "mednli", data / "mediqa")
    tables = candidates(pairs, data / "umls", DISEASES)
    assert "n1" not in set(tables["pair_id"])  # not entailed
    row = tables.set_index("pair_id").loc["p5"]  # the longest name
    assert (row["disease"], row["start"], row["end"]) == ("acute gout", 16, 26)
    assert tables.set_index("pair_id").loc["p7", "category"] == "terminological"


def test_without_annotation_the_sheet_is_written(data: Path) -> None:
    (data / "diskne/annotation.csv").unlink()
    with pytest.raises(BadInput, match=r"nobody has annotated yet; fill in outputs/annotation"):
        build(data)
    sheet = pd.read_csv("outputs/annotation/diskne.csv")
    assert len(sheet) == 9
    assert sheet["keep"].isna().all()


def test_bad_sources(data: Path) -> None:
    sheet = data / "diskne/annotation.csv"
    text = sheet.read_text()
    sheet.write_text(text.replace("p9,", "p99,"))
    with pytest.raises(BadInput, match="pair p99 is in no MedNLI file"):
        build(data)
    assert build(data, unknown_pairs="leave out").notes["dropped"]["count"].max() == 1
    sheet.write_text(text.replace(",16,22,", ",16,222,"))
    with pytest.raises(BadInput, match="span 16 to 222 is not in the hypothesis of pair p1"):
        build(data)
    sheet.write_text(text)
    with pytest.raises(BadInput, match=r"targets: C0000006 has no 2 positives in a category"):
        build(data, targets=["C0000001", "C0000006"])
    (data / "mednli/mli_dev_v1.jsonl").unlink()
    with pytest.raises(BadInput, match="no such file"):
        build(data)


def _add_vector(data: Path, cui: str) -> None:
    path = data / "cui2vec/cui2vec_pretrained.csv"
    path.write_text(path.read_text() + f"{cui},1,1\n")


def test_what_has_no_vector_is_left_out(data: Path) -> None:
    path = data / "cui2vec/cui2vec_pretrained.csv"
    path.write_text(path.read_text().replace("C0000005", "C0000055"))
    benchmark = build(data)
    assert "measles" not in set(benchmark.candidates["name"])
    dropped = benchmark.notes["dropped"].set_index("rule")["count"]
    assert dropped["positive: disease not in cui2vec"] == 1


HEADER = ["pair_id", "CUI", "label", "category", "original_cui", "start_index", "end_index"]


def positive(pair: str, cui: str, start: int, end: int) -> list[object]:
    return [pair, cui, "entailment", "symptoms_diseases", cui, start, end]


def negative(pair: str, cui: str, original: str) -> list[object]:
    return [f"{pair},ng", cui, "non-entailment", "symptoms_diseases", original, "", ""]


ODD: list[list[object]] = [
    positive("p1", "C0000001", 16, 21),
    negative("p1", "C0000004", "C0000001"),
    negative("p1", "C0000004", "C0000001"),  # twice
    negative("p1", "C0000001", "C0000004"),  # of another disease than the pair's
    positive("p3", "C0000001", 0, 5),  # without negatives
    positive("Uric acid is", "C0000003", 16, 25),  # pair p5, by its premise
    negative("Uric acid is", "C0000004", "C0000003"),
    positive("No such premise", "C0000003", 16, 25),
    negative("No such premise", "C0000004", "C0000003"),
]


def released(data: Path, rows: list[list[object]], **changes: object) -> BenchmarkTables:
    (data / "diskne/annotation.csv").unlink(missing_ok=True)
    path = data / "diskne/DisknE_medical_similar_annotation.csv"
    diskne_world.write_csv(path, [HEADER, *rows])
    settings = diskne_released.Settings.model_validate({"positives": 1, **changes})
    return diskne_released.build(data, settings, 1)


def test_released_files_are_taken_as_the_paper_counts_them(data: Path) -> None:
    benchmark = released(data, ODD)
    examples = benchmark.others["examples"]
    assert examples[["example_id", "pair_id", "cui"]].values.tolist() == [
        ["0000", "p1", "C0000001"],
        ["0000-similar-1", "p1", "C0000004"],
        ["0001", "p5", "C0000003"],
        ["0001-similar-1", "p5", "C0000004"],
    ]
    assert set(examples["origin"]) == {"released"}
    dropped = benchmark.notes["dropped"].set_index("rule")["count"]
    assert dropped[dropped > 0].to_dict() == {
        "row: its id is a premise that no pair has": 2,
        "row: repeated": 1,
        "negative: of another disease than its pair's": 1,
        "positive: without negatives": 1,
    }


def test_each_rule_of_the_paper_can_be_left_out(data: Path) -> None:
    everything = {"without_negatives": "keep", "duplicates": "keep", "orphans": "keep"}
    assert len(released(data, ODD, **everything).others["examples"]) == len(ODD) - 2
    for rule, more in (("without_negatives", 1), ("duplicates", 1), ("orphans", 1)):
        assert len(released(data, ODD, **{rule: "keep"}).others["examples"]) == 4 + more
    with pytest.raises(BadInput, match="no row of terminological"):
        released(data, ODD, categories=["terminological"])
    with pytest.raises(BadInput, match="with random negatives"):
        released(data, ODD, kinds=["random"])


def parent(child: str, above: str) -> str:
    return f"{child}||CUI|PAR|{above}||CUI|inverse_isa|R9||SNOMEDCT_US|SNOMEDCT_US|||N||\n"


ASTHMA, INFLUENZA = "C0000001", "C0000004"  # of the first positive and of its negative


@pytest.mark.parametrize(
    "edges",
    [
        [(ASTHMA, INFLUENZA)],
        [(INFLUENZA, "C9000001"), ("C9000001", ASTHMA)],  # at any distance
    ],
)
def test_released_negatives_above_or_below_their_disease_stay_or_are_counted(
    data: Path, edges: list[tuple[str, str]]
) -> None:
    with (data / "umls/MRREL.RRF").open("a") as umls:
        umls.writelines(parent(*edge) for edge in edges)
    rows = [*ODD[:2], negative("p1", "C0000005", ASTHMA), *ODD[5:7]]
    kept = released(data, rows)
    assert len(kept.others["examples"]) == len(rows)
    left = released(data, rows, related="drop")
    assert left.others["examples"]["cui"].tolist() == [ASTHMA, "C0000005", "C0000003", INFLUENZA]
    dropped = left.notes["dropped"].set_index("rule")["count"]
    assert dropped["negative: above or below its pair's disease"] == 1
    assert dropped["positive: without negatives"] == 0

    for benchmark, rule, severity in ((kept, "keep", "warning"), (left, "drop", None)):
        settings = diskne_released.Settings.model_validate({"positives": 1, "related": rule})
        loaded = suites.load(
            ROOT / "expectations/diskne_released", [], settings.model_dump(mode="json")
        )
        tables = {"queries": benchmark.queries, **benchmark.others}
        [report] = run([suite for suite in loaded if suite.table == "examples"], tables, text=True)
        failed = {c["type"]: c["severity"] for c in report["checks"] if not c["success"]}
        assert failed.get("expect_negatives_to_be_unrelated") == severity
        few = failed.get("expect_positives_to_have_negatives")
        assert few == ("critical" if rule == "keep" else None), (
            "one is enough where some are left out"
        )


def test_a_disease_without_a_name_in_umls_goes_by_the_texts_or_stops_the_build(data: Path) -> None:
    umls = data / "umls/MRCONSO.RRF"
    lines = [line for line in umls.read_text().splitlines() if not line.startswith("C0000001")]
    umls.write_text("".join(f"{line}\n" for line in lines))
    rows = [ODD[0], ODD[1], negative("p1", "C0000077", "C0000001")]
    with pytest.raises(BadInput, match=r"no English name of C0000077; .*2020AA"):
        released(data, rows)
    benchmark = released(data, rows, unnamed="leave out")
    assert benchmark.others["examples"]["hypothesis"].tolist() == ["asthma", "influenza"]
    dropped = benchmark.notes["dropped"].set_index("rule")["count"]
    assert dropped["row: its disease has no name"] == 1
    assert dropped["disease: named by the texts only"] == 1


def test_hypotheses_as_the_released_code_has_them(data: Path) -> None:
    other_tables = released(data, ODD[:2], hypothesis="surface", shared_premises=True).others
    assert other_tables["examples"]["hypothesis"].tolist() == ["asthma", "influenza"]
    pairs = data / "mednli" / mednli.MEDNLI[0]
    pairs.write_text(
        pairs.read_text().replace("The patient has asthma.", "The patient has ASTMA .")
    )
    other_tables = released(data, ODD[:2], hypothesis="surface").others
    assert other_tables["examples"]["hypothesis"].tolist() == ["astma", "influenza"]
    assert "ASTMA" in set(other_tables["names"]["name"]), (
        "what a text calls a disease is a name of it"
    )


def test_a_tested_premise_is_not_trained_on_with_another_disease(data: Path) -> None:
    sheet = data / "diskne/annotation.csv"
    rows = sheet.read_text().replace("p4,The toe is red.", "p4,He wheezes at night.")
    sheet.write_text(rows)
    pairs = data / "mednli" / mednli.MEDNLI[0]
    pairs.write_text(pairs.read_text().replace("The toe is red.", "he  Wheezes at night."))

    def trained(**changes: object) -> set[str]:
        other_tables = build(data, **changes).others
        table = other_tables["splits"].merge(other_tables["examples"], on="example_id")
        return set(table.loc[table["split"] != "test", "pair_id"])

    assert "p4" not in trained()
    assert "p4" in trained(shared_premises=True)


@pytest.mark.parametrize(("setting", "trains"), [("train", True), ("leave out", False)])
def test_what_is_below_a_disease_trains_it_by_setting(
    data: Path, setting: str, trains: bool
) -> None:
    """Measles is put below influenza: its pair, whose premise calls it morbilli, and what has it
    for a negative, train influenza or do not."""
    below = "C0000005||CUI|PAR|C0000004||CUI|inverse_isa|R8||SNOMEDCT_US|SNOMEDCT_US|||N||\n"
    with (data / "umls/MRREL.RRF").open("a") as file:
        file.write(below)
    others = build(data, positives=1, descendants=setting).others
    table = others["splits"].merge(others["examples"], on="example_id")
    for target, is_trained in (("C0000004", trains), ("C0000006", True)):  # anemia is not above it
        rows = table[(table["target"] == target) & (table["split"] != "test")]
        assert ("p7" in set(rows["pair_id"])) == is_trained
        assert ("C0000005" in set(rows["cui"])) == is_trained


def test_hierarchy_survives_circles() -> None:
    tree = Hierarchy([("a", "b"), ("b", "c"), ("c", "a"), ("d", "c")])
    assert tree.ancestors("d") == {"a", "b", "c"}
    assert tree.descendants("a") == {"b", "c", "d"}
    assert tree.ancestors("x") == frozenset()


NAMES = {"X": ["red fever", "RF"], "Y": ["gout"], "Z": ["acute gout", "AG"]}
WORDS = st.lists(
    st.sampled_from(["red", "fever", "RF", "rf", "gout", "acute", "gouty", "ag", "AG", ","]),
    max_size=5,
).map(" ".join)
EXAMPLES = st.lists(
    st.fixed_dictionaries(
        {
            "pair_id": st.sampled_from(["p1", "p2", "p3", "p4"]),
            "cui": st.sampled_from(["X", "Y", "Z", "W"]),
            "original_cui": st.sampled_from(["X", "Y", "Z", "W"]),
            "premise": WORDS,
            "full_hypothesis": WORDS,
            "hypothesis": WORDS,
        }
    ),
    min_size=1,
    max_size=12,
)


BELOW = {"X": {}, "Y": {"Z": NAMES["Z"], "W": ["podagra"]}, "Z": {}}


@given(EXAMPLES, st.sampled_from(["forms", "substrings"]), st.booleans(), st.booleans())
def test_splits_equal_the_rule_read_out(
    rows: list[dict[str, str]], match: Match, shared: bool, trains_below: bool
) -> None:
    rows = [{**row, "example_id": str(number)} for number, row in enumerate(rows)]
    below = {} if trains_below else BELOW
    mentions = touched(pd.DataFrame(rows), NAMES, match, below)
    split_rows = split(pd.DataFrame(rows), mentions, [*NAMES], 0.25, 1, shared_premises=shared)
    for target, names in NAMES.items():
        target_rows = split_rows[split_rows["target"] == target]
        test = {row["example_id"] for row in rows if row["original_cui"] == target}
        tested = [row for row in rows if row["example_id"] in test]
        premises = {" ".join(row["premise"].lower().split()) for row in tested}
        train = set()
        for row in rows:
            texts = [row["premise"], row["full_hypothesis"], row["hypothesis"]]
            family = {target: names, **below.get(target, {})}
            every = [name for of_one in family.values() for name in of_one]
            named = any(map(Forms((name, target) for name in every).diseases, texts))
            if match == "substrings":
                named = any(name.lower() in row["premise"].lower() for name in every)
            again = " ".join(row["premise"].lower().split()) in premises
            again |= row["pair_id"] in {tested_row["pair_id"] for tested_row in tested}
            named |= not family.keys().isdisjoint((row["cui"], row["original_cui"]))
            if not named and (shared or not again):
                train.add(row["example_id"])
        assert set(target_rows.loc[target_rows["split"] == "test", "example_id"]) == test
        assert set(target_rows.loc[target_rows["split"] != "test", "example_id"]) == train
        pairs = {row["example_id"]: row["pair_id"] for row in rows}
        sides = {
            side: {
                pairs[name] for name in target_rows.loc[target_rows["split"] == side, "example_id"]
            }
            for side in ("train", "validation")
        }
        assert not sides["train"] & sides["validation"]
        distinct = len(sides["train"] | sides["validation"])
        assert len(sides["validation"]) == (max(1, round(distinct / 4)) if distinct else 0)


def test_the_hierarchy_comes_from_both_directions(tmp_path: Path) -> None:
    rows = [("C1", "PAR", "C2", ""), ("C2", "CHD", "C1", "isa"), ("C2", "CHD", "C3", "")]
    rows += [("C1", "RO", "C4", ""), ("C5", "PAR", "C5", "")]
    write(tmp_path, "MRREL.RRF", *(RELATION.format(*row) for row in rows))
    tree = Hierarchy.read(tmp_path, "NCI")
    assert tree.descendants("C2") == {"C1", "C3"}
    assert not tree.descendants("C4") and not tree.descendants("C5")
