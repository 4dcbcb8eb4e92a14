"""What a subject's letters alone find, and the queries whose answers they do not find."""

import os
from collections import Counter
from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.controls import compare_with_controls
from helpers.toy_project import METADATA
from medprobe.benchmarks import find
from medprobe.core.params import ScoreParams
from medprobe.core.places import BENCHMARKS, PARTS
from medprobe.core.tables import ANSWER_SPACE, DISTRACTOR, BenchmarkTables
from medprobe.library import probing
from medprobe.metrics import Scoring
from medprobe.metrics import letters as module
from medprobe.metrics.accuracy import SCORER
from medprobe.metrics.baselines import LETTERS, letters_values, score_baselines
from medprobe.metrics.letters import WITH_SUBJECT, letters, near_queries

RELEASED = Path(os.environ.get("MEDPROBE_RELEASED_DATA", ""), "medlama-released")
BLIND = "full/letters:blind"
SCORING = Scoring(ScoreParams(bootstrap=50), seed=1)
NAMES = ["gastric tissue", "ulcer of the skin", "gastric ulcer", "a vein", "lung"]


def tables(
    facts: list[tuple[str, str]], names: list[str], kind: str = "", **others: pd.DataFrame
) -> BenchmarkTables:
    """One query per subject and answer."""
    queries = pd.DataFrame(
        {
            "query_id": [f"q{number}" for number in range(len(facts))],
            "benchmark": "toy",
            "relation": "has_site",
            "subject": [subject for subject, _ in facts],
            "subject_id": [subject for subject, _ in facts],
            "prompt": "the site of lung is [Y] .",
            "answers": [[answer] for _, answer in facts],
            "answer_ids": [[answer] for _, answer in facts],
            "subset": "full",
        }
    )
    candidates = pd.DataFrame({"name": names, "id": names, "type": kind, "subset": "full"})
    return BenchmarkTables(queries, candidates, others=others)


def listed(benchmark: BenchmarkTables, variant: str = "") -> list[str]:
    table = letters(benchmark)
    return table.loc[table["variant"] == variant, "prediction"].tolist()


def test_names_are_ranked_by_their_letters_and_equal_ones_by_name() -> None:
    table = letters(tables([("Gastric Ulcer", "gastric tissue")], NAMES))
    assert table["prediction"].tolist() == [
        *("gastric ulcer", "gastric tissue", "ulcer of the skin", "a vein", "lung")
    ]
    assert table["score"].iloc[0] == 1 and (table["score"].tail(2) == 0).all()
    assert table["hit"].tolist() == [False, True, False, False, False]


def test_the_subject_itself_is_left_out_unless_it_is_an_answer() -> None:
    benchmark = tables([("gastric ulcer", "gastric tissue")], NAMES)
    others = ["gastric tissue", "ulcer of the skin", "a vein", "lung"]
    assert listed(benchmark) == others
    assert listed(benchmark, WITH_SUBJECT) == ["gastric ulcer", *others]
    benchmark = tables([("gastric ulcer", "gastric ulcer")], NAMES)
    assert listed(benchmark) == listed(benchmark, WITH_SUBJECT) == ["gastric ulcer", *others]


def test_names_are_those_that_methods_rank() -> None:
    """Of a relation's answer space or type, and no distractors."""
    facts = [("gastric ulcer", "lung")]
    space = pd.DataFrame({"relation": "has_site", "name": ["lung", "gastric tissue"]})
    assert listed(tables(facts, NAMES, **{ANSWER_SPACE: space})) == ["gastric tissue", "lung"]
    benchmark = tables(facts, NAMES)
    benchmark.candidates.loc[:2, "type"] = ["has_site", "has_site", DISTRACTOR]
    assert listed(benchmark) == ["gastric tissue", "ulcer of the skin"]


def test_a_query_without_a_subject_is_compared_by_its_prompt() -> None:
    assert listed(tables([("", "lung")], NAMES))[0] == "lung"


def cosine(first: str, second: str, names: list[str]) -> float:
    """By hand, of one word each: tf-idf as scikit-learn defines it."""

    def runs(text: str) -> Counter[str]:
        padded = f" {text.lower()} "
        return Counter(padded[at : at + n] for n in (3, 4) for at in range(len(padded) - n + 1))

    def weights(text: str) -> dict[str, float]:
        holders = {run: sum(run in runs(name) for name in names) for run in runs(text)}
        idf = {run: log((1 + len(names)) / (1 + n)) + 1 for run, n in holders.items() if n}
        found = {run: runs(text)[run] * idf[run] for run in idf}
        length = sqrt(sum(x * x for x in found.values())) or 1
        return {run: x / length for run, x in found.items()}

    a, b = weights(first), weights(second)
    return sum(x * b.get(run, 0.0) for run, x in a.items())


WORDS = st.text("abcAB", min_size=1, max_size=6)


@settings(settings.get_profile("few"))
@given(st.lists(WORDS, min_size=1, max_size=40, unique=True), WORDS, st.data())
def test_near_are_the_nearest_half_that_share_letters(
    names: list[str], subject: str, data: st.DataObject
) -> None:
    answer = data.draw(st.sampled_from(names))
    table = letters(tables([(subject, answer)], names))
    table = table[table["variant"] == (WITH_SUBJECT if subject in names else "")]
    cosines = {name: round(cosine(subject, name, names), 9) for name in names}
    order = sorted(names, key=lambda name: (-cosines[name], name))
    tied = sum(cosines[name] == cosines[order[9]] for name in order[10:15])
    assert table["prediction"].tolist() == order[: 10 + tied]
    assert table["score"].tolist() == pytest.approx([cosines[name] for name in order[: 10 + tied]])
    near = answer in order[: len(names) // 2] and cosines[answer] > 0
    assert table["near"].tolist() == [near] * len(table)


def test_of_many_names_a_hundred_are_near() -> None:
    """The names differ from the subject in ever more letters, so that none are equal."""
    names = ["ab" * 300 + "cd" * number for number in range(1, 251)]
    facts = [("ab" * 300, name) for name in names]
    near = letters(tables(facts, names)).groupby("query_id", sort=False)["near"].first()
    assert near.tolist() == [True] * 100 + [False] * 150


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark of two queries that letters find, and two that they do not."""
    monkeypatch.chdir(tmp_path)
    facts = [("gastric", "gastric tissue"), ("skin", "ulcer of the skin")]
    facts += [("asthma", "lung"), ("phlebitis", "a vein")]
    tables(facts, NAMES).write(BENCHMARKS / "toy")
    return BENCHMARKS / "toy"


def test_models_and_baselines_are_scored_on_queries_that_letters_do_not_find(project: Path) -> None:
    benchmark = BenchmarkTables.read(project)
    assert near_queries(benchmark) == {"q0", "q1"}
    scores = score_baselines(project, SCORING)
    scores["model"] = SCORER.score(letters(benchmark), benchmark, SCORING)
    assert {*scores} == {"chance", "letters", "majority", "model", "random_answer"}
    values = {
        (name, subset): of_name["default"][subset]["micro"]["acc_at_1"]["value"]
        for name, of_name in scores.items()
        for subset in ("full", BLIND)
    }
    assert (values[LETTERS, "full"], values[LETTERS, BLIND]) == (0.25, 0)
    assert {of_name["default"][BLIND]["micro"]["acc_at_1"]["n"] for of_name in scores.values()} == {
        2
    }


def test_only_a_model_that_knows_is_above_its_control_where_letters_fail() -> None:
    """Both use the subject. Of 40 subjects half have a word of their answer in their name."""
    draw = np.random.default_rng(0)
    words = ["".join(draw.choice([*"abcdefghijklmnopqrstuvwxyz"], 6)) for _ in range(80)]
    answers = [f"{word} tissue" for word in words[:40]]
    subjects = [f"{word} {other}" for word, other in zip(words[:20], words[40:60], strict=True)]
    benchmark = tables([*zip([*subjects, *words[60:80]], answers, strict=True)], answers)
    spelt = letters(benchmark)
    known = spelt.assign(prediction=spelt["query_id"].str[1:].astype(int).map(answers.__getitem__))
    known = known[known["rank"] == 1].assign(hit=True)
    p = {}
    for name, predictions in (("spelt", spelt), ("known", known)):
        found = probing.score(predictions, benchmark, "accuracy", SCORING)
        tests = compare_with_controls(found, METADATA, SCORING.params, ("m", name))
        rows = tests[tests["metric"] == "acc_at_1"].set_index("subset")["p_holm"]
        p |= {(name, subset): rows[subset] for subset in ("full", BLIND)}
        blind = tests[(tests["subset"] == BLIND) & (tests["metric"] == "acc_at_1")]
        assert blind["n"].tolist() == [20]
        assert blind["difference"].iloc[0] == pytest.approx(float(name == "known"), abs=0.1)
    assert max(p["spelt", "full"], p["known", "full"], p["known", BLIND]) < 0.01
    assert p["spelt", BLIND] > 0.05


def test_the_values_of_queries_are_those_of_the_score(project: Path) -> None:
    values = letters_values(BenchmarkTables.read(project), SCORING)
    assert {"variant", "query_id", "subset", "cluster", "answer", "weight"} <= {*values}
    scores = score_baselines(project, SCORING)[LETTERS]["default"]["full"]["macro"]
    for metric in ("acc_at_1", "acc_at_5", "acc_at_10"):
        mean = np.average(values[metric], weights=values["weight"])
        assert mean == pytest.approx(scores[metric]["value"])


def test_a_project_keeps_the_ranking_until_its_benchmark_changes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = module.read_letters(BenchmarkTables.read(project))
    assert module.letters_part(project).is_file()
    monkeypatch.setattr(module, "letters", None)
    pd.testing.assert_frame_equal(module.read_letters(BenchmarkTables.read(project)), first)
    tables([("gastric ulcer", "lung")], NAMES).write(project)
    with pytest.raises(TypeError):  # it is ranked again
        module.read_letters(BenchmarkTables.read(project))


def test_outside_a_project_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tables([("gastric ulcer", "lung")], NAMES).write(tmp_path / "elsewhere")
    assert near_queries(BenchmarkTables.read(tmp_path / "elsewhere")) == set()
    assert not PARTS.exists()


@pytest.mark.skipif(not RELEASED.is_dir(), reason="MEDPROBE_RELEASED_DATA names no such folder")
def test_letters_of_released_medlama(tmp_path: Path) -> None:
    (tmp_path / "medlama").mkdir()
    for path in [*RELEASED.glob("2021AA/*.csv"), RELEASED / "prompts.csv"]:
        (tmp_path / "medlama" / path.name).symlink_to(path.resolve())
    builder = find("medlama_released")
    benchmark = builder.build(tmp_path, builder.settings(), 2021)
    table = letters(benchmark)
    for subset, variant, expected in (
        ("full", "", [5.26, 10.42, 13.07]),
        ("hard", "", [1.19, 3.38, 5.27]),
        ("full", WITH_SUBJECT, [0.94, 9.53, 12.63]),
        ("hard", WITH_SUBJECT, [0.0, 2.95, 4.98]),
    ):
        queries = benchmark.queries[benchmark.queries["subset"] == subset]
        of_variant, accuracies = table[table["variant"] == variant], []
        for k in (1, 5, 10):
            hits = {*of_variant.loc[of_variant["hit"] & (of_variant["rank"] <= k), "query_id"]}
            right = queries["query_id"].isin(hits)
            accuracies.append(100 * right.groupby(queries["relation"]).mean().mean())
        assert accuracies == pytest.approx(expected, abs=0.005)
