"""DisKnE's part of the page: its tables in the paper's form, and the training curves."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from helpers.render_helpers import check_snapshot
from helpers.toy_project import METADATA, query
from medprobe.core.tables import PREDICTION_COLUMNS, QUERY_COLUMNS, write_predictions
from medprobe.metrics.results import COMPARISON
from medprobe.papers.diskne.benchmarks import diskne
from medprobe.papers.diskne.sections import f1
from medprobe.report.blocks import Cell, Choice, drawings
from medprobe.report.page_data import PageData, systems
from medprobe.report.sections import SingleResult
from medprobe.report.sections.models import breakdowns
from report.test_queries import answers, benchmark, last_answers


def curves(predictions: Path) -> pd.DataFrame:
    """The losses beside two models' prediction tables, of which one has any."""
    paths = (predictions / model / "classifier/diskne.parquet" for model in ("mine", "other"))
    return f1.table(systems(paths))


def test_a_run_has_the_mean_losses_by_epoch(tmp_path: Path) -> None:
    rows = ["variant,epoch,train,validation", ",1,0.8,0.9", ",1,0.6,0.7", ",2,0.4,0.5"]
    (tmp_path / "diskne-curves.csv").write_text("\n".join(rows))
    path = tmp_path / "diskne.parquet"
    assert f1.series(SingleResult(pd.DataFrame(), METADATA, path, tmp_path, names=False)) == {
        "train loss/default": [(1, pytest.approx(0.7)), (2, 0.4)],
        "validation loss/default": [(1, pytest.approx(0.8)), (2, 0.5)],
    }


def results(tmp_path: Path) -> PageData:
    """Two models on two categories; `mine` is one of the paper's, fine-tuned in two epochs."""
    values = {"macro": 0.5, "weighted": 0.25, "stroke": 0.125, "gout": 0.75}
    rows = [
        ("diskne", category, relation, model, method, metric, value, 0.0, 1.0, 9, None)
        for category in ("symptoms", "tests")
        for relation, value in values.items()
        for model, method in (("mine", "classifier"), ("other", "classifier:frozen"))
        for metric in ("f1", "f1_as_released", "top_1")
    ]
    rows.append(("facts", "full", "macro", "mine", "fill_mask", "acc_at_1", 0.5, 0.0, 1.0, 9, None))
    epochs = [("", f"seed-{n}", "C1", 1 + n // 3, 0.1 * n, 1.0) for n in range(6)]
    for model, curve in (("mine", epochs), ("other", [])):  # whose variants train nothing
        path = tmp_path / model / "classifier/diskne-curves.csv"
        path.parent.mkdir(parents=True)
        columns = ["variant", "replicate", "target", "epoch", "train", "validation"]
        pd.DataFrame(curve, columns=columns).to_csv(path, index=False)
    return PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"diskne": diskne.METADATA, "facts": METADATA},
        builders={"diskne": "diskne_released", "facts": "medlama"},
        tables={"diskne-curves": curves(tmp_path)},
        published={"mine": "BERT-base-cased"},
    )


def test_means_stand_by_category_and_diseases_are_folded(tmp_path: Path) -> None:
    report = results(tmp_path)
    check_snapshot("diskne", f1.section(report, "diskne"))


def test_many_models_are_rows_the_best_first(tmp_path: Path) -> None:
    report = results(tmp_path)
    rows = report.comparison
    means = rows[(rows["model"] == "mine") & (rows["metric"] == "f1")]
    copies = [
        means.assign(model=f"model-{n}", value=means["value"] + n / 100) for n in range(f1.WIDE)
    ]
    parts = f1.section(replace(report, comparison=pd.concat([means, *copies])), "diskne")
    choice = parts[0].blocks[0]
    assert isinstance(choice, Choice)
    table = choice.tables["macro"]
    assert [*table.heads][:3] == ["model", "category", "method"]
    values = [row[-1].sort for row in table.rows if isinstance(row[-1], Cell)]
    assert len(values) == len(table.rows) and values == sorted(values, reverse=True)


def test_curves_are_drawn_by_model(tmp_path: Path) -> None:
    report = results(tmp_path)
    assert report.tables["diskne-curves"].round(9).to_dict("list") == {
        "model": ["mine"] * 4,
        "variant": [""] * 4,
        "loss": ["train", "train", "validation", "validation"],
        "epoch": [1, 2, 1, 2],
        "value": [0.1, 0.4, 1.0, 1.0],
        "low": [0.05, 0.35, 1.0, 1.0],
        "high": [0.15, 0.45, 1.0, 1.0],
        "n": [3, 3, 3, 3],
    }
    parts = f1.section(report, "diskne")
    assert list(drawings(parts)) == ["diskne-curves-mine.svg"]


def test_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    report = results(tmp_path)
    assert f1.section(report, "facts") == []
    assert curves(tmp_path / "nowhere").empty
    report.tables.clear()
    assert "How the classifiers learn" not in {part.title for part in f1.section(report, "diskne")}


def test_hundreds_of_diseases_are_no_relations(tmp_path: Path) -> None:
    report = results(tmp_path)
    assert "relation" not in breakdowns(report, "diskne", "full")


def test_an_example_is_shown_with_its_labels(tmp_path: Path) -> None:
    examples = pd.DataFrame(
        {
            "example_id": ["1", "1-similar", "2"],
            "category": "signs",
            "label": [1, 0, 1],
            "cui": ["C1", "C2", "C1"],
            "hypothesis": ["gout", "flu", "gout"],
            "premise": "The toe hurts.",
            "full_hypothesis": ["It is gout.", "It is flu.", "It is gout."],
        }
    )
    splits = examples[["example_id"]].assign(target="C1", split="test")
    tables = {"examples": examples, "splits": splits}
    folder = benchmark(tmp_path, pd.DataFrame([query(1)], columns=QUERY_COLUMNS), tables)
    example_queries = (("1", True), ("1-similar", False))
    rows = [
        ("", "seed-0", query_id, 1, "1", "C1", 0.9, right) for query_id, right in example_queries
    ]
    path = tmp_path / "model" / "classifier" / "facts.parquet"
    write_predictions(pd.DataFrame(rows, columns=PREDICTION_COLUMNS), path, "f1")
    query_answers = answers(folder, [path], text=True)
    assert query_answers is not None and query_answers.content["best"] == ["10"]
    assert query_answers.content["queries"][1] == [
        *("1-similar", "signs", "C1", "flu", "The toe hurts. It is flu."),
        ["no"],
    ]
    assert last_answers(query_answers) == [
        [["yes, 0.90"], [1]],
        [["yes, 0.90"], []],
    ]  # 2 was not asked
    hidden = answers(folder, [path], text=False)
    assert hidden is not None and hidden.content["queries"][1][3:] == ["C2", "", ["no"]]
    assert last_answers(hidden) == last_answers(query_answers)
