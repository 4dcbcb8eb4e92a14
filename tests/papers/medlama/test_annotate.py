"""Expert evaluation: what raters are shown, what is read back, and what it says of systems whose
true accuracy is known."""

import random
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import pandas as pd
import pytest
import yaml

from helpers import ROOT, gate_helpers
from helpers.project import NEEDED_SECTIONS
from helpers.toy_project import METADATA, predictions, queries
from medprobe.cli import main
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, ScoreParams
from medprobe.core.tables import CANDIDATE_COLUMNS, BenchmarkTables, write_predictions
from medprobe.metrics import Scoring
from medprobe.metrics.results import evaluate_table
from medprobe.papers.medlama import annotation as annotate
from medprobe.papers.medlama.annotation import (
    ITEM_COLUMNS,
    SCALES,
    read_items,
    read_ratings,
    write,
)
from medprobe.papers.medlama.benchmarks.ratings import Settings, agreement
from medprobe.papers.medlama.metrics import expert
from medprobe.pipeline.stages.build import build
from medprobe.pipeline.stages.compare import compare
from medprobe.pipeline.stages.score import score
from medprobe.report.numbers import catalog
from medprobe.tracking import comparisons, runs

FACTS = Path("outputs/benchmarks/facts")
TABLE = Path("outputs/predictions/taught/contrastive/facts.parquet")
DRAWN = 80
RATED = frozenset({"experts"})  # the benchmark of ratings
Truth = dict[tuple[str, str], bool]


@pytest.fixture
def truth(working_folder: Path) -> Truth:
    """A benchmark of 300 queries whose answers lack half of what is true, with two systems'
    predictions of it; which predictions are true."""
    gold = (["some answer"], ["A"], "full")
    rows = [
        (f"q{i}", "facts", f"may_{i % 4}", f"drug {i}", f"S{i}", f"drug {i} may treat [Y] .", *gold)
        for i in range(300)
    ]
    names = pd.DataFrame([("some answer", "A", "", "full")], columns=CANDIDATE_COLUMNS)
    query_table = queries(*rows)
    BenchmarkTables(query_table, names, builder="medlama").write(FACTS)
    METADATA.write(Path("outputs/about/facts.json"))
    true_names: Truth = {}
    for model, rate in (("taught", 0.08), ("untaught", 0.02)):
        draw = random.Random(model)
        ranked = []
        for query in query_table["query_id"]:
            for rank, name in enumerate(draw.sample([f"=name {n}" for n in range(30)], 10), 1):
                right = true_names.setdefault((query, name), draw.random() < rate)
                gold = right and draw.random() < 0.5
                ranked.append(("", "", query, rank, name, name, -float(rank), gold))
                ranked.append(("original", "", query, rank, f"{name}?", "", -float(rank), False))
        table = predictions(ranked)
        write_predictions(
            table, places.PREDICTIONS / model / "contrastive/facts.parquet", "accuracy"
        )
    return true_names


def draw(
    *raters: str,
    items_kind: str = "predictions",
    tables: tuple[Path, ...] = (TABLE,),
    size: int | None = DRAWN,
) -> Path:
    asked_of = tables if items_kind == "predictions" else ()
    items = annotate.draw(items_kind, FACTS, asked_of, size, 7)
    return write(items, "experts", raters, Path("data"))


def fill(sheet: Path, truth: Truth, error: float, rows: int = 10_000) -> None:
    """Fill in a sheet as a rater does who mistakes right for wrong, and wrong for right, with a
    known chance."""
    items = {row.item: (row.query_id, row.answer) for row in read_items(sheet.parent).itertuples()}
    table = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    chance = random.Random(sheet.stem)
    ratings = [""] * len(table)
    for line, item in enumerate(table["item"][:rows]):
        right = truth[items[item]] != (chance.random() < error)
        ratings[line] = "5" if right else chance.choice("1234")
    table.assign(rating=ratings).to_csv(sheet, index=False)


def build_evaluation(**settings: Any) -> expert.Evaluation:
    about = {"sheets": "annotations/experts"} | settings
    build("experts", Params(benchmarks={"ratings": {"experts": about}}))
    [evaluation] = expert.evaluations(FACTS, ["experts"])
    return evaluation


def numbers(path: Path = TABLE) -> dict[str, dict[str, float]]:
    scores = evaluate_table(
        path, FACTS, Scoring(ScoreParams(bootstrap=500), 1, benchmarks=RATED)
    ).scores
    return scores["default"].get("full/rated:experts", {}).get("micro", {})


def test_a_sheet_says_nothing_of_the_model_and_the_seed_draws_it(truth: Truth) -> None:
    other = TABLE.parents[1].with_name("untaught") / "contrastive/facts.parquet"
    folder = draw("anna", "ben", tables=(TABLE, other))
    sheet = pd.read_csv(folder / "anna.csv", dtype=str, keep_default_na=False)
    assert list(sheet) == ["item", "text", "answer", "rating", "comment"]
    assert (folder / "anna.csv").read_bytes() == (folder / "ben.csv").read_bytes()
    assert "taught" not in (folder / "anna.csv").read_text()
    items = read_items(folder)
    table = pd.concat([pd.read_parquet(TABLE), pd.read_parquet(other)])
    pooled = table[table["query_id"].isin(items["query_id"]) & (table["variant"] == "")]
    pairs = items[["query_id", "answer"]].apply(tuple, axis=1)
    assert sorted(pairs) == sorted({*pooled[["query_id", "prediction"]].apply(tuple, axis=1)})
    assert items["query_id"].nunique() == DRAWN
    # a query's items stand together, in an order that is not that of the ranks
    assert len(items["query_id"][items["query_id"] != items["query_id"].shift()]) == DRAWN
    rank = pd.read_parquet(TABLE).set_index(["query_id", "prediction"])["rank"]
    ranks = rank.reindex(pd.MultiIndex.from_frame(items[["query_id", "answer"]])).dropna()
    assert 0 < np.corrcoef(ranks, range(len(ranks)))[0, 1] + 0.2 < 0.4
    again = annotate.draw("predictions", FACTS, [TABLE, other], DRAWN, 7)
    assert again["answer"].tolist() == items["answer"].tolist()
    another = annotate.draw("predictions", FACTS, [TABLE, other], DRAWN, 8)
    assert set(another["query_id"]) != set(again["query_id"])
    with pytest.raises(BadInput, match="already exists; choose another name"):
        draw("anna")


@pytest.mark.slow
def test_names_ahead_of_an_answer_are_not_rated(truth: Truth) -> None:
    write_predictions(pd.read_parquet(TABLE).assign(ahead=True), TABLE, "accuracy")
    with pytest.raises(BadInput, match="not its best names; set lists: true"):
        draw("ann")


def test_experts_find_the_true_accuracy(truth: Truth) -> None:
    """Three raters, each wrong in 1 of 50 ratings: by majority hardly one in a thousand."""
    folder = draw("anna", "ben", "cleo")
    for name in ("anna", "ben", "cleo"):
        fill(folder / f"{name}.csv", truth, 0.02)
    build_evaluation()
    expert_numbers = numbers()
    table = pd.read_parquet(TABLE).query("variant == ''")
    right = [truth[pair] for pair in zip(table["query_id"], table["prediction"], strict=True)]
    table = table.assign(right=right)
    drawn = table[table["query_id"].isin(read_items(folder)["query_id"])]
    for k in (1, 10):
        of_drawn, of_all = (
            t[t["rank"] <= k].groupby("query_id")["right"].any().mean() for t in (drawn, table)
        )
        by_gold = table[table["rank"] <= k].groupby("query_id")["hit"].any().mean()
        assert expert_numbers[f"expert_acc_at_{k}"]["value"] == pytest.approx(of_drawn, abs=0.02)
        corrected = expert_numbers[f"corrected_acc_at_{k}"]
        assert corrected["low"] <= of_all <= corrected["high"]
        assert corrected["high"] - corrected["low"] < 0.3
        if k == 10:  # half of what is true is no answer: the interval leaves that number out
            assert by_gold < corrected["low"]
    assert expert_numbers["hits_of_10"]["value"] == pytest.approx(drawn["hit"].mean())
    assert expert_numbers["rated_right_of_10"]["value"] == pytest.approx(
        drawn["right"].mean(), abs=0.005
    )
    assert all(metric_numbers["n"] == DRAWN for metric_numbers in expert_numbers.values())


def test_the_corrected_interval_holds_as_often_as_it_says() -> None:
    """Over many draws of the rated queries, by the estimator itself."""
    generator = np.random.default_rng(0)
    gold = generator.random(1000) < 0.2
    true = gold | (generator.random(1000) < 0.3)
    holds = 0
    for seed in range(200):
        drawn = np.random.default_rng(seed).choice(1000, 60, replace=False)
        difference = true[drawn].astype(float) - gold[drawn]
        corrected_numbers = expert._corrected(
            gold.astype(float), difference, Scoring(ScoreParams(bootstrap=300), seed)
        )
        holds += corrected_numbers["low"] <= true.mean() <= corrected_numbers["high"]
    assert 180 <= holds <= 199


def test_agreement_is_near_what_the_error_rates_say() -> None:
    """Two raters who both err with chance e on items of which a share p is right: they agree with
    chance (1-e)^2 + e^2, by chance alone with q^2 + (1-q)^2, where q = p(1-e) + (1-p)e."""
    p, e, n = 0.3, 0.1, 6000
    generator = np.random.default_rng(1)
    true = generator.random(n) < p
    parts = []
    for rater in ("anna", "ben", "cleo"):
        judgments = true ^ (generator.random(n) < e)
        rating = np.where(judgments, "yes", "no")
        items = [f"i{number}" for number in range(n)]
        parts.append(
            pd.DataFrame({"item": items, "rater": rater, "rating": rating, "right": judgments})
        )
    q = p * (1 - e) + (1 - p) * e
    observed, by_chance = (1 - e) ** 2 + e**2, q**2 + (1 - q) ** 2
    kappa = (observed - by_chance) / (1 - by_chance)
    agreements = agreement(pd.concat(parts), ordinal=False)
    kappas = agreements[agreements["measure"].str.contains("kappa|alpha")]
    assert len(kappas) == 3 + 1
    assert kappas["value"].tolist() == pytest.approx([kappa] * 4, abs=0.03)
    assert agreements.loc[agreements["measure"] == "agreed", "value"].tolist() == pytest.approx(
        [observed] * 3, abs=0.02
    )


def test_agreement_by_hand() -> None:
    ratings_by_rater = {"anna": [*"55132"], "ben": [*"51133"]}
    parts = [
        pd.DataFrame({"item": range(5), "rater": rater, "rating": ratings})
        for rater, ratings in ratings_by_rater.items()
    ]
    ratings = pd.concat(parts)
    agreements = agreement(ratings.assign(right=ratings["rating"] == "5"), ordinal=True)
    value = agreements.set_index(["of", "measure"])["value"]
    # 3 of 5 agreed; by chance 2*1 + 1*2 + 1*2 + 1*0 of 25
    assert value["rating", "Cohen's kappa"] == pytest.approx((0.6 - 0.24) / (1 - 0.24))
    assert value["right", "agreed"] == 0.8
    single_rater = agreement(parts[0].assign(right=False), ordinal=True)
    assert single_rater.empty  # nobody to agree with


def quadratic_kappa(a: list[int], b: list[int]) -> float:
    """Cohen (1968): weighted disagreement, over that of all pairs of a rating of each."""
    observed = np.mean([(x - y) ** 2 for x, y in zip(a, b, strict=True)])
    by_chance = np.mean([(x - y) ** 2 for x in a for y in b])
    return float(1 - observed / by_chance)


@pytest.mark.parametrize("unused", [(), (4,), (2,), (2, 4), (1, 5), (3,), (2, 3, 4)])
def test_levels_that_nobody_gave_keep_their_place_in_the_scale(unused: tuple[int, ...]) -> None:
    draw = random.Random(str(unused))
    levels = [level for level in range(1, 6) if level not in unused]
    first = draw.choices(levels, k=80)
    values_by_rater = {"anna": first}
    for rater, share in (("ben", 0.3), ("cleo", 0.5)):
        values_by_rater[rater] = [
            draw.choice(levels) if draw.random() < share else x for x in first
        ]
    ratings = pd.concat(
        pd.DataFrame({"item": range(80), "rater": rater, "rating": [*map(str, values)]})
        for rater, values in values_by_rater.items()
    )
    agreements = agreement(ratings.assign(right=ratings["rating"] == "5"), ordinal=True)
    value = agreements.set_index(["of", "measure", "raters"])["value"]
    for a, b in (("anna", "ben"), ("anna", "cleo"), ("ben", "cleo")):
        key = ("rating", "Cohen's kappa, quadratic weights", f"{a}, {b}")
        assert value[key] == pytest.approx(quadratic_kappa(values_by_rater[a], values_by_rater[b]))


def test_a_sheet_filled_to_the_middle_counts_as_far_as_it_is(truth: Truth) -> None:
    folder = draw("anna", "ben")
    fill(folder / "anna.csv", truth, 0.0, rows=255)
    evaluation = build_evaluation()
    assert evaluation.rated[["rater", "items", "rated"]].values.tolist() == [["anna", 800, 255]]
    expert_numbers = numbers()
    assert expert_numbers["expert_acc_at_10"]["n"] == 25  # whole queries only, right or wrong
    assert expert_numbers["expert_acc_at_1"]["n"] in (25, 26)
    fill(folder / "anna.csv", truth, 0.0, rows=4)
    assert numbers()  # what was built stands until it is built anew
    build_evaluation()
    assert "expert_acc_at_10" not in numbers()


def test_only_systems_that_were_asked_about_are_scored(truth: Truth) -> None:
    folder = draw("anna")
    fill(folder / "anna.csv", truth, 0.0)
    build_evaluation()
    untaught = TABLE.parents[1].with_name("untaught") / "contrastive/facts.parquet"
    assert numbers(untaught) == {}
    scores = evaluate_table(
        TABLE, FACTS, Scoring(ScoreParams(bootstrap=10), 1, benchmarks=RATED)
    ).scores
    kinds = ("full/answer:", "full/answer-length:", "full/letters:", "full/signal:")
    assert [part for part in scores["original"] if not part.startswith(kinds)] == ["full"]


def test_confusion_tables_are_the_papers_figure(truth: Truth) -> None:
    """Each prediction that was drawn is counted once, whatever other sentence sets answer."""
    once = pd.read_parquet(TABLE)
    sets = pd.concat(once.assign(replicate=name) for name in ("set-0", "set-1"))
    write_predictions(sets, TABLE, "accuracy")
    folder = draw("anna")
    fill(folder / "anna.csv", truth, 0.0)
    evaluation = build_evaluation()
    table = expert.confusions(evaluation, [TABLE])
    at_10 = table[table["k"] == 10]
    assert table[table["k"] == 1]["count"].sum() == DRAWN
    assert at_10["count"].sum() == 10 * DRAWN
    perfect = at_10[at_10["rating"] == "5"].set_index("gold")["count"]
    expert_numbers = numbers()
    assert perfect.sum() == round(10 * DRAWN * expert_numbers["rated_right_of_10"]["value"])
    assert perfect[True] == round(
        10 * DRAWN * expert_numbers["hits_of_10"]["value"]
    )  # no answer is wrong
    assert set(at_10.loc[at_10["gold"].astype(bool) & (at_10["count"] > 0), "rating"]) == {"5"}


def test_a_confusion_table_has_the_levels_that_nobody_gave(truth: Truth) -> None:
    assert SCALES["predictions"] == expert.LEVELS
    folder = draw("anna")
    fill(folder / "anna.csv", truth, 0.0)
    sheet = pd.read_csv(folder / "anna.csv", dtype=str, keep_default_na=False)
    sheet.replace({"rating": {"4": "3", "2": "1"}}).to_csv(folder / "anna.csv", index=False)
    table = expert.confusions(build_evaluation(), [TABLE])
    assert [*table[table["k"] == 10]["rating"].unique()] == [*"12345"]
    assert table.loc[table["rating"].isin(["2", "4"]), "count"].tolist() == [0] * 8


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("replace:item,text:items,text", r"no column 'item' \(did you mean 'items'\?\)"),
        ("replace:,rating,:,score,", "no column 'rating'; keep the lines as they were written"),
        ("rating:6", r"line 2: rating '6'; write one of: 1, 2, 3, 4, 5"),
        ("twice", r"line 802: item 'experts-001' is also on line 2; keep one"),
        ("other", r"line 2: item 'others-001' is from another sheet; keep what `medprobe"),
        ("empty", "no rating in any sheet; build it when a sheet is filled in"),
        ("gone", "no sheet; put the raters' sheets there"),
        ("beside", r"anna\.xlsx: a workbook; save it as CSV"),
    ],
)
def test_a_bad_sheet_is_refused_in_one_line(truth: Truth, line: str, says: str) -> None:
    sheet = draw("anna") / "anna.csv"
    fill(sheet, truth, 0.0)
    table = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    what, _, change = line.partition(":")
    if what == "replace":
        sheet.write_text(sheet.read_text().replace(*change.split(":"), 1))
    elif what == "rating":
        table.loc[0, "rating"] = change
        table.to_csv(sheet, index=False)
    elif what == "twice":
        pd.concat([table, table[:1]]).to_csv(sheet, index=False)
    elif what == "other":
        table.loc[0, "item"] = "others-001"
        table.to_csv(sheet, index=False)
    elif what == "empty":
        table.assign(rating="").to_csv(sheet, index=False)
    elif what == "beside":
        sheet.with_suffix(".xlsx").touch()
    elif what == "gone":
        sheet.rename(sheet.with_suffix(".txt"))
    with pytest.raises(BadInput, match=says):
        build_evaluation()
    assert not Path("outputs/benchmarks/experts").exists()


def test_cells_of_csv_sheets_are_no_formulas(tmp_path: Path) -> None:
    names = ["=cmd|'/C calc'!A0", "@SUM(1+1)", "+1+1", "-2+3", "\uff1d1+1", "\n=1+1", "gout"]
    items = pd.DataFrame({"item": [*"abcdefg"], "text": names, "answer": names})
    items = items.assign(**{name: "predictions" for name in ITEM_COLUMNS if name not in items})
    folder = write(items.drop(columns="item"), "round", ["anna"], tmp_path)
    sheet = pd.read_csv(folder / "anna.csv", dtype=str, keep_default_na=False)
    assert sheet["text"].tolist() == [f"'{name}" for name in names[:6]] + ["gout"]
    assert sheet["answer"].equals(sheet["text"])
    assert sheet["item"].tolist() == [f"round-{number}" for number in range(1, 8)]


def test_a_sheet_comes_back_as_spreadsheets_save_it(truth: Truth) -> None:
    """With semicolons where a comma is in numbers, and beside a file of the program that has it
    open."""
    folder = draw("anna")
    fill(folder / "anna.csv", truth, 0.0)
    before = read_ratings(folder, read_items(folder))
    table = pd.read_csv(folder / "anna.csv", dtype=str, keep_default_na=False)
    assert {*table["rating"]} == {*"12345"}
    table["rating"] = " " + table["rating"] + ".0 "
    table.to_csv(folder / "anna.csv", index=False, sep=";", encoding="utf-8-sig")
    (folder / "~$anna.csv").write_bytes(b"of a program that has it open")
    assert read_ratings(folder, read_items(folder)).equals(before)


def test_prompts_that_state_facts(truth: Truth) -> None:
    folder = draw("anna", "ben", items_kind="prompts", size=50)
    for name, share in (("anna", 45), ("ben", 40)):
        sheet = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
        verdicts = ["Yes"] * share + ["no"] * (50 - share)
        sheet.assign(rating=verdicts).to_csv(folder / f"{name}.csv", index=False)
    evaluation = build_evaluation()
    assert evaluation.rated["right"].tolist() == [45, 40]
    value = evaluation.agreement.set_index("measure")["value"]
    assert value["agreed"] == 0.9
    assert numbers() == {}  # prompts say nothing of a system


def test_what_is_built_passes_its_gate(truth: Truth) -> None:
    folder = draw("anna")
    fill(folder / "anna.csv", truth, 0.0)
    build_evaluation()
    tables = BenchmarkTables.read(Path("outputs/benchmarks/experts"))
    gate_tables = {"queries": tables.queries, "candidates": tables.candidates, **tables.others}
    del gate_tables["items"]
    settings = Settings(sheets=Path("annotations/experts"))
    assert gate_helpers.failing("ratings", gate_tables, settings) == []
    twice = gate_tables["ratings"].assign(item=gate_tables["ratings"]["item"].iloc[0])
    failing = gate_helpers.failing("ratings", gate_tables | {"ratings": twice}, settings)
    assert [check["type"] for check in failing] == ["expect_compound_columns_to_be_unique"]


@pytest.mark.slow
def test_scores_page_and_mlflow_hold_it_without_a_name(truth: Truth) -> None:
    folder = draw("anna", "ben")
    for name in ("anna", "ben"):
        fill(folder / f"{name}.csv", truth, 0.05)
    build_evaluation()
    params = Params.model_validate(
        {
            "benchmarks": {"medlama": {"facts": {}}, "ratings": {"experts": {}}},
            "methods": {"masked": {"contrastive": {"facts": {}}}},
            "models": {"masked": {"taught": {"published": "PubMedBERT"}, "untaught": {}}},
            "score": {"bootstrap": 50},
        }
    )
    score(params)
    compare(params)
    page = Path("reports/index.html").read_text()
    assert "By experts" in page and "ACL 2022" in page and ">22<" in page
    assert ">8.67<" not in page and "8.67 % under gold answers (13)" in page  # no share of hits
    assert "acc@10, corrected" in page and "Krippendorff" in page and "Cohen" in page
    table = pd.read_csv("reports/comparison.csv")
    assert set(table["metric"]) <= set(catalog())
    assert (table["subset"] == "full/rated:experts").any()
    assert pd.read_csv("reports/experts-ratings.csv")["count"].sum() == 2 * (DRAWN + 10 * DRAWN)
    result = runs.run_of_table(TABLE, params)
    content = result.content()
    assert "full/rated:experts,micro" in content.files["scores.csv"]
    [earlier] = [
        run_record
        for run_record in comparisons.results([result], params)
        if "ratings" in run_record.method
    ]
    ratings = earlier.content()
    assert ratings.metrics["ratings/rated/full/anna"] == 800
    assert 0.5 < ratings.metrics["ratings/agreement/right/Cohen_s kappa/anna_ ben"] < 1
    for text in (page, *ratings.files.values()):
        assert "=name" not in text
    fill(folder / "ben.csv", truth, 0.3)
    build_evaluation()
    assert runs.run_of_table(TABLE, params).key != result.key
    [later] = [
        run_record
        for run_record in comparisons.results([result], params)
        if "ratings" in run_record.method
    ]
    assert later.key != earlier.key


@pytest.mark.slow
def test_the_command(truth: Truth, monkeypatch: pytest.MonkeyPatch) -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    needed = {name: params[name] for name in NEEDED_SECTIONS}
    text = yaml.safe_dump({**needed, "benchmarks": {"medlama": {"facts": {}}}})
    Path("params.yaml").write_text(text)
    words = "annotate predictions facts experts --rater anna --rater ben"
    run = click.testing.CliRunner().invoke

    result = run(main, [*words.split(), "--system", "taught", "contrastive"])
    assert result.exit_code == 0, result.output
    folder = Path("data/annotations/experts")
    assert {path.name for path in folder.iterdir()} == {"items.parquet", "anna.csv", "ben.csv"}
    result = run(main, [*words.split(), "--system", "taught", "contrastiv"])
    assert result.exit_code == 2 and len(result.output.strip().splitlines()) == 1
    assert "no such predictions (did you mean 'taught contrastive'?)" in result.output


def test_what_cannot_be_drawn_is_said_in_one_line(truth: Truth) -> None:
    with pytest.raises(BadInput, match="rater 'anna' is given twice; name each rater once"):
        draw("anna", "anna")
    with pytest.raises(
        BadInput, match="rater 'a/b' is not a valid name; name each rater once, in letters"
    ):
        draw("a/b")
    with pytest.raises(BadInput, match=r"NAME: '\.\./up' is not a valid name; write letters"):
        annotate.write(pd.DataFrame({"item": [1]}), "../up", ["anna"], Path("data"))
    with pytest.raises(BadInput, match="no --system; give a model and a method"):
        draw("anna", tables=())
    with pytest.raises(BadInput, match="prompts have no --system; remove the option"):
        annotate.draw("prompts", FACTS, [TABLE], None, 1)
    assert not Path("data").exists()


def test_people_type_the_command_and_stages_of_dvc_yaml_the_others() -> None:
    output = click.testing.CliRunner().invoke(main, ["--help"]).output
    typed, stages = output.split("Run by dvc.yaml")
    assert "\n  annotate " in typed and "annotate" not in stages
    for name in ("rewire", "validate-sentences"):
        assert f"\n  {name} " not in typed and name in stages
