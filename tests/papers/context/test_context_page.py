"""From contexts to the page: scores, tables, drawings, and no text of any note."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.render_helpers import check_snapshot, html, lines
from helpers.tested import made_tests
from helpers.toy_project import METADATA, query
from medprobe import metrics
from medprobe.core.answers import with_hits
from medprobe.core.params import EngineParams, ScoreParams
from medprobe.core.tables import (
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    write_predictions,
)
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import COMPARISON, evaluate_table, to_rows
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.papers.context.benchmarks import context
from medprobe.papers.context.drawings import rank_table
from medprobe.papers.context.methods.rank_change import COPY, RankChange
from medprobe.papers.context.sections.ucm import section
from medprobe.report.blocks import drawings
from medprobe.report.page_data import PageData, systems
from medprobe.report.sections import SingleResult, draw_result, published
from papers.context.test_context import sample
from report.test_queries import answers, benchmark, last_answers
from report.test_sentences import results as results_of
from report.test_sentences import values

MODELS = ("one", "other")
CENTRES = ("target", "negative")
MEANS = ("macro", "micro")
Outputs = tuple[Path, BenchmarkTables, dict[str, Scores]]

PLAIN = [name for name in SIGNIFICANCE if "_relation" not in name]


def predicted(benchmark: BenchmarkTables, seed: int) -> pd.DataFrame:
    """Predictions of a model that only copies, and of the control."""
    tables = []
    for variant, draw in (("", seed), (COPY, 0)):
        settings = RankChange.Settings()
        method = RankChange(Path(), settings, EngineParams(device="cpu"), draw)
        for task in method.tasks(benchmark, 10):
            tables.append(method.predict(task, COPY).assign(variant=variant))
    return with_hits(pd.concat(tables, ignore_index=True), benchmark)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """Two models' predictions on the sample world's contexts, and their scores."""
    folder = tmp_path_factory.mktemp("page")
    data, _, settings = sample(folder)
    few = settings.model_copy(update={"triples": 25, "documents": 1})
    benchmark = context.build(data, few, seed=1)
    benchmark.write(folder / "benchmarks" / "context")
    scores = {}
    scoring = Scoring(ScoreParams(bootstrap=200), 2021, context.METADATA.cluster)
    for seed, model in enumerate(MODELS, start=1):
        path = folder / "predictions" / model / "rank_change" / "context.parquet"
        table = predicted(benchmark, seed)
        write_predictions(table, path, RankChange.METRIC)
        scores[model] = metrics.find("ucm").score(table, benchmark, scoring)
    return folder, benchmark, scores


@pytest.fixture(scope="module")
def report(outputs: Outputs) -> PageData:
    """Their results, as the page has them."""
    rows = [row for model in MODELS for row in of_model(outputs, model)]
    rows.append(
        ("medlama", "full", "macro", "one", "fill_mask", "acc_at_1", 0.5, 0.4, 0.6, 9, None)
    )
    return PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"context": context.METADATA, "medlama": METADATA},
        tables={"context-trajectory": moves(outputs)},
        significance=paired_tests(outputs),
    )


def paired_tests(outputs: Outputs) -> pd.DataFrame:
    """The paired tests of all models and their controls."""
    folder, _, _ = outputs
    scoring = Scoring(ScoreParams(bootstrap=50), 2021, context.METADATA.cluster)
    systems = {}
    for model in MODELS:
        path = folder / "predictions" / model / "rank_change" / "context.parquet"
        table = evaluate_table(path, folder / "benchmarks" / "context", scoring).paired
        for variant, rows in table.groupby("variant"):
            name = f"rank_change:{variant}" if variant else "rank_change"
            systems[model, name] = rows.assign(replicate="")
    tests = made_tests(systems, "understand", "target", contrasts=[("target", "negative")])
    return tests.assign(benchmark="context")


def of_model(outputs: Outputs, model: str) -> list[tuple]:
    """A model's rows of the comparison."""
    return list(to_rows({"context": outputs[2][model]}, model, "rank_change"))


def moves(outputs: Outputs, names: bool = False) -> pd.DataFrame:
    folder, _, _ = outputs
    paths = folder.glob("predictions/*/rank_change/context.parquet")
    return rank_table(systems(paths), folder / "benchmarks" / "context", names)


def test_the_control_cannot_separate_target_from_negative_target(outputs: Outputs) -> None:
    _, _, scores = outputs
    target, negative = (scores["one"]["copy"][c]["micro"] for c in ("target", "negative"))
    for metric in ("understand", "confuse", "misunderstand"):
        share, other_share = target[metric], negative[metric]
        assert share["low"] <= other_share["high"] and other_share["low"] <= share["high"], metric
    assert scores["one"]["copy"] == scores["other"]["copy"]


def test_copying_saturates_accuracy_and_not_understanding(outputs: Outputs) -> None:
    _, _, scores = outputs
    numbers = scores["one"]["default"]
    assert numbers["alone"]["micro"]["acc_at_5"]["value"] < 0.9
    assert numbers["full"]["micro"]["acc_at_5"]["value"] > 0.95
    assert numbers["full"]["micro"]["acc_at_10"]["value"] == 1, "no context tells of more than ten"
    assert numbers["target"]["micro"]["understand"]["value"] < 0.5


def test_accuracy_and_understanding_separate_different_models() -> None:
    """Two models of such an acc@5 and Understand, each with an interval of ± 0.05."""
    full, understand = (0.97, 0.95), (0.6, 0.3)
    rows = [
        ("context", subset, mean, model, "rank_change", metric, v, v - 0.05, v + 0.05, 99, None)
        for model, u, acc in zip(MODELS, understand, full, strict=True)
        for subset, mean, metric, v in (
            ("alone", "macro", "acc_at_5", 0.5),
            ("full", "macro", "acc_at_5", acc),
            *((s, m, "understand", u) for s in CENTRES for m in MEANS),
            *((s, m, "confuse", 0.2) for s in CENTRES for m in MEANS),
            *((s, m, "misunderstand", 0.3) for s in CENTRES for m in MEANS),
        )
    ]
    copied = ("context", "full", "macro", "one", "rank_change:copy", "acc_at_5", 1.0, 0.95, 1.0, 99)
    tests = [
        (
            *("context", subset, "macro", metric, "main results"),
            *(MODELS[0], "rank_change", MODELS[1], "rank_change"),
            *(a - b, np.nan, np.nan, np.nan, 0.001 if abs(a - b) > 0.1 else 0.4, None, 99, 50, ""),
        )
        for subset, metric, (a, b) in (
            ("full", "acc_at_5", full),
            ("target", "understand", understand),
            ("target", "confuse", (0.2, 0.2)),
        )
    ]
    report = PageData(
        comparison=pd.DataFrame([*rows, (*copied, None)], columns=COMPARISON),
        significance=pd.DataFrame(tests, columns=SIGNIFICANCE),
        benchmarks={"context": context.METADATA},
    )
    check_snapshot("context", section(report, "context"))


def test_the_trajectory_follows_one_context_in_all_models(outputs: Outputs) -> None:
    folder, benchmark, _ = outputs
    ranks = moves(outputs)
    assert set(ranks["model"]) == set(MODELS)
    target = ranks[ranks["role"] == "target"]
    assert target["entity"].nunique() == 1
    assert (target["entity"] == target[target["step"] == 1]["added"].iloc[0]).all()
    counts = ranks.groupby("model")["step"].nunique()
    assert (counts == benchmark.queries["step"].max() + 1).all()
    assert rank_table({}, folder / "benchmarks" / "context", names=False).empty


def test_the_trajectory_names_nothing_unless_allowed(outputs: Outputs) -> None:
    candidates = outputs[1].candidates
    ids, names = (moves(outputs, names=choice) for choice in (False, True))
    assert set(ids["entity"]) <= set(candidates["id"])
    assert set(names["entity"]) <= set(candidates["name"])
    assert ids.groupby("model")["rank"].sum().equals(names.groupby("model")["rank"].sum())


def test_the_page_has_the_papers_tables_and_drawings(report: PageData) -> None:
    parts = section(report, "context")
    text = html(report, parts)
    captions = ("UCM_m, per cent", "Macro: the mean over relations, of triples", "Mean rank change")
    for words in (*captions, "target/kind:real"):
        assert words in text
    names = ("context-ucm.svg", "context-accuracy.svg", "context-trajectory-one.svg")
    assert {*names} <= set(drawings(parts))
    assert section(report, "medlama") == []


def test_a_result_of_its_own_is_drawn_alike(outputs: Outputs) -> None:
    folder, _, _ = outputs
    rows = pd.DataFrame(of_model(outputs, "one"), columns=COMPARISON)
    path = folder / "predictions" / "one" / "rank_change" / "context.parquet"
    where = folder / "benchmarks" / "context"
    files = draw_result(SingleResult(rows, context.METADATA, path, where, False))
    shares = {"figures/context-ucm.svg", "figures/context-accuracy.svg"}
    assert shares | {"figures/context-trajectory-one.svg"} <= set(files)
    assert draw_result(SingleResult(rows.head(0), context.METADATA, path, where, False)) == {}


def test_no_text_of_a_note_is_on_the_page(outputs: Outputs, report: PageData) -> None:
    folder, _, scores = outputs
    parts = section(report, "context")
    contents = [html(report, parts), str(scores), *drawings(parts).values()]
    contents += [path.read_text("utf-8") for path in (folder / "benchmarks").rglob("*.csv")]
    texts = pd.read_parquet(folder / "benchmarks" / "context" / "documents.parquet")["text"]
    pieces = {
        " ".join(words[at : at + 4])
        for words in map(str.split, texts)
        for at in range(len(words) - 3)
    }
    assert not [piece for piece in pieces for text in contents if piece in text]


def row_of(subset: str, mean: str, metric: str, value: float, method: str = "rank_change") -> tuple:
    return ("context", subset, mean, "one", method, metric, value, None, None, 99, None)


def test_numbers_in_print_are_next_to_ranks_by_decoding_alone() -> None:
    """The paper decodes: a mean over masks is another quantity."""
    methods = ("rank_change", "rank_change:decoding", "rank_change:copy")
    cells = (
        ("full", "macro", "acc_at_1", 0.5),
        ("target", "macro", "understand", 0.25),
        ("negative", "micro", "confuse", 0.75),
        ("target/added:correct", "micro", "rc_target", -3.0),
    )
    rows = [row_of(*cell, method) for cell in cells for method in methods]
    report = PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"context": context.METADATA},
        builders={"context": "context_notes"},
        published={"one": "BERT-base-uncased"},
    )
    text = lines(published.section(report, "context")[0])
    compared = [line for line in text if "BERT-base-uncased" in line]
    assert len(compared) == len(cells)
    assert all("rank_change:decoding" in line for line in compared)


def test_accuracy_and_ucm_k_are_shown_by_part() -> None:
    """Bins are in the order of their numbers."""
    parts = ("frequency:over-1000", "objects:11-50", "objects:1", "objects:2-3", "resource:notes")
    cells = (("full", "macro", "acc_at_5"), ("target", "macro", "understand"))
    rows = [
        row_of(f"{subset}/{part}", mean, metric, number / 10)
        for number, part in enumerate(parts)
        for subset, mean, metric in cells
    ]
    rows.append(row_of("target", "macro", "understand", 0.5))
    report = PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON), benchmarks={"context": context.METADATA}
    )
    text = [line for block in section(report, "context") for line in lines(block)]
    start = next(n for n, line in enumerate(text) if line.startswith("| part | model"))
    assert text[start] == "| part | model | acc@5 with context | Understand |"
    assert text[start + 1 : start + 6] == [
        "| resource:notes | one | 40.0 | 40.0 |",
        "| objects:1 | one | 20.0 | 20.0 |",
        "| objects:2-3 | one | 30.0 | 30.0 |",
        "| objects:11-50 | one | 10.0 | 10.0 |",
        "| frequency:over-1000 | one | 0.0 | 0.0 |",
    ]


def understood(target: Mapping[str, float], negative: Mapping[str, float], n: int = 40) -> PageData:
    """Models (`copy` is the control's) that understand these shares of triples, a step each."""
    systems = {}
    for model in target:
        tables = []
        for centre, shares in (("target", target), ("negative", negative)):
            rises = np.arange(n) < shares[model] * n
            table = values(rises.astype(float), "understand", centre)
            tables.append(table.assign(confuse=0.0, misunderstand=1.0 - rises))
        model_and_method = (
            ("one", "rank_change:copy") if model == "copy" else (model, "rank_change")
        )
        systems[model_and_method] = pd.concat(tables)
    page_results = results_of(systems, "understand")
    tested = made_tests(systems, "understand", "target", contrasts=[("target", "negative")])
    about = {"facts": replace(context.METADATA, cluster="subject_id")}
    return replace(page_results, significance=tested, benchmarks=about)


def test_around_a_negative_target_low_is_good() -> None:
    assert metrics.catalog()["understand"].better_on("negative") == "lower"
    assert metrics.catalog()["misunderstand"].better_on("negative") == "higher"


def test_the_negative_target_separates_a_model_from_copying() -> None:
    """`one` is a copier around targets alone."""
    page_results = understood({"one": 0.25, "copy": 0.275}, {"one": 0.05, "copy": 0.55})
    check_snapshot("understood", section(page_results, "facts"))


def test_a_context_is_shown_by_the_ranks_of_its_target(tmp_path: Path) -> None:
    about = {"context_id": "c", "centre": "target", "kind": "real", "resource": "notes"}
    steps = pd.DataFrame([query(number) for number in (1, 2, 3)], columns=QUERY_COLUMNS)
    steps = steps.assign(**about, target="brena", target_id="C1", step=[0, 1, 2])
    steps["added_role"] = ["", "target", "correct"]
    folder = benchmark(tmp_path, steps)
    rows = [
        ("", "", query_id, rank, name, identifier, -1.0, False)
        for query_id, ranks in zip(steps["query_id"], ((3, 1), (1, 2), (5, 1)), strict=True)
        for rank, name, identifier in zip(ranks, ("brena", "alba"), ("C1", "C0"), strict=True)
    ]
    path = tmp_path / "model" / "rank_change" / "facts.parquet"
    write_predictions(pd.DataFrame(rows, columns=PREDICTION_COLUMNS), path, "ucm")
    query_answers = answers(folder, [path], text=False)
    assert query_answers is not None and query_answers.content["best"] == [
        "0"
    ]  # it ends below where it began
    [shown_query] = query_answers.content["queries"]
    assert shown_query[:3] == ["c", "target, real, notes", "may_treat"]
    assert shown_query[5:] == [["C1"], ["alone", "+ target", "+ correct"]]
    assert last_answers(query_answers) == [[["3", "1", "5"], [2]]]
