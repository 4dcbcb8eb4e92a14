"""acc@k, its shares by part, and its means, on examples counted by hand."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.toy_project import CANDIDATES, predictions, queries, query, ranked
from medprobe.core.errors import BadInput
from medprobe.core.params import ScoreParams
from medprobe.core.plugins import find_plugins
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Scoring, catalog, find
from medprobe.metrics.accuracy import by_answer, share_ties, values
from medprobe.metrics.splits import bins, parts, times_read
from medprobe.metrics.summary import summarise

HEAD = "subject_cui,relation,object_cui,times\n"
FEW = Scoring(ScoreParams(bootstrap=50), seed=1)


def test_hits_count_from_their_rank_on() -> None:
    query_table = queries(query(0), query(1), query(2), query(3))
    table = predictions(
        ranked("full-may_treat-0", "x........."),
        ranked("full-may_treat-1", "....x....."),
        ranked("full-may_treat-2", ".........x"),
    )  # query 3 has no prediction: it is wrong
    got = values(table, query_table).set_index("query_id")
    assert got["acc_at_1"].tolist() == [1, 0, 0, 0]
    assert got["acc_at_5"].tolist() == [1, 1, 0, 0]
    assert got["acc_at_10"].tolist() == [1, 1, 1, 0]


def test_a_subset_that_was_not_probed_is_left_out() -> None:
    query_table = queries(query(0), query(0, subset="hard"))
    got = values(predictions(ranked("full-may_treat-0", "x")), query_table)
    assert got["subset"].tolist() == ["full"]


def test_a_prediction_of_another_benchmark_is_refused() -> None:
    with pytest.raises(BadInput, match=r"query elsewhere: .*not in the benchmark"):
        values(predictions(ranked("elsewhere", "x")), queries(query(0)))


def test_the_subject_at_rank_one_is_counted() -> None:
    table = predictions(ranked("full-may_treat-0", "..."), ranked("full-may_treat-1", "..."))
    table.loc[0, "prediction"] = "drug 0"
    table.loc[4, "prediction"] = "drug 1"  # at rank 2
    got = values(table, queries(query(0), query(1)))
    assert got["subject_at_1"].tolist() == [1, 0]


def test_rouge_l_is_that_of_the_first_text() -> None:
    """Of texts that are written; what is written for no query is nothing."""
    table = predictions(ranked("full-may_treat-0", ".x"), ranked("full-may_treat-1", ".."))
    table = table.assign(rouge_l=[0.5, 1.0, 0.25, 0.75])
    got = values(table, queries(query(0), query(1), query(2))).set_index("query_id")
    assert got["rouge_l"].tolist() == [0.5, 0.25, 0.0]


def tied(table: pd.DataFrame, k: int) -> float:
    """The chance of a hit among the first k of the only query of a table."""
    [chance] = share_ties(table, np.zeros(len(table), int), 1, k)
    return float(chance)


def test_ties_share_the_hit() -> None:
    table = predictions(ranked("q", ".x.."))
    table["score"] = [3.0, 3.0, 3.0, 1.0]
    assert tied(table, 1) == pytest.approx(1 / 3)
    assert tied(table, 2) == pytest.approx(2 / 3)
    assert tied(table, 3) == pytest.approx(1.0)


def test_what_equals_the_tenth_shares_its_place() -> None:
    """The last of ten places is one of three names', and the hit is one of them."""
    table = predictions(ranked("full-may_treat-0", "..........x."))
    table.loc[9:, "score"] = table["score"][9]
    (row,) = values(table, queries(query(0))).to_dict("records")
    assert (row["acc_at_10"], row["acc_at_10_tied"]) == (0, pytest.approx(1 / 3))
    assert row["acc_at_5_tied"] == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6), st.data())
def test_ties_equal_the_mean_over_all_orders(
    marks: list[tuple[int, bool]], data: st.DataObject
) -> None:
    from itertools import permutations

    k = data.draw(st.integers(1, len(marks)))
    marks = sorted(marks, key=lambda mark: -mark[0])
    table = predictions(ranked("q", "".join("x" if hit else "." for _, hit in marks)))
    table["score"] = [float(score) for score, _ in marks]
    orders = [
        order for order in permutations(marks) if list(order) == sorted(order, key=lambda m: -m[0])
    ]
    expected = np.mean([any(hit for _, hit in order[:k]) for order in orders])
    assert tied(table, k) == pytest.approx(expected)


def test_macro_is_the_mean_of_relations_and_micro_of_queries() -> None:
    query_table = queries(query(0), query(1), query(2), query(3, "may_prevent"))
    table = predictions(ranked("full-may_treat-0", "x"), ranked("full-may_prevent-3", "x"))
    scores = summarise(values(table, query_table), FEW)["default"]["full"]
    assert scores["may_treat"]["acc_at_1"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert scores["macro"]["acc_at_1"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert scores["micro"]["acc_at_1"] | {"low": 0, "high": 0} == {
        "value": 0.5,
        "low": 0,
        "high": 0,
        "n": 4,
    }


def test_replicates_are_averaged_with_their_deviation() -> None:
    query_table = queries(query(0), query(1))
    table = predictions(
        ranked("full-may_treat-0", "x", "", "set-0"),
        ranked("full-may_treat-1", "x", "", "set-0"),
        ranked("full-may_treat-0", ".", "", "set-1"),
    )
    got = summarise(values(table, query_table), FEW)["default"]["full"]["macro"]["acc_at_1"]
    assert got["value"] == 0.5
    assert got["std"] == pytest.approx(np.std([1, 0], ddof=1), abs=1e-6)


def test_intervals_draw_replicates_too() -> None:
    """One set hits all, the other nothing: no query tells that, but another draw of sets does."""
    query_table = queries(*map(query, range(4)))
    scoring = Scoring(ScoreParams(bootstrap=200), seed=1)

    def interval(**variants: str) -> tuple[float, float]:
        rows = [
            ranked(f"full-may_treat-{i}", name, "", replicate)
            for replicate, name in variants.items()
            for i in range(4)
        ]
        got = summarise(values(predictions(*rows), query_table), scoring)["default"]["full"]
        return got["micro"]["acc_at_1"]["low"], got["macro"]["acc_at_1"]["high"]

    low, high = interval(one="x", other=".")
    assert low < 0.1 and high > 0.9  # of half of the hits
    assert interval(one="x", other="x") == interval(one="x")


def answered(*answers: int, relation: str = "may_treat") -> pd.DataFrame:
    """Queries of one relation by the numbers of their answers."""
    query_table = queries(*(query(i, relation, answer=answer) for i, answer in enumerate(answers)))
    answers = relation + " " + query_table["answer_ids"].str[0]
    return query_table.assign(first_answer=answers, answer_cluster=answers, answer=answers)


def test_by_answer_a_common_answer_counts_no_more_than_a_rare_one() -> None:
    """Three of four queries have one answer, and two of these are right."""
    query_rows = answered(0, 0, 0, 1)
    table = predictions(ranked("full-may_treat-0", "x"), ranked("full-may_treat-1", ".x"))
    got = by_answer(values(table, query_rows), query_rows).set_index("query_id")
    assert got["acc_at_1_by_answer"].to_dict() == {
        "may_treat C0": pytest.approx(1 / 3),
        "may_treat C1": 0,
    }
    assert got["acc_at_10_by_answer"].tolist() == pytest.approx([2 / 3, 0])


def test_by_answer_relations_and_replicates_are_averaged(tmp_path: Path) -> None:
    """may_treat: answers of 1/2 and 0 in one replicate, 1/2 and 1 in the other; may_prevent: 1."""
    query_rows = pd.concat([answered(0, 0, 1), answered(2, relation="may_prevent")])
    query_rows = query_rows.drop(columns=["cluster", "answer", "first_answer", "answer_cluster"])
    benchmark = BenchmarkTables(query_rows, CANDIDATES)
    table = predictions(
        *(
            ranked(f"full-{name}", "x", "", replicate)
            for replicate, hits in {"0": "0", "1": "02"}.items()
            for name in [*(f"may_treat-{i}" for i in hits), "may_prevent-0"]
        )
    )
    scores = find("accuracy").score(table, benchmark, FEW)["default"]["full"]
    by_name = {name: numbers["acc_at_1_by_answer"] for name, numbers in scores.items()}
    assert by_name["may_treat"]["value"] == pytest.approx((1 / 4 + 3 / 4) / 2)
    assert by_name["may_treat"]["std"] == pytest.approx(np.std([1 / 4, 3 / 4], ddof=1), abs=1e-6)
    assert by_name["may_treat"]["n"] == 2  # answers
    assert by_name["macro"]["value"] == pytest.approx((1 / 2 + 1) / 2)
    assert by_name["micro"]["n"] == 3
    assert "low" not in by_name["may_treat"]  # two answers
    assert by_name["micro"]["low"] < by_name["micro"]["value"] < by_name["micro"]["high"]


@settings(settings.get_profile("few"))
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_by_answer_is_a_mean_of_means(rows: list[tuple[int, bool]]) -> None:
    query_rows = answered(*(answer for answer, _ in rows))
    table = predictions(
        *(ranked(f"full-may_treat-{i}", "x" if hit else ".") for i, (_, hit) in enumerate(rows))
    )
    expected = [
        np.mean([hit for other, hit in rows if other == answer]) for answer in {a for a, _ in rows}
    ]
    macro = summarise(by_answer(values(table, query_rows), query_rows), FEW)["default"]["full"][
        "macro"
    ]
    assert macro["acc_at_1_by_answer"]["value"] == pytest.approx(np.mean(expected), abs=1e-6)


def test_prompts_without_their_subject_are_a_part(tmp_path: Path) -> None:
    query_table = queries(query(0), query(1), query(0, subset="hard"))
    assert not parts(query_table)["part"].str.startswith("subject:").any()
    query_table.loc[1, "prompt"] = "He died in [Y] ."
    by_query = parts(query_table).set_index("query_id")["part"]
    split = by_query[by_query.str.startswith("subject:")]
    assert split.to_dict() == {
        "full-may_treat-0": "subject:named",
        "full-may_treat-1": "subject:absent",
    }  # `hard` has none of the other kind
    benchmark = BenchmarkTables(query_table, CANDIDATES)
    table = predictions(ranked("full-may_treat-0", "x"), ranked("full-may_treat-1", "."))
    scores = find("accuracy").score(table, benchmark, FEW)["default"]
    assert scores["full/subject:named"]["micro"]["acc_at_1"]["value"] == 1
    assert scores["full/subject:absent"]["micro"]["acc_at_1"]["value"] == 0


def test_answer_lengths_and_times_read_are_parts(tmp_path: Path) -> None:
    assert bins([1, 10, 10.5, 41], (0, 10, 20, 30, 40)) == ["1-10", "1-10", "11-20", "over-40"]
    query_table = queries(query(0, answer=0), query(1, answer=4))
    facts = tmp_path / "facts.csv"
    facts.write_text(
        "subject_cui,subject,relation,object_cui,object,times\n"
        "S0,drug 0,may_treat,C0,alba,3\nS0,drug 0,may_treat,C1,brena,9\n"
        "S1,drug 1,may_prevent,C4,x,1\n"  # another relation: not this query's fact
    )
    subset_parts = parts(query_table, facts)
    of_first = subset_parts[subset_parts["query_id"] == "full-may_treat-0"]["part"].tolist()
    of_second = subset_parts[subset_parts["query_id"] == "full-may_treat-1"]["part"].tolist()
    assert of_first == ["answer-length:1-10", "answer:common", "read:3-4"]
    assert of_second == ["answer-length:21-30", "answer:common"]


def test_parts_are_scored_beside_their_subset(tmp_path: Path) -> None:
    query_table = queries(query(0, answer=0), query(1, answer=4))
    benchmark = BenchmarkTables(query_table, CANDIDATES)
    table = predictions(ranked("full-may_treat-0", "x"))
    scores = find("accuracy").score(table, benchmark, FEW)["default"]
    assert scores["full/answer-length:1-10"]["micro"]["acc_at_1"]["value"] == 1
    assert scores["full/answer-length:21-30"]["micro"]["acc_at_1"]["value"] == 0
    assert set(scores["full/answer-length:1-10"]) == {"micro"}


def test_ranks_of_answers_become_metrics() -> None:
    query_table = queries(query(0), query(1))
    table = predictions(ranked("full-may_treat-0", "x.."), ranked("full-may_treat-1", "..."))
    table["answer_rank"] = [1, 1, 1, 8, 8, 8]
    got = values(table, query_table)
    assert got["reciprocal_rank"].tolist() == [1, 1 / 8]
    assert got["names_ahead"].tolist() == [0, 7]
    without = values(table.drop(columns="answer_rank"), query_table)
    assert "reciprocal_rank" not in without and "names_ahead" not in without


def test_a_query_without_an_answer_is_unanswered_where_answers_are_free() -> None:
    query_table = queries(query(0), query(1))
    table = predictions(ranked("full-may_treat-0", "x"), ranked("full-may_treat-1", "."))
    assert "unanswered" not in values(table, query_table)
    free = table.assign(unanswered=["", "no name"])
    free.loc[1, "prediction"] = ""
    assert values(free, query_table)["unanswered"].tolist() == [0, 1]
    assert values(free.head(1), query_table)["unanswered"].tolist() == [0, 1]


def test_every_metric_says_direction_range_and_source() -> None:
    query_table = answered(0)
    table = predictions(ranked("full-may_treat-0", "x")).assign(
        answer_rank=1, unanswered="", rouge_l=1.0
    )
    by_query = values(table, query_table)
    all_values = [*by_query, *by_answer(by_query, query_table)]
    metrics = catalog()
    assert {name for name in all_values if name in metrics} == {
        metric.name for metric in find("accuracy").METRICS
    }
    for name, metric in metrics.items():
        assert metric.name == name and metric.title
        assert metric.better in ("higher", "lower", "neither")
        assert metric.low < metric.high
        assert metric.source


def test_scores_do_not_depend_on_the_order_of_rows() -> None:
    query_table = queries(*(query(i) for i in range(6)))
    table = predictions(*(ranked(f"full-may_treat-{i}", "x." if i % 2 else "..") for i in range(6)))
    shuffled = table.sample(frac=1, random_state=3)
    turned = query_table.iloc[::-1].reset_index(drop=True)
    first, second = (
        summarise(values(*pair), FEW) for pair in ((table, query_table), (shuffled, turned))
    )
    assert first == second


def test_a_scorer_is_found_by_its_name_alone() -> None:
    code = (
        "import sys; from medprobe import metrics; metrics.find('perplexity'); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    scorers = {plugin.module: name for name, plugin in find_plugins("metrics").items()}
    assert [scorers[name] for name in process.stdout.split() if name in scorers] == ["perplexity"]
    with pytest.raises(BadInput, match=r"no scorer 'accurcy' .did you mean 'accuracy'"):
        find("accurcy")


def test_scorers_need_no_library_of_builders() -> None:
    code = "import sys; from medprobe import metrics; metrics.catalog(); print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert not {"polars", "ahocorasick", "great_expectations", "mlflow", "dvc"} & {*loaded}


@pytest.mark.parametrize(
    "content", ["", "a,b\n1,2\n", f"{HEAD}C1,r,C2,many\n", f"{HEAD}é,r,C2,1\n"]
)
def test_facts_that_are_no_facts_are_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(BadInput, match=r"facts\.csv: not the facts that a model has read"):
        times_read(path, pd.DataFrame([("C1", "r", "C2")]))
    path.write_text(f"{HEAD}C1,r,C2,3\n")
    assert times_read(path, pd.DataFrame([("C1", "r", "C2"), ("C1", "r", "C3")]))[0] == 3
