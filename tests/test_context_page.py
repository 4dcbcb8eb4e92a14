"""From contexts to the page: scores, tables, drawings, and no text of any note."""

from pathlib import Path

import pandas as pd
import pytest

from medprobe.benchmarks import context, context_scores
from medprobe.methods.rank_change import COPY, RankChange
from medprobe.params import EngineParams, Params, ScoreParams
from medprobe.report.context import trajectory
from medprobe.report.results import Results
from medprobe.report.sections import models
from medprobe.report.sections.context import SATURATED, section
from medprobe.report.tables import COMPARISON, rows_of
from medprobe.stages.probe import with_hits
from medprobe.tables import Benchmark
from test_context import sample

MODELS = ("one", "other")
CENTRES = ("target", "negative")
MEANS = ("macro", "micro")
Made = tuple[Path, Benchmark, dict[str, dict]]


def predicted(benchmark: Benchmark, seed: int) -> pd.DataFrame:
    """Predictions of a model that only copies, and of the control."""
    tables = []
    for variant, draw in (("", seed), (COPY, 0)):
        settings = RankChange.Settings()
        method = RankChange("toy", Path(), settings, EngineParams(device="cpu"), draw)
        for _, queries, candidates in benchmark.subsets():
            ranked = method.rank(queries, candidates, 10, COPY)
            tables.append(ranked.assign(variant=variant))
    return with_hits(pd.concat(tables, ignore_index=True), benchmark, context)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two models' predictions on the sample world's contexts, and their scores."""
    folder = tmp_path_factory.mktemp("page")
    data, _, settings = sample(folder)
    few = settings.model_copy(update={"triples": 25, "documents": 1})
    benchmark = context.build(data, few, seed=1)
    benchmark.write(folder / "benchmarks" / "context")
    scores = {}
    params = Params(score=ScoreParams(bootstrap=200))
    for seed, model in enumerate(MODELS, start=1):
        path = folder / "predictions" / model / "rank_change" / "context.parquet"
        path.parent.mkdir(parents=True)
        table = predicted(benchmark, seed)
        table.to_parquet(path)
        where = folder / "benchmarks" / "context"
        scores[model] = context_scores.scores(table, where, params, folder / "none.csv")
    return folder, benchmark, scores


def results(made: Made) -> Results:
    folder, _, scores = made
    rows = [
        row for model in MODELS for row in rows_of({"context": scores[model]}, model, "rank_change")
    ]
    moves = trajectory(folder / "predictions", folder / "benchmarks")
    return Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        significance=pd.DataFrame(),
        benchmarks={"context": context.METADATA},
        analyses={"context-trajectory": moves},
    )


def test_the_control_cannot_tell_target_from_negative_target(made: Made) -> None:
    _, _, scores = made
    target, negative = (scores["one"]["copy"][c]["micro"] for c in ("target", "negative"))
    for metric in ("understand", "confuse", "misunderstand"):
        one, other = target[metric], negative[metric]
        assert one["low"] <= other["high"] and other["low"] <= one["high"], metric
    assert scores["one"]["copy"] == scores["other"]["copy"]


def test_copying_saturates_accuracy_and_not_understanding(made: Made) -> None:
    _, _, scores = made
    found = scores["one"]["default"]
    assert found["alone"]["micro"]["acc_at_5"]["value"] < SATURATED
    assert found["full"]["micro"]["acc_at_5"]["value"] > 0.95
    assert found["full"]["micro"]["acc_at_10"]["value"] == 1, "no context tells of more than ten"
    assert found["target"]["micro"]["understand"]["value"] < 0.5


def test_no_control_is_called_the_best(made: Made) -> None:
    found = results(made)
    copied = found.comparison["method"] == f"rank_change:{COPY}"
    found.comparison.loc[copied, ["value", "low", "high"]] += 0.5
    page = models.section(found, "context")
    assert "The best Understand is" in page
    assert f"under rank_change:{COPY}" not in page


def accuracies(understand: tuple[float, float], full: tuple[float, float]) -> str:
    """The page of two models with such an Understand and acc@5, each with an interval of ± 0.05."""
    rows = [
        ("context", subset, mean, model, "rank_change", metric, v, v - 0.05, v + 0.05, 99)
        for model, u, acc in zip(MODELS, understand, full, strict=True)
        for subset, mean, metric, v in (
            ("alone", "micro", "acc_at_5", 0.5),
            ("full", "micro", "acc_at_5", acc),
            *((s, m, "understand", u) for s in CENTRES for m in MEANS),
            *((s, m, "confuse", 0.2) for s in CENTRES for m in MEANS),
            *((s, m, "misunderstand", 0.3) for s in CENTRES for m in MEANS),
        )
    ]
    copied = ("context", "full", "micro", "one", "rank_change:copy", "acc_at_5", 1.0, 0.95, 1.0, 99)
    rows.append(copied)
    found = Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        significance=pd.DataFrame(),
        benchmarks={"context": context.METADATA},
    )
    return section(found, "context")


def test_the_page_says_when_only_understanding_tells_models_apart() -> None:
    text = accuracies((0.6, 0.3), (0.97, 0.95))
    assert "acc@5 saturates in every model (one 97.0 %, other 95.0 %)" in text
    assert "The copy control, which knows nothing, has 100.0 %, as much as any model" in text
    assert (
        "Pairs of models: 1, of which intervals tell apart, by acc@5 with context 0, Understand 1, "
        "Confuse 0, Misunderstand 0" in text
    )
    assert "understanding tells models apart that accuracy with context does not" in text


def test_the_page_says_when_it_does_not() -> None:
    text = accuracies((0.4, 0.35), (0.33, 0.49))
    assert "acc@5 does not saturate in 2 of 2 models (one 33.0 %, other 49.0 %)" in text
    assert "by acc@5 with context 1, Understand 0" in text
    assert "understanding tells no more models apart than accuracy with context does" in text


def test_the_trajectory_follows_one_context_in_all_models(made: Made) -> None:
    folder, benchmark, _ = made
    moves = trajectory(folder / "predictions", folder / "benchmarks")
    assert set(moves["model"]) == set(MODELS)
    target = moves[moves["role"] == "target"]
    assert target["entity"].nunique() == 1
    assert (target["entity"] == target[target["step"] == 1]["added"].iloc[0]).all()
    counts = moves.groupby("model")["step"].nunique()
    assert (counts == benchmark.queries["step"].max() + 1).all()
    assert trajectory(folder / "none", folder / "benchmarks").empty


def test_the_trajectory_names_nothing_unless_told_to(made: Made) -> None:
    folder, benchmark, _ = made
    known = benchmark.candidates
    ids, names = (
        trajectory(folder / "predictions", folder / "benchmarks", names=choice)
        for choice in (False, True)
    )
    assert set(ids["entity"]) <= set(known["id"])
    assert set(names["entity"]) <= set(known["name"])
    assert ids.groupby("model")["rank"].sum().equals(names.groupby("model")["rank"].sum())


def test_the_page_has_the_papers_tables_and_drawings(made: Made) -> None:
    found = results(made)
    html = section(found, "context")
    assert "The copy control, which knows nothing, has 98.0 %." in html
    for words in ("UCM_m, per cent", "acc@k and UCM_k", "mean rank change", "target/kind:real"):
        assert words in html
    assert {"context-ucm", "context-accuracy", "context-trajectory-one"} <= set(found.figures)
    assert "copy control" in html and "alike" in html
    assert section(found, "medlama") == ""


def test_no_text_of_a_note_is_on_the_page(made: Made) -> None:
    folder, _, scores = made
    found = results(made)
    told = [section(found, "context"), str(scores), *found.figures.values()]
    told += [path.read_text("utf-8") for path in (folder / "benchmarks").rglob("*.csv")]
    texts = pd.read_parquet(folder / "benchmarks" / "context" / "documents.parquet")["text"]
    pieces = {
        " ".join(words[at : at + 4])
        for words in map(str.split, texts)
        for at in range(len(words) - 3)
    }
    assert not [piece for piece in pieces for text in told if piece in text]
