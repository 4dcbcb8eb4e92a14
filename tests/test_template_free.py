"""Template-based against template-free probing: the analyses, and what they are made of."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import probing
from medprobe.benchmarks import biolama, lama, lipid
from medprobe.benchmarks.distractors import with_distractors
from medprobe.commands.sample import sample
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Models, Params, TrackParams, parse_section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables, write_predictions
from medprobe.methods.mask_average import MaskAverage
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, prediction_tables, score_table, to_rows
from medprobe.metrics.template_free import scores
from medprobe.metrics.template_free.analyses import analyses
from medprobe.metrics.template_free.cut_off import cut_off
from medprobe.metrics.template_free.data_sets import PAPER
from medprobe.papers import MEAN, papers
from medprobe.report.blocks import drawings
from medprobe.report.results import Results
from medprobe.report.template_free import chapter
from medprobe.tracking import comparisons
from medprobe.tracking.store import Content, Result
from render_helpers import check_snapshot

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


def test_distractors_are_ranked_in_the_same_pass(tiny_model: Callable[[str], Path]) -> None:
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
    models = {"masked": {"good": {"trained_until": "2022-05-01"}, "poor": {}}}
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
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("world")
    params = world(folder)
    predictions, benchmarks = folder / "predictions", folder / "benchmarks"
    scoring = Scoring(params.score, params.seed)
    rows = [
        row
        for path in prediction_tables(predictions, params)
        for row in to_rows(
            {path.stem: score_table(path, benchmarks / path.stem, scoring)},
            *path.parts[-3:-1],
        )
    ]
    numbers = pd.DataFrame(rows, columns=COMPARISON)
    tables = analyses(numbers, predictions, benchmarks, BUILDERS, params)
    real = {name: replace(module.METADATA, invented=False) for name, module in MODULES.items()}
    return Results(numbers, benchmarks=real, builders=BUILDERS, template_free=tables)


def test_models_keep_their_ranks(results: Results) -> None:
    ranks = results.template_free["rankings"]
    assert ranks.groupby("model")["rank"].unique().map(list).to_dict() == {"good": [1], "poor": [2]}
    assert "displacement" not in results.template_free  # of two models it says nothing


def test_displacement_by_a_worked_example() -> None:
    order = {"A": list("vwxyz"), "B": list("zyxwv")}
    ranks = pd.DataFrame(
        [
            {"name": name, "kind": kind, "domain": "general", "model": model, "rank": place}
            for name, kind in (("A", "template-based"), ("B", "template-free"))
            for place, model in enumerate(order[name], start=1)
        ]
    )
    (row,) = scores.displacement(ranks).to_dict("records")
    assert (row["mean"], row["largest"]) == (pytest.approx((4 + 2 + 0 + 2 + 4) / 5), 4)
    assert row["tau"] == pytest.approx(-1)
    summary = comparisons._summary({"displacement": pd.DataFrame([row])})
    assert summary == {"general/displacement": row["mean"], "general/tau": row["tau"]}


def test_parallel_differences_are_paired(results: Results) -> None:
    table = results.template_free["parallel"].set_index(["name", "model", "metric"])
    row = table.loc[("Google-RE", "good", "acc_at_1")]
    assert (row["template_based"], row["template_free"], row["difference"]) == pytest.approx(
        (7 / 12, 1, 5 / 12)
    )  # six odd ones, and n00, the answer that is always given
    row = table.loc[("T-REx", "good", "acc_at_1")]
    assert row["pairs"] == 12 and 0 < row["low"] < row["difference"] < row["high"] < 1
    assert row["p_holm"] >= row["p"]
    assert table.loc[("T-REx", "poor", "acc_at_1"), "difference"] == 0


def test_perplexity_is_set_against_accuracy(results: Results) -> None:
    indexed = results.template_free["correlation"].set_index(["kind", "over", "name"])
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
    row = scores.correlation(points).iloc[0]
    assert row["r"] == pytest.approx(-1) and row["p"] < 0.01


def test_a_model_can_be_left_out_of_means() -> None:
    table = pd.DataFrame(
        {
            "name": "SQuAD",
            "kind": "template-free",
            "domain": "general",
            "model": ["sound", "broken"],
            "acc_at_1": [0.3, 0.2],
            "perplexity": [40.0, 6360.65],
        }
    )
    assert scores.with_perplexity(table, ["broken"])["perplexity"].tolist() == [40.0]
    assert len(scores.with_perplexity(table)) == 2


def test_overconfidence_counts_what_is_predicted(results: Results) -> None:
    shares = results.template_free["overconfidence"].set_index(["name", "model"])
    assert shares.loc[("SQuAD", "poor"), "distinct_at_1"] == pytest.approx(1 / 12)
    assert shares.loc[("SQuAD", "good"), "distinct_at_1"] == 1
    assert shares.loc[("SQuAD", "good"), "entities"] == 12
    assert shares.loc[("SQuAD", "poor"), ["favourite", "favourite_share"]].tolist() == ["n00", 1]
    often = results.template_free["frequent"]
    poor = often[(often["model"] == "poor") & (often["name"] == "SQuAD")]
    assert poor[["place", "entity", "share"]].to_numpy().tolist() == [[1, "n00", 1], [2, "n01", 1]]


def test_a_training_date_that_is_none_is_named(tmp_path: Path) -> None:
    world(tmp_path)
    models = parse_section(Models, {"masked": {"good": {"trained_until": "May"}}}, "params")
    with pytest.raises(BadInput, match=r"good\.trained_until: not a date: May"):
        cut_off(models, tmp_path / "benchmarks" / "lipid", ["good"])


def test_the_chapter_shows_each_analysis_with_its_drawing(results: Results) -> None:
    [chapter_block] = chapter(results)
    assert len(chapter_block.parts) == 7  # nothing on the ranks of two models
    assert set(drawings(chapter_block.parts)) == {
        "template-free-parallel.svg",
        "template-free-perplexity.svg",
        "template-free-templates.svg",
        "template-free-frequent-good.svg",
        "template-free-frequent-poor.svg",
        "template-free-distractors.svg",
    }
    check_snapshot("template-free", [chapter_block])


def test_one_run_holds_all_tables_and_drawings(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setattr(comparisons, "comparison", lambda _: results.comparison)
    [run] = runs(quiet, facts="1", lipid="1", medlama="1")
    assert runs(quiet, medlama="1") == []
    content = run.content()
    tables = {name for name in content.files if name.endswith(".csv")}
    assert tables == {f"{name}.csv" for name in results.template_free}
    assert "figures/template-free-parallel.svg" in content.files
    assert "general/tau" not in content.metrics
    assert "n00" not in "".join(content.files.values())  # names may be licensed
    [other] = runs(quiet, facts="1", lipid="1", medlama="2")
    [newer] = runs(quiet, facts="2", lipid="1", medlama="1")
    assert run.key == other.key != newer.key


def runs(params: Params, **keys: str) -> list[Result]:
    """The comparison's run, where there is one, over a result of each benchmark with this key."""
    single = [Result(name, "good", "m", key, lambda: Content({})) for name, key in keys.items()]
    return [
        result for result in comparisons.results(single, params) if result.method == "comparison"
    ]


def test_no_data_no_chapter() -> None:
    assert chapter(Results(pd.DataFrame(columns=COMPARISON))) == []


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
