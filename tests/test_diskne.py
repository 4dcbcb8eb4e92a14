"""DisKnE's rules: candidates, negatives, articles, splits; against an obvious implementation."""

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_diskne
from medprobe.benchmarks import diskne, diskne_released
from medprobe.benchmarks.diskne.candidates import DISEASES, candidates
from medprobe.benchmarks.diskne.negatives import replace_disease
from medprobe.benchmarks.diskne.splits import split
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.sources import mednli
from medprobe.sources.hierarchy import Hierarchy

RELEASED = Path(__file__).parents[1] / "../shared/data/diskne"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made_diskne.write(tmp_path / "data")
    return tmp_path / "data"


def build(data: Path, **changes: object) -> BenchmarkTables:
    choices = {"negatives": 2, **changes}
    return diskne.build(data, diskne.Settings.model_validate(choices), seed=1)


def test_examples(data: Path) -> None:
    examples = build(data).others["examples"]
    assert examples.groupby("kind").size().to_dict() == {
        "positive": 9,
        "random": 18,
        "similar": 18,
    }
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


def test_is_a_benchmark_with_prompts_too(data: Path, tmp_path: Path) -> None:
    benchmark = build(data)
    benchmark.write(tmp_path / "out")
    row = BenchmarkTables.read(tmp_path / "out").queries.iloc[0]
    assert row["prompt"] == "He wheezes at night. The patient has [Y]."
    assert (list(row["answers"]), row["subset"]) == (["asthma"], "symptoms")
    assert set(benchmark.candidates["name"]) == set(made_diskne.CUIS)


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
    found = re.search("stroke|aneurysm", hypothesis)
    assert found
    assert replace_disease(hypothesis, found.start(), found.end(), disease) == expected


def test_candidates(data: Path) -> None:
    pairs = mednli.read(data / "mednli", data / "mediqa")
    found = candidates(pairs, data / "umls", DISEASES)
    assert "n1" not in set(found["pair_id"])  # not entailed
    row = found.set_index("pair_id").loc["p5"]  # the longest name
    assert (row["disease"], row["start"], row["end"]) == ("acute gout", 16, 26)
    assert found.set_index("pair_id").loc["p7", "category"] == "terminological"


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
    sheet.write_text(text.replace("C0000006", "C0000066"))
    with pytest.raises(BadInput, match="no English name of C0000066"):
        _add_vector(data, "C0000066")
        build(data, negatives=1)
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


def test_released_negatives_are_taken_as_they_are(data: Path) -> None:
    (data / "diskne/annotation.csv").unlink()
    header = ["pair_id", "CUI", "label", "category", "original_cui", "start_index", "end_index"]
    rows: list[list[object]] = [
        ["p1", "C0000001", "entailment", "symptoms_diseases", "C0000001", 16, 21],
        ["p1,ng", "C0000004", "non-entailment", "symptoms_diseases", "C0000001", "", ""],
        ["p1,ng", "C0000004", "non-entailment", "symptoms_diseases", "C0000001", "", ""],
        ["p3", "C0000001", "entailment", "symptoms_diseases", "C0000001", 0, 5],
    ]
    path = data / "diskne/DisknE_medical_similar_annotation.csv"
    made_diskne.write_csv(path, [header, *rows])
    examples = diskne_released.build(data, diskne_released.Choices(), 1).others["examples"]
    assert examples["example_id"].tolist() == ["0000", "0000-similar-1", "0000-similar-2", "0001"]
    assert set(examples["origin"]) == {"released"}


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


def mentions(text: str, name: str) -> bool:
    """Whole words; names of three letters or fewer in their own case."""
    flags = re.NOFLAG if len(name) <= 3 else re.IGNORECASE
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, flags) is not None


@settings(max_examples=150, deadline=None)
@given(EXAMPLES, st.sampled_from(["words", "substrings"]))
def test_splits_equal_the_rule_read_out(rows: list[dict[str, str]], match: str) -> None:
    rows = [{**row, "example_id": str(number)} for number, row in enumerate(rows)]
    found = split(pd.DataFrame(rows), NAMES, 0.25, 1, match)  # type: ignore[arg-type]
    for target, names in NAMES.items():
        own = found[found["target"] == target]
        test = {row["example_id"] for row in rows if row["original_cui"] == target}
        train = set()
        for row in rows:
            texts = [row["premise"], row["full_hypothesis"], row["hypothesis"]]
            named = any(
                name.lower() in text.lower() if match == "substrings" else mentions(text, name)
                for name in names
                for text in texts
            )
            if not named and target not in (row["cui"], row["original_cui"]):
                train.add(row["example_id"])
        assert set(own.loc[own["split"] == "test", "example_id"]) == test
        assert set(own.loc[own["split"] != "test", "example_id"]) == train
        pairs = {row["example_id"]: row["pair_id"] for row in rows}
        sides = {
            side: {pairs[name] for name in own.loc[own["split"] == side, "example_id"]}
            for side in ("train", "validation")
        }
        assert not sides["train"] & sides["validation"]
        distinct = len(sides["train"] | sides["validation"])
        assert len(sides["validation"]) == (max(1, round(distinct / 4)) if distinct else 0)
