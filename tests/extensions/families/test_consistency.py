"""Families of queries: agreement and rightness counted by hand, against slow versions."""

import json
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from helpers.render_helpers import lines
from helpers.toy_project import METADATA
from medprobe.core.params import ScoreParams
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    write_predictions,
)
from medprobe.extensions.families.metrics.consistency import (
    SCORER,
    by_change,
    by_column,
    by_family,
    change_tests,
)
from medprobe.extensions.families.sections.consistency import section
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import COMPARISON, evaluate_table, to_rows
from medprobe.report.page_data import PageData
from medprobe.tracking.headlines import headlines

WORDINGS = ["original", "passive", "short"]
KINDS = ["original", "brand"]
Answers = dict[tuple[str, str, str], str]  # (family, wording, kind) -> first answer
RIGHT = "right"
SCORING = Scoring(ScoreParams(), 0)


def make_members(answers: Answers) -> pd.DataFrame:
    """The answers as `read_members` gives them, all of one relation and run."""
    rows = [
        {
            "variant": "",
            "replicate": "",
            "query_id": f"{family}#{wording}#{kind}",
            "family_id": family,
            "wording": wording,
            "name_kind": kind,
            "subject": f"{family} {kind}",
            "subset": "families",
            "relation": "treats",
            "cluster": family,
            "answer": family,
            "first": first,
            "hit": float(first == RIGHT),
        }
        for (family, wording, kind), first in answers.items()
    ]
    return pd.DataFrame(rows)


def grid(letters: dict[str, str]) -> Answers:
    """A family's answers, `r` the right one, by wording and within it by kind of name."""
    places = [(wording, kind) for wording in WORDINGS for kind in KINDS]
    return {
        (family, *place): RIGHT if letter == "r" else letter
        for family, text in letters.items()
        for place, letter in zip(places, text, strict=True)
    }


families = st.dictionaries(
    st.sampled_from(["F1", "F2", "F3", "F4"]), st.text("rab", min_size=6, max_size=6), min_size=1
).map(grid)


def count_slowly(answers: Answers, family: str) -> dict[str, float]:
    """Agreement of all pairs, and of those that differ in one thing or in both."""
    pairs: dict[str, list[bool]] = {"all": [], "wording": [], "name": [], "both": []}
    members = [key for key in answers if key[0] == family]
    for a, b in combinations(members, 2):
        change = "both" if a[1] != b[1] and a[2] != b[2] else "wording" if a[1] != b[1] else "name"
        for kind in ("all", change):
            pairs[kind].append(answers[a] == answers[b])
    return {kind: sum(equal) / len(equal) for kind, equal in pairs.items()}


def test_a_family_counted_by_hand() -> None:
    # original: right a / passive: right right / short: b right. Four of six agree: six pairs
    rows = by_family(make_members(grid({"F": "rarrbr"}))).iloc[0]
    assert rows["consistency"] == pytest.approx(6 / 15)
    assert rows[["right_under_all", "right_under_most", "right_under_any"]].tolist() == [0, 1, 1]
    changes = by_change(make_members(grid({"F": "rarrbr"}))).set_index("subset")["consistency"]
    assert changes["families/change:name"] == pytest.approx(1 / 3)  # passive alone agrees
    assert changes["families/change:wording"] == pytest.approx(2 / 6)
    columns = by_column(make_members(grid({"F": "rarrbr"}))).set_index("subset")
    assert columns.loc["families/name:brand", "acc_at_1_change"] == pytest.approx(0)
    assert columns.loc["families/wording:passive", "acc_at_1_change"] == pytest.approx(1 / 2)
    assert columns.loc["families/wording:short", "consistency"] == 0


@settings(settings.get_profile("few"))
@given(answers=families)
def test_agreement_is_that_of_all_pairs(answers: Answers) -> None:
    members = make_members(answers)
    whole = by_family(members).set_index("query_id")["consistency"]
    parts = by_change(members).set_index(["query_id", "subset"])["consistency"]
    for family in whole.index:
        expected = count_slowly(answers, family)
        assert whole[family] == pytest.approx(expected.pop("all"))
        for change, value in expected.items():
            assert parts[family, f"families/change:{change}"] == pytest.approx(value)


@settings(settings.get_profile("few"))
@given(answers=families)
def test_each_wording_and_name_is_held_against_the_original(answers: Answers) -> None:
    columns = by_column(make_members(answers)).set_index(["query_id", "subset"])
    for family in {key[0] for key in answers}:
        for wording in WORDINGS[1:]:
            twins = [((family, wording, kind), (family, WORDINGS[0], kind)) for kind in KINDS]
            change = [(answers[a] == RIGHT) - (answers[b] == RIGHT) for a, b in twins]
            equal = [answers[a] == answers[b] for a, b in twins]
            row = columns.loc[(family, f"families/wording:{wording}")]
            assert row["acc_at_1_change"] == pytest.approx(sum(change) / 2)
            assert row["consistency"] == pytest.approx(sum(equal) / 2)


@settings(settings.get_profile("few"))
@given(answers=families, seed=st.randoms())
def test_the_order_of_rows_does_not_matter(answers: Answers, seed: object) -> None:
    members = make_members(answers)
    shuffled = members.sample(frac=1, random_state=seed.randrange(99))  # type: ignore[attr-defined]
    for table in (by_family, by_change, by_column):
        pd.testing.assert_frame_equal(table(members), table(shuffled))


@settings(settings.get_profile("few"))
@given(answers=families, letter=st.sampled_from([RIGHT, "a"]))
def test_equal_answers_are_consistent(answers: Answers, letter: str) -> None:
    members = make_members(dict.fromkeys(answers, letter))
    assert (by_family(members)["consistency"] == 1).all()
    assert (by_change(members)["consistency"] == 1).all()
    rows = by_family(members)
    assert (rows["right_under_all"] == rows["right_under_any"]).all()


def test_the_best_wording_is_chosen_on_other_clusters() -> None:
    # F1 and F2 are one half, F4 and F5 the other (CRC-32); each takes the other's best wording
    answers = grid({"F1": "rraaaa", "F2": "rraaaa", "F4": "aarraa", "F5": "aarraa"})
    rows = by_family(make_members(answers)).set_index("query_id")["acc_at_1_best_wording"]
    assert rows.to_dict() == {"F1": 0, "F2": 0, "F4": 0, "F5": 0}
    gain = by_family(make_members(answers)).set_index("query_id")["best_wording_gain"]
    assert gain.to_dict() == {"F1": -1, "F2": -1, "F4": 0, "F5": 0}
    rows = by_family(make_members(grid(dict.fromkeys(["F1", "F2", "F4", "F5"], "aarraa"))))
    assert (rows["acc_at_1_best_wording"] == 1).all()
    alone = by_family(make_members(grid({"F1": "rraaaa"})))  # no other half: the original wording
    assert alone["acc_at_1_best_wording"].tolist() == [1]


def test_a_change_is_tested_within_families_and_corrected_for_all_of_them() -> None:
    # the brand costs five of six facts all, and one two thirds; the short wording changes one fact
    letters = {**{f"F{i}": "rarara" for i in range(6)}, "F0": "rararr"}
    tests = change_tests(by_column(make_members(grid(letters))), SCORING).set_index("subset")
    p = tests["acc_at_1_change_p"]
    total, squares = 5 + 2 / 3, 5 + 4 / 9
    brand, short = 2 * stats.t.sf([total / squares**0.5, 1], 5)  # five degrees of freedom
    assert p["families/name:brand"] == pytest.approx(brand)
    assert p["families/wording:passive"] == 1
    assert p["families/wording:short"] == pytest.approx(short)  # one fact differs
    holm = tests["acc_at_1_change_p_holm"].to_dict()
    corrected = {"families/name:brand": 3 * brand, "families/wording:short": 2 * short}
    assert holm == pytest.approx({**p, **corrected})
    assert tests["n"].tolist() == [6, 6, 6]


def test_a_run_twice_is_no_more_evidence() -> None:
    columns = by_column(make_members(grid({f"F{i}": "rarara" for i in range(4)})))
    twice = pd.concat([columns, columns.assign(replicate="2")], ignore_index=True)
    pd.testing.assert_frame_equal(change_tests(columns, SCORING), change_tests(twice, SCORING))


def write_benchmark(folder: Path, *, families: bool = True) -> Scoring:
    """Two facts, of which each has two wordings, and the benchmark's own queries."""
    rows = []
    for subject in ("brena", "alba"):
        fact = ("toy", "treats", subject, f"S-{subject}", f"{subject} for [Y]", ["flu"], ["C1"])
        rows.append((subject, *fact, "full", "", "", ""))
        for wording in ("original", "short"):
            name = f"{subject}#{wording}#original"
            rows.append((name, *fact, "families", subject, wording, "original"))
    columns = [*QUERY_COLUMNS, "family_id", "wording", "name_kind"]
    table = pd.DataFrame(rows, columns=columns)
    if not families:
        table = table.loc[table["subset"] == "full", QUERY_COLUMNS]
    folder.mkdir()
    table.to_parquet(folder / "queries.parquet")
    names = pd.DataFrame([("flu", "C1", "", "full")], columns=CANDIDATE_COLUMNS)
    names.to_parquet(folder / "candidates.parquet")
    (folder / "about.json").write_text(json.dumps({"builder": "table", "normalise": "biolama"}))
    return Scoring(ScoreParams(bootstrap=20), 1, "subject_id")


def score(folder: Path, scoring: Scoring, answers: dict[str, str], **more: object) -> Scores:
    rows = [
        ("", "", query, 1, text, "", -1.0, text.endswith("flu")) for query, text in answers.items()
    ]
    path = folder.parent / "predictions.parquet"
    table = pd.DataFrame(rows, columns=PREDICTION_COLUMNS).assign(**more)
    write_predictions(table, path, "accuracy")
    return evaluate_table(path, folder, scoring).scores


def test_names_ahead_of_an_answer_say_what_is_right_and_not_what_agrees(tmp_path: Path) -> None:
    scoring = write_benchmark(tmp_path / "toy")
    answers = {"brena#original#original": "flu", "brena#short#original": "cold"}
    listed, ahead = (
        score(tmp_path / "toy", scoring, answers, **more)["default"]
        for more in ({}, {"ahead": True})
    )
    for subset, means in listed.items():
        for mean, numbers in means.items() if "/signal:" not in subset else ():
            expected = numbers.keys() - {"consistency", "subject_at_1"}
            assert ahead.get(subset, {}).get(mean, {}) == {name: numbers[name] for name in expected}
    tested = evaluate_table(tmp_path / "predictions.parquet", tmp_path / "toy", scoring).paired
    assert "right_under_all" in tested and "consistency" not in tested


def test_scores_of_a_benchmark_with_families(tmp_path: Path) -> None:
    scoring = write_benchmark(tmp_path / "toy")
    answers = {
        **{"brena": "flu", "brena#original#original": "flu", "brena#short#original": "The flu"},
        **{"alba": "flu", "alba#original#original": "flu"},  # nothing under the other wording
    }
    scores = score(tmp_path / "toy", scoring, answers)["default"]
    assert scores["full"]["macro"]["acc_at_1"]["value"] == 1
    assert "consistency" not in scores["full"]["macro"]
    assert scores["families"]["macro"]["consistency"]["value"] == 0.5  # equal by the rule
    assert scores["families"]["macro"]["acc_at_1"]["value"] == 0.75
    assert scores["families/wording:short"]["micro"]["acc_at_1_change"]["value"] == -0.5
    assert scores["families/wording:original"]["micro"]["acc_at_1"]["value"] == 1
    rows = list(to_rows({"toy": {"default": scores}}, "taught", "mask_average"))
    comparison = pd.DataFrame(rows, columns=COMPARISON)
    numbers = headlines(comparison, METADATA, edges=False)
    assert numbers["families/consistency"] == 0.5
    results = PageData(comparison, benchmarks={"toy": METADATA})
    text = "\n".join(line for block in section(results, "toy") for line in lines(block))
    assert "it answers 100.0 % of the facts right under at least one" in text
    assert "and 50.0 % under all of them" in text
    assert "| wording | short | 50.0 | -50.0 | 50.0 | 1 |" in text
    assert "best wording" in text
    tested = evaluate_table(tmp_path / "predictions.parquet", tmp_path / "toy", scoring).paired
    assert tested.loc[tested["query_id"] == "brena", "consistency"].dropna().tolist() == [1]


def test_a_benchmark_without_families_has_no_consistency(tmp_path: Path) -> None:
    scoring = write_benchmark(tmp_path / "toy", families=False)
    scores = score(tmp_path / "toy", scoring, {"brena": "flu", "alba": "flu"})["default"]
    assert [name for name in scores if not name.startswith("full/")] == ["full"]
    assert not {metric.name for metric in SCORER.METRICS} & {*scores["full"]["macro"]}
