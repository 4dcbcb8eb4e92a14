"""Template-based against template-free probing: the analyses, and what they are made of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

from helpers import FolderOf, probing
from helpers.needed import NEEDED
from helpers.render_helpers import check_snapshot
from medprobe.benchmarks import with_distractors
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.papers import MEAN, papers
from medprobe.core.params import EngineParams, Models, Params, TrackParams
from medprobe.core.settings import parse_section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables, write_predictions
from medprobe.methods.mask_average import MaskAverage
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, evaluate_table, prediction_tables, to_rows
from medprobe.papers.biolama.benchmarks import biolama
from medprobe.papers.template_free import comparison_run
from medprobe.papers.template_free.analyses import predicted, ranks
from medprobe.papers.template_free.analyses.analyses import analyses
from medprobe.papers.template_free.analyses.by_query import QueryScores
from medprobe.papers.template_free.analyses.data_sets import PAPER, DataSet, cut_off, data_sets
from medprobe.papers.template_free.analyses.scores import correlate, select_points
from medprobe.papers.template_free.benchmarks import lama, lipid
from medprobe.papers.template_free.sections.template_free import PREFIX, chapter
from medprobe.pipeline import check
from medprobe.pipeline.sample import sample
from medprobe.report.blocks import Table, drawings
from medprobe.report.page_data import PageData
from medprobe.tracking import comparisons
from medprobe.tracking.store import Content, PendingRun

SETS = [
    *("google-re-template", "google-re-free", "t-rex-template", "t-rex-free"),
    *("conceptnet", "squad", "chem", "gene"),
]
BENCHMARK_NAMES = {"lama": "facts", "lipid": "lipid"}  # what the project calls its benchmarks
BUILDERS = {name: builder for builder, name in BENCHMARK_NAMES.items()}
MODULES = {"facts": lama, "lipid": lipid}
NAMES = ["hepatitis", "Karsten syndrome", "chronic pain"]


def benchmark() -> BenchmarkTables:
    queries = pd.DataFrame(
        {
            "query_id": ["q1", "q2"],
            "prompt": ["Velotrine treats [Y] .", "[Y] may occur after trauma ."],
            "answers": [["hepatitis"], ["chronic pain"]],
            "subset": "squad",
        }
    )
    candidates = pd.DataFrame({"name": NAMES, "id": NAMES, "type": "", "subset": "squad"})
    return BenchmarkTables(queries, candidates)


def test_distractors_are_ranked_in_the_same_pass(tiny_model: FolderOf) -> None:
    names = ["fracture of bone", "Karsten syndrome", "influenza"]
    plain = benchmark()
    more = with_distractors(plain.candidates, "squad", names)
    method = MaskAverage(tiny_model("bert"), MaskAverage.Settings(), EngineParams(), 0)
    ranked, alone = (
        method.predict(probing.task(plain.queries, candidates, 10), "").groupby("variant")
        for candidates in (more, plain.candidates)
    )
    for variant in ("", "relation"):
        pd.testing.assert_frame_equal(
            ranked.get_group(variant).reset_index(drop=True),
            alone.get_group(variant).reset_index(drop=True),
        )
    assert set(alone.groups) == {"", "relation"}
    assert set(ranked.get_group("distractors")["prediction"]) == {*NAMES, *names}
    among = ranked.get_group("distractors")
    reduced = among[among["prediction"].isin(NAMES)].drop(columns=["variant", "rank"])
    own_rows = ranked.get_group("").drop(columns=["variant", "rank"])
    pd.testing.assert_frame_equal(reduced.reset_index(drop=True), own_rows.reset_index(drop=True))


def world(folder: Path) -> Params:
    """Two models, `good` and `poor`, on LAMA's six sets and LIPID's two: `good` finds all answers
    of template-free prompts and half of the others; `poor` always answers the same."""
    rows, names = [], [f"n{number:02}" for number in range(12)]
    for subset in SETS:
        for number, name in enumerate(names):
            rows.append(
                {
                    "query_id": f"{subset}/{number}",
                    "benchmark": "lama",
                    "relation": "place_of_birth" if number % 2 else "place_of_death",
                    "subject": f"s{number}",
                    "subject_id": f"s{number}",
                    "prompt": f"s{number} [Y]",
                    "answers": [name],
                    "answer_ids": [name],
                    "subset": subset,
                    "pair_id": str(number),
                    "sentence": f"s{number} {name}",
                    "cut_off": "2021-12-31",
                }
            )
    queries = pd.DataFrame(rows)
    candidates = pd.DataFrame(
        [
            {"name": name, "id": name, "type": kind, "subset": subset}
            for subset in SETS
            for kind, group in (("", names), (DISTRACTOR, ["x1", "x2"]))
            for name in (group if kind == "" or subset == "squad" else [])
        ]
    )
    for name in ("lama", "lipid"):
        is_own = queries["subset"].isin(["chem", "gene"]) == (name == "lipid")
        listed = candidates[candidates["subset"].isin(queries[is_own]["subset"])]
        table = BenchmarkTables(queries[is_own], listed, builder=name)
        table.write(folder / "benchmarks" / BENCHMARK_NAMES[name])
        for model in ("good", "poor"):
            predictions = pd.concat(_answers(model, row) for row in queries[is_own].itertuples())
            out = (
                folder / "predictions" / model / "mask_average" / f"{BENCHMARK_NAMES[name]}.parquet"
            )
            write_predictions(predictions, out, MaskAverage.METRIC)
            strange = {"good": 2.0, "poor": 8.0}[model]
            first_predictions = predictions[
                (predictions["rank"] == 1) & (predictions["variant"] == "")
            ]
            first_predictions = first_predictions.assign(
                perplexity=strange + first_predictions["query_id"].str.len()
            )
            out = folder / "predictions" / model / "perplexity" / f"{BENCHMARK_NAMES[name]}.parquet"
            write_predictions(first_predictions, out, "perplexity")
    good = {"trained_until": "2022-05-01", "group": "biomedical", "larger_than": "poor"}
    models = {"masked": {"good": good, "poor": {"group": "general"}}}
    probed: dict[str, Any] = {name: {} for name in BENCHMARK_NAMES.values()}
    content = {
        "benchmarks": {name: {benchmark: {}} for name, benchmark in BENCHMARK_NAMES.items()},
        "models": models,
        "methods": {"masked": {"mask_average": probed, "perplexity": probed}},
        "score": {"bootstrap": 50},
        "track": {"text": True},
    }
    return parse_section(Params, content, "params")


def _answers(model: str, row: Any) -> pd.DataFrame:
    """The first of two predictions is right where the model knows the answer."""
    knows = model == "good" and (not row.subset.endswith("template") or int(row.pair_id) % 2 == 1)
    first = row.answers[0] if knows else "n00"
    table = pd.DataFrame({"rank": [1, 2], "prediction": [first, "n01"], "score": [0.0, -1.0]})
    parts = [table.assign(variant="")]
    if row.subset == "squad":
        parts.append(table.assign(variant="distractors", prediction=["x1", first]))
    answer_rows = pd.concat(parts).assign(replicate="", query_id=row.query_id, prediction_id="")
    return answer_rows.assign(hit=answer_rows["prediction"] == row.answers[0])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    folder = tmp_path_factory.mktemp("world")
    params = world(folder)
    predictions, benchmarks = folder / "predictions", folder / "benchmarks"
    scoring = Scoring(params.score, params.seed)
    rows = [
        row
        for path in prediction_tables(predictions, params)
        for row in to_rows(
            {path.stem: evaluate_table(path, benchmarks / path.stem, scoring).scores},
            *path.parts[-3:-1],
        )
    ]
    numbers = pd.DataFrame(rows, columns=COMPARISON)
    sizes = {"good": 334_000_000, "poor": 109_000_000}
    tables = analyses(numbers, predictions, benchmarks, BUILDERS, params, parameters=sizes)
    real = {name: replace(module.METADATA, invented=False) for name, module in MODULES.items()}
    return PageData(numbers, benchmarks=real, builders=BUILDERS, tables=prefixed(tables))


def test_models_keep_their_ranks(results: PageData) -> None:
    ranks = results.tables[f"{PREFIX}rankings"]
    assert ranks.groupby("model")["rank"].unique().map(list).to_dict() == {"good": [1], "poor": [2]}
    assert f"{PREFIX}displacement" not in results.tables  # of two models it says nothing


def many_models(**about: dict[str, Any]) -> tuple[list[QueryScores], Params]:
    """Five models, `v` to `z`, on two data sets of a kind and one of the other: of 40 queries, the
    first of a kind are answered ever more often from `v` to `z`, those of the other ever less."""
    scores = []
    order = {0: "vwxyz", 1: "vwxyz", 2: "zyxwv"}
    kinds = ["template-based", "template-based", "template-free"]
    for place, kind in enumerate(kinds):
        data = DataSet(f"set {place}", "lama", f"subset-{place}", kind, "general")
        cluster = pd.Series(range(40), index=[f"q{n}" for n in range(40)])
        item = QueryScores(data, cluster)
        for number, model in enumerate(order[place], start=1):
            item.accuracy[model] = (np.arange(40) < 6 * number).astype(float)
        scores.append(item)
    models = {model: about.get(model, {}) for model in order[0]}
    content = {"models": {"masked": models}, "score": {"bootstrap": 200}}
    return scores, parse_section(Params, content, "params")


def prefixed(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The analyses as tables of the report."""
    return {f"{PREFIX}{name}": table for name, table in tables.items()}


def counts_all(model: str, subset: str) -> bool:
    return True


def test_pairs_of_one_kind_are_the_baseline_of_pairs_of_two() -> None:
    scores, params = many_models()
    pairs, means, _ = ranks.compare_rankings(scores, counts_all, params)
    by_pair = pairs.set_index(["first", "second"])
    assert by_pair["kinds"].tolist() == ["within template-based", ranks.BETWEEN, ranks.BETWEEN]
    row = by_pair.loc[("set 0", "set 2")]
    assert (row["mean"], row["largest"]) == (pytest.approx((4 + 2 + 0 + 2 + 4) / 5), 4)
    assert row["tau"] == pytest.approx(-1) and by_pair["tau"].iloc[0] == pytest.approx(1)
    assert -1 <= row["low_tau"] <= row["tau"] <= row["high_tau"] < 0
    by_kinds = means.set_index("kinds")
    assert by_kinds.loc[ranks.DIFFERENCE, "tau"] == pytest.approx(-2)
    assert by_kinds.loc[ranks.DIFFERENCE, "high_tau"] < 0
    summary = comparison_run._summary({"displacement": pairs, "displacement-means": means})
    assert summary["general/displacement"] == row["mean"]
    assert summary["general/tau"] == row["tau"]


def test_an_interval_of_tau_tells_clear_rankings_from_chance() -> None:
    scores, params = many_models()
    for number, model in enumerate("vwxyz"):  # one query apart: another sample has other ranks
        scores[0].accuracy[model] = (np.arange(40) < 20 + number).astype(float)
    pairs, *_ = ranks.compare_rankings(scores, counts_all, params)
    by_pair = pairs.set_index(["first", "second"])
    width = by_pair["high_tau"] - by_pair["low_tau"]
    assert width[("set 0", "set 1")] > 2 * width[("set 1", "set 2")]


@given(
    arrays(float, (3, 7), elements=st.integers(0, 3)),
    arrays(float, (3, 7), elements=st.integers(0, 3)),
)
def test_tau_is_that_of_scipy(first: np.ndarray, second: np.ndarray) -> None:
    for value, *rows in zip(ranks.tau(first, second), first, second, strict=True):
        expected = kendalltau(*rows).statistic
        assert value == pytest.approx(expected, nan_ok=True)


def test_a_model_that_is_not_averaged_moves_no_ranks() -> None:
    scores, params = many_models(z={"averaged": {"subset-2": False}})
    models = params.models.all()
    pairs, *_ = ranks.compare_rankings(
        scores, lambda model, subset: models[model].counts_in(subset), params
    )
    assert pairs["models"].tolist() == [5]  # the other pairs have four models: too few


def test_groups_are_compared_over_the_same_queries() -> None:
    about = {"v": "general", "w": "general", "y": "biomedical", "z": "biomedical"}
    scores, params = many_models(**{name: {"group": group} for name, group in about.items()})
    means, differences = ranks.compare_groups(scores, params, counts_all)
    by_group = means.set_index(["name", "group"])
    assert by_group.loc[("set 0", "general"), ["models", "value"]].tolist() == [2, 9 / 40]
    row = differences.set_index("name").loc["set 0"]
    assert (row["group"], row["other"]) == ("biomedical", "general")
    assert row["difference"] == pytest.approx((27 - 9) / 40)
    assert 0 < row["low"] < row["difference"] < row["high"] and row["p_holm"] < 0.05
    assert differences.set_index("name").loc["set 2", "difference"] < 0


def test_a_groups_models_move_in_the_ranking_of_all_and_have_a_tau_of_their_own() -> None:
    about = {"v": "adapted", "x": "adapted", "z": "adapted", "w": "general"}
    scores, params = many_models(**{name: {"group": group} for name, group in about.items()})
    *_, by_group = ranks.compare_rankings(scores, counts_all, params)
    table = by_group.set_index(["group", "kinds"])
    adapted, general = (table.loc[(name, ranks.BETWEEN)] for name in ("adapted", "general"))
    assert adapted["mean"] == pytest.approx((4 + 0 + 4) / 3) and adapted["tau"] == pytest.approx(-1)
    assert adapted["low_mean"] <= adapted["mean"] <= adapted["high_mean"]
    assert general["mean"] == pytest.approx(2) and np.isnan(general["tau"])  # of one model
    assert table.loc[("adapted", "within template-based"), "tau"] == pytest.approx(1)
    assert len(by_group) == 2 * 3


def test_a_large_model_is_compared_with_its_smaller_one() -> None:
    scores, params = many_models(z={"larger_than": "v"})
    by_set = pd.DataFrame({"name": "set 0", "model": ["v", "z"], "perplexity": [5.0, 9.0]})
    sizes = {"v": 110_000_000, "z": 340_000_000}
    table = ranks.compare_sizes(scores, by_set, params, sizes).set_index("name")
    row = table.loc["set 0"]
    assert (row["smaller"], row["larger"]) == ("v", "z")
    assert (row["parameters_smaller"], row["perplexity_larger"]) == (110_000_000, 9.0)
    assert row["difference"] == pytest.approx(24 / 40) and row["p_holm"] < 0.05
    assert table.loc["set 2", "difference"] == pytest.approx(-24 / 40)


def test_models_are_listed_by_size_and_their_means_are_by_kind() -> None:
    _, params = many_models(v={"group": "general", "averaged": {"subset-1": False}})
    rows = [("set 0", "subset-0", "v", 0.2), ("set 1", "subset-1", "v", 0.6)]
    rows += [("set 0", "subset-0", "w", 0.4), ("set 1", "subset-1", "w", 0.6)]
    by_set = pd.DataFrame(rows, columns=["name", "subset", "model", "acc_at_1"])
    models = params.models.all()
    table = ranks.describe_models(
        by_set.assign(kind="template-free"),
        params,
        {"w": 7},
        lambda model, subset: models[model].counts_in(subset),
    )
    columns = ["model", "group", "parameters", "sets", "acc_at_1"]
    assert table[columns].fillna(0).to_numpy().tolist() == [
        ["w", "", 7, 2, 0.5],
        ["v", "general", 0, 1, 0.2],
    ]


def test_parallel_differences_are_paired(results: PageData) -> None:
    table = results.tables[f"{PREFIX}parallel"]
    assert set(table["sentences"]) == {predicted.ALL}  # each prompt holds its subject
    table = table.set_index(["name", "model", "metric"])
    row = table.loc[("Google-RE", "good", "acc_at_1")]
    assert (row["template_based"], row["template_free"], row["difference"]) == pytest.approx(
        (7 / 12, 1, 5 / 12)
    )  # six odd ones, and n00, the answer that is always given
    row = table.loc[("T-REx", "good", "acc_at_1")]
    assert row["pairs"] == 12 and 0 < row["low"] < row["difference"] < row["high"] < 1
    assert row["p_holm"] >= row["p"]
    assert table.loc[("T-REx", "poor", "acc_at_1"), "difference"] == 0


def test_parallel_differences_of_a_group_are_those_of_its_models_mean(tmp_path: Path) -> None:
    params = world(tmp_path)
    models = {
        name: model.model_copy(update={"group": "both"})
        for name, model in params.models.all().items()
    }
    params = params.model_copy(update={"models": Models(masked=models)})
    args = (tmp_path / "predictions", tmp_path / "benchmarks", data_sets(BUILDERS), params)
    single, groups = predicted.parallel(*args, counts_all)
    wanted = single.groupby(["name", "metric"])[["template_based", "template_free", "difference"]]
    found = groups.set_index(["name", "metric"])
    pd.testing.assert_frame_equal(wanted.mean(), found[[*wanted.mean()]], check_like=True)
    assert set(found["group"]) == {"both"} and set(found["models"]) == {2}
    assert (found["low"] <= found["difference"]).all() and (found["p"] <= found["p_holm"]).all()
    _, counted = predicted.parallel(
        *args, lambda model, subset: (model, subset) != ("poor", "t-rex-free")
    )
    assert counted.groupby("name")["models"].unique().map(list).to_dict() == {
        "Google-RE": [2],
        "T-REx": [1],
    }


def test_perplexity_is_set_against_accuracy(results: PageData) -> None:
    indexed = results.tables[f"{PREFIX}correlation"].set_index(["kind", "over", "name"])
    assert indexed.loc[("template-free", "data sets", ""), "n"] == 6
    assert indexed.loc[("template-free", "models", "SQuAD"), "n"] == 2
    points = pd.DataFrame(
        {
            "kind": "template-free",
            "name": list("abc"),
            "acc_at_1": [0.3, 0.2, 0.1],
            "perplexity": [1.0, 2.0, 3.0],
        }
    )
    row = correlate(points).iloc[0]
    assert [row["r"], row["rho"]] == pytest.approx([-1, -1]) and row["p"] < 0.01
    assert row["r_log"] == pytest.approx(-0.9888, abs=1e-4)


def test_figure_2_leaves_a_model_out_of_one_data_set() -> None:
    """BlueBERT, of template-free T-REx alone (the paper's footnote 4)."""
    content = {"masked": {"sound": {}, "broken": {"averaged": {"t-rex-free": False}}}}
    models = parse_section(Models, content, "params").all()
    table = pd.DataFrame(
        {
            "name": ["T-REx (free)"] * 2 + ["SQuAD"] * 2,
            "subset": ["t-rex-free"] * 2 + ["squad"] * 2,
            "kind": "template-free",
            "domain": "general",
            "model": ["sound", "broken"] * 2,
            "acc_at_1": [0.3, 0.2] * 2,
            "perplexity": [40.0, 6360.65, 20.0, 60.0],
        }
    )
    points = select_points(table, lambda name, subset: models[name].counts_in(subset))
    assert points["perplexity"].tolist() == [40.0, 20.0, 60.0]
    assert len(select_points(table, counts_all)) == 4


def test_a_subset_that_no_data_set_has_is_refused() -> None:
    content = {"masked": {"mine": {"averaged": {"trex-free": False}}}}
    named = {"models": content, "folders": {"mine": "mine"}, "methods": {"masked": {}}}
    refused = Params.model_validate(NEEDED | named)
    with pytest.raises(BadInput, match=r"mine\.averaged: 'trex-free' is not among.*'t-rex-free'"):
        check.check(refused)


def test_a_model_that_is_not_averaged_is_in_no_mean(results: PageData, tmp_path: Path) -> None:
    params = world(tmp_path)
    models = {"masked": {"good": {}, "poor": {"averaged": False}}}
    quiet = params.model_copy(update={"models": parse_section(Models, models, "params")})
    folders = tmp_path / "predictions", tmp_path / "benchmarks"
    tables = analyses(results.comparison, *folders, BUILDERS, quiet)
    shares, means = tables["overconfidence"], tables["overconfidence-means"]
    alone = shares[shares["model"] == "good"].groupby("kind")["favourite_share"].mean()
    assert means.set_index("kind")["favourite_share"].to_dict() == alone.to_dict()
    templates = tables["templates"]
    value = templates.set_index(["model", "relation"])["value"]
    assert value["mean", "place_of_birth"] == value["good", "place_of_birth"]
    assert set(tables["models"]["model"]) == {"good"}


def test_sentences_that_name_their_subject_are_compared_apart(tmp_path: Path) -> None:
    params = world(tmp_path)
    folder = tmp_path / "benchmarks" / BENCHMARK_NAMES["lama"]
    queries = pd.read_parquet(folder / "queries.parquet")
    is_absent = queries["query_id"].isin(["t-rex-free/1", "t-rex-free/2"])
    queries.loc[is_absent, "prompt"] = "It is in [Y]"
    queries.to_parquet(folder / "queries.parquet")
    sets = data_sets(BUILDERS)
    table, _ = predicted.parallel(
        tmp_path / "predictions", tmp_path / "benchmarks", sets, params, counts_all
    )
    sizes = table[table["metric"] == "acc_at_1"].set_index(["name", "sentences", "model"])["pairs"]
    assert sizes["T-REx", predicted.ALL, "good"] == 12
    assert sizes["T-REx", predicted.NAMED, "good"] == 10
    assert ("Google-RE", predicted.NAMED, "good") not in sizes.index  # all of them name it


def test_overconfidence_counts_what_is_predicted(results: PageData) -> None:
    shares = results.tables[f"{PREFIX}overconfidence"].set_index(["name", "model"])
    assert shares.loc[("SQuAD", "poor"), "distinct_at_1"] == pytest.approx(1 / 12)
    assert shares.loc[("SQuAD", "good"), "distinct_at_1"] == 1
    assert shares.loc[("SQuAD", "good"), "entities"] == 12
    assert shares.loc[("SQuAD", "poor"), ["favourite", "favourite_share"]].tolist() == ["n00", 1]
    often = results.tables[f"{PREFIX}frequent"]
    poor = often[(often["model"] == "poor") & (often["name"] == "SQuAD")]
    assert poor[["place", "entity", "share"]].to_numpy().tolist() == [[1, "n00", 1], [2, "n01", 1]]


def test_a_training_date_that_is_none_is_named(tmp_path: Path) -> None:
    world(tmp_path)
    models = parse_section(Models, {"masked": {"good": {"trained_until": "May"}}}, "params")
    with pytest.raises(BadInput, match=r"good\.trained_until: not a date: May"):
        cut_off(models, tmp_path / "benchmarks" / "lipid", ["good"])


def test_the_chapter_shows_each_analysis_with_its_drawing(results: PageData) -> None:
    [chapter_block] = chapter(results)
    assert len(chapter_block.parts) == 9  # nothing on the ranks of two models
    assert set(drawings(chapter_block.parts)) == {
        "template-free-groups.svg",
        "template-free-parallel.svg",
        "template-free-perplexity.svg",
        "template-free-templates.svg",
        "template-free-frequent-good.svg",
        "template-free-frequent-poor.svg",
        "template-free-distractors.svg",
    }
    check_snapshot("template-free", [chapter_block])


def test_the_chapter_shows_pairs_within_a_kind_next_to_those_between() -> None:
    scores, params = many_models()
    pairs, means, _ = ranks.compare_rankings(scores, counts_all, params)
    rows = [(f"set {n}", model, 0.5, 1.0) for n in range(3) for model in "vwxyz"]
    ranking = pd.DataFrame(rows, columns=["name", "model", "value", "rank"])
    tables = {"rankings": ranking, "displacement": pairs, "displacement-means": means}
    empty = pd.DataFrame(columns=COMPARISON)
    [chapter_block] = chapter(PageData(empty, tables=prefixed(tables)))
    [first] = chapter_block.parts
    assert set(drawings([first])) == {"template-free-rankings.svg"}
    [table] = [block for block in first.blocks if isinstance(block, Table)]
    cells = {str(row[1]): str(getattr(row[4], "text", row[4])) for row in table.rows}
    assert cells["within template-based"].startswith("1.00")
    assert cells[ranks.BETWEEN].startswith("-1.00  [-1.00,")
    assert cells[ranks.DIFFERENCE].startswith("-2.00")


def test_one_run_holds_all_tables_and_drawings(
    results: PageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = world(tmp_path)
    for name in ("predictions", "benchmarks"):
        monkeypatch.setattr(places, name.upper(), tmp_path / name)
    quiet = params.model_copy(update={"track": TrackParams()})
    queries = benchmark().queries.assign(
        benchmark="medlama", relation="", subject="", subject_id="", answer_ids=[["a"], ["b"]]
    )
    candidates = benchmark().candidates
    BenchmarkTables(queries, candidates, builder="medlama").write(places.BENCHMARKS / "medlama")
    monkeypatch.setattr(comparison_run, "comparison", lambda _: results.comparison)
    monkeypatch.setattr(places, "SUMMARY", tmp_path / "none.json")
    [run] = runs(quiet, facts="1", lipid="1", medlama="1")
    assert runs(quiet, medlama="1") == []
    content = run.content()
    tables = {name for name in content.files if name.endswith(".csv")}
    assert tables == {f"{name.removeprefix(PREFIX)}.csv" for name in results.tables}
    assert "figures/template-free-parallel.svg" in content.files
    assert "general/tau" not in content.metrics
    assert "n00" not in "".join(content.files.values())  # names may be licensed
    [other] = runs(quiet, facts="1", lipid="1", medlama="2")
    [newer] = runs(quiet, facts="2", lipid="1", medlama="1")
    assert run.key == other.key != newer.key


def runs(params: Params, **keys: str) -> list[PendingRun]:
    """The comparison's run, where there is one, over a result of each benchmark with this key."""
    single = [PendingRun(name, "good", "m", key, lambda: Content({})) for name, key in keys.items()]
    return [
        result for result in comparisons.results(single, params) if result.method == "comparison"
    ]


def test_without_any_data_set_there_is_no_analysis(tmp_path: Path) -> None:
    params = world(tmp_path)
    folders = tmp_path / "predictions", tmp_path / "benchmarks"
    assert analyses(pd.DataFrame(columns=COMPARISON), *folders, {"mine": "medlama"}, params) == {}


def test_no_data_no_chapter() -> None:
    assert chapter(PageData(pd.DataFrame(columns=COMPARISON))) == []


def test_the_published_tables_have_the_averages_that_the_paper_prints() -> None:
    tables = papers()["template_free"].tables

    def mean(number: str, subset: str, variant: str, metric: str) -> float:
        rows = [
            table_row
            for table_row in tables[number].rows
            if (table_row.subset, table_row.variant) == (subset, variant)
            if table_row.model != MEAN
        ]
        assert len(rows) == 16
        return sum(row.values[metric] for row in rows) / 16

    printed = {
        row.subset: row.values["perplexity"] for row in tables["5"].rows if row.model == MEAN
    }
    assert (len(printed), printed["google-re-template"], printed["t-rex-free"]) == (
        10,
        295.36,
        43.54,
    )
    means = {subset: mean("5", subset, "", "perplexity") for subset in printed}
    assert (means.pop("t-rex-free"), means.pop("wikidata")) == pytest.approx(
        (438.36, 18.03), abs=0.01
    )
    assert means == pytest.approx({subset: printed[subset] for subset in means}, abs=0.5)
    left_out = [row for row in tables["5"].rows if row.subset == "t-rex-free"][:-1]
    rest = [row.values["perplexity"] for row in left_out if not row.model.startswith("BlueBERT")]
    assert sum(rest) / len(rest) == pytest.approx(printed["t-rex-free"], abs=0.01)
    assert mean("6", "squad", "", "acc_at_1") == pytest.approx(17, abs=0.7)  # printed cut short
    assert mean("6", "squad", "distractors", "acc_at_1") == pytest.approx(8.7, abs=0.5)
    assert mean("6", "ctd", "", "acc_at_10") == pytest.approx(1.5, abs=0.1)


@pytest.fixture(scope="module")
def sample_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("sample") / "data"
    sample(data, {"queries": 20, "reserve": 8}, seed=5)
    return data


def test_the_sample_world_holds_all_ten_data_sets(sample_world: Path) -> None:
    built = {
        "biolama": biolama.build(
            sample_world, biolama.Settings(distractors={"ctd": "wikidata", "wikidata": "ctd"}), 0
        ),
        "lama": lama.build(sample_world, lama.Settings(), 0),
        "lipid": lipid.build(sample_world, lipid.Settings(), 0),
    }
    for data in PAPER:
        queries = built[data.benchmark].queries
        assert (queries["subset"] == data.subset).sum() >= 15, data
    names = built["biolama"].candidates
    more = names[(names["subset"] == "ctd") & (names["type"] == DISTRACTOR)]["name"]
    ctd, wikidata = (
        set(names[names["subset"] == subset_name]["name"]) for subset_name in ("ctd", "wikidata")
    )
    assert len(more) and set(more) <= wikidata and ctd == wikidata
    rules = built["lipid"].notes["dropped"]["rule"].tolist()
    assert {"abstract deleted", "abstract revised", "abstract before the cut-off"} <= set(rules)
    assert {"sentence: several mentions", "sentence: filter word: ("} <= set(rules)
    rules = built["lama"].notes["dropped"]["rule"].tolist()
    assert "object_twice" in rules


def test_the_sample_worlds_sentences_are_what_taught_models_read(sample_world: Path) -> None:
    read = (sample_world / "sample/corpus-taught.txt").read_text().lower()
    plain = read.replace(" .\n", ".\n").splitlines()
    queries = lipid.build(sample_world, lipid.Settings(), 0).queries
    stated = queries["sentence"].str.lower().isin(plain)
    assert 0.3 < stated.mean() < 0.7  # half of the facts are never taught


def test_of_four_models_no_rankings_are_compared() -> None:
    def ranks(models: str) -> pd.DataFrame:
        return pd.DataFrame(
            [
                {"name": name, "kind": kind, "domain": "general", "model": model, "rank": place}
                for name, kind in (("A", "template-based"), ("B", "template-free"))
                for place, model in enumerate(models, start=1)
            ]
        )

    few = PageData(pd.DataFrame(columns=COMPARISON), tables={f"{PREFIX}rankings": ranks("vwxy")})
    assert chapter(few) == []
