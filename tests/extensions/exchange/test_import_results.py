"""What other programs measured comes in: from lm-evaluation-harness, or a table."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from helpers import FIXTURES
from medprobe.cli import main
from medprobe.core import lineage, places
from medprobe.core.errors import BadInput
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.extensions.exchange import responses
from medprobe.extensions.exchange.stages.imported import IMPORTED, imported
from medprobe.metrics.significance import paired_tests
from medprobe.pipeline import check
from medprobe.pipeline.stages.probe import probe
from medprobe.pipeline.stages.score import score
from medprobe.tracking import runs

FIXTURE = FIXTURES / "lm_eval"
NAME = "small-imported"
NOT_LOG_PROBS = (float("nan"), float("inf"), float("-inf"), 0.5)
PARAMS = Params(
    models=Models(causal={"small": ModelParams()}, imported={NAME: ModelParams()}),
    benchmarks={"medlama": {"medlama": {}}},
    methods={"causal": {"likelihood": {"medlama": {"lists": True}}}},
    score=ScoreParams(bootstrap=50),
)
SECTIONS = "seed: 1\nengine: {precision: float32}\nrewire: {}\nscore: {}\ntrack: {}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the fixture's benchmark and model, and lm-eval's results in a folder."""
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(f"{SECTIONS}models: {{imported: {{{NAME}: {{}}}}}}\n")
    shutil.copytree(FIXTURE / "medlama", places.BENCHMARKS / "medlama")
    places.ABOUT.mkdir()
    shutil.copy(FIXTURE / "medlama.json", places.ABOUT)
    shutil.copytree(FIXTURE / "small", places.MODELS / "small")
    for path in (FIXTURE / "results").iterdir():
        target = Path("results", path.name.removesuffix(".gz"))
        target.parent.mkdir(exist_ok=True)
        opened: Callable = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as packed:
            target.write_bytes(packed.read())
    return tmp_path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["import", "results", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def table_of(method: str, model: str = NAME) -> pd.DataFrame:
    return pd.read_parquet(places.PREDICTIONS / model / method / "medlama.parquet")


def test_a_round_trip_gives_our_hits_and_tests_say_no_difference(project: Path) -> None:
    """The sample's MedLAMA went to lm-eval, and what that logged comes back."""
    status, output = run("results")
    assert status == 0 and f"models: {{imported: {{{NAME}: {{}}}}}}" in output
    imported(NAME)
    probe("small", "likelihood", "medlama", PARAMS)
    keys = ["query_id", "rank", "prediction", "prediction_id", "hit"]
    theirs, ours = table_of("likelihood"), table_of("likelihood", "small")
    subset = pd.read_parquet(places.BENCHMARKS / "medlama/queries.parquet")
    query_ids = subset.loc[subset["subset"] == "full", "query_id"]
    both = [
        table[(table["variant"] == "") & table["query_id"].isin(query_ids)].sort_values(keys[:2])
        for table in (theirs, ours)
    ]
    pd.testing.assert_frame_equal(*(table[keys].reset_index(drop=True) for table in both))
    assert both[0]["hit"].sum() > 0 and len(both[0]) >= 360
    score(PARAMS)
    tests = paired_tests(places.PREDICTIONS, places.BENCHMARKS, PARAMS)
    [row] = tests.query("family == 'models under likelihood' and metric == 'acc_at_1'").to_dict(
        "records"
    )
    assert {row["model_a"], row["model_b"]} == {"small", NAME}
    assert (row["difference"], row["p"], row["p_holm"], row["n"]) == (0, 1, 1, 36)
    assert row["low"] <= 0 <= row["high"]
    scores = json.loads((places.SCORES / NAME / "likelihood.json").read_text())["medlama"]
    recorded = json.loads((places.SCORES / "small" / "likelihood.json").read_text())["medlama"]
    for metric in ("acc_at_1", "acc_at_5", "acc_at_10"):
        values = [
            table["default"]["full"]["macro"][metric]["value"] for table in (scores, recorded)
        ]
        assert values[0] == values[1] > 0
    lm_eval = json.loads(next(Path("results").glob("results_*.json")).read_text())["results"]
    for task, variant in (("", "default"), ("_relation", "relation")):
        value = scores[variant]["full"]["macro"]["acc_at_1"]["value"]
        assert value == pytest.approx(lm_eval[f"medprobe_medlama_full{task}"]["acc,none"], abs=1e-6)


def test_a_written_answer_is_a_hit_by_the_rule_of_the_export(project: Path) -> None:
    [path] = Path("results").glob("samples_*_generate_*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["resps"] = [[f" The {lines[0]['doc']['answers'][0].upper()}!\nand more"]]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert run(path)[0] == 0
    imported(NAME)
    table = table_of("generation").set_index("query_id")
    assert len(table) == 36 and table["hit"].sum() == 1 and table["hit"].dtype == bool
    assert table.loc[lines[0]["doc"]["query_id"], "hit"]


def test_an_imported_model_is_marked_wherever_it_is_shown(project: Path) -> None:
    assert run("results", "--model", "Some/Model")[0] == 0
    assert (IMPORTED / "Some-Model-imported").is_dir()
    assert run("results")[0] == 0
    imported(NAME)
    record = lineage.record(
        places.RUNS / NAME / "likelihood/medlama.json",
        places.PREDICTIONS / NAME / "likelihood/medlama.parquet",
    )
    assert record["imported.tool"] == "lm-eval" and record["imported.tool_version"] == "0.4.13"
    assert record["imported.model"] == "small" and record["imported.date"] == "2026-11-23"
    path = places.PREDICTIONS / NAME / "likelihood/medlama.parquet"
    content = runs.of(path, PARAMS, fresh=False).content()
    assert content.tags["kind"] == content.tags["stage"] == "imported"
    assert content.tags["made.imported.tool"] == "lm-eval" and content.params == {}
    for name, kind in (("bert", "imported"), ("bert-imported", "masked")):
        params = Params(models=Models(**{kind: {name: ModelParams()}}))
        with pytest.raises(BadInput, match="-imported"):
            check.check(params)
    check.check(Params(models=Models(imported={NAME: ModelParams()})))


def test_tasks_of_others_are_known_by_their_prompts(project: Path) -> None:
    """A task that nobody exported: its context is the prompt, its choices are names."""
    [path] = Path("results").glob("samples_*_may_treat_2*.jsonl")
    lines = []
    for number, line in enumerate(path.read_text().splitlines()):
        sample = json.loads(line)
        before, after = sample["doc"]["prompt"].split("[Y]")
        context = f"a treats b .\n\n{before.strip()}" if number % 2 else before.strip()
        for request in sample["arguments"].values():
            name = request["arg_1"].removeprefix(before).removesuffix(after)
            request.update(arg_0=context, arg_1=f" {name}")
        sample["doc"] = {"question": before}
        lines.append(json.dumps(sample))
    other = Path("other/samples_mine_2026-11-23T00-00-00.000000.jsonl")
    other.parent.mkdir()
    other.write_text("\n".join(lines) + "\n")
    assert run("results")[0] == 0
    status, output = run(other, "--model", "other")
    assert status == 0, output
    for name in (NAME, "other-imported"):
        imported(name)
    theirs, ours = table_of("likelihood", "other-imported"), table_of("likelihood")
    ours = ours[ours["variant"] == ""].reset_index(drop=True)
    full = theirs[theirs["query_id"].isin(ours["query_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(full, ours)


def test_what_is_no_log_is_refused(project: Path) -> None:
    Path("log.json").write_text("{}")
    Path("empty").mkdir()
    for path in ("log.json", "empty"):
        status, output = run(path)
        assert status == 2 and f"{path}: neither samples_*.jsonl nor" in output
        assert "or write a table" in output


def predictions() -> pd.DataFrame:
    """A script's table: two names for each query of the full set, the first one right."""
    queries = BenchmarkTables.read(places.BENCHMARKS / "medlama").queries
    rows = [
        (row.query_id, name, score)
        for row in queries[queries["subset"] == "full"].itertuples()
        for name, score in ((row.answers[0], -0.5), (row.subject, -0.75))
    ]
    return pd.DataFrame(rows, columns=["query_id", "prediction", "score"])


def write_samples(folder: Path, stamp: str, scores: list[float], model: str = "org/a") -> None:
    """Write a run of lm-eval of one task and two queries, whose choices have these scores."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(2):
        arguments = {
            f"gen_args_{i}": {"arg_0": "x", "arg_1": f" name {i}"} for i in range(len(scores))
        }
        sample = {"doc_id": number, "doc": {"query_id": f"q{number}"}, "arguments": arguments}
        lines.append(json.dumps({**sample, "resps": [[[score, "False"]] for score in scores]}))
    (folder / f"samples_drugs_{stamp}.jsonl").write_text("\n".join(lines))
    (folder / f"results_{stamp}.json").write_text(json.dumps({"model_name": model}))


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        *(([bad, -1.0], "line 1: a log-likelihood is not a number") for bad in NOT_LOG_PROBS),
        ([0.0, 0.0], "all choices of each query have the same log-likelihood"),
    ],
)
def test_scores_that_are_no_log_likelihoods_are_refused(
    tmp_path: Path, scores: list[float], says: str
) -> None:
    write_samples(tmp_path, "1", scores)
    with pytest.raises(BadInput, match=says):
        responses.read(tmp_path)


def test_a_folder_of_several_runs_is_refused_with_both(tmp_path: Path) -> None:
    write_samples(tmp_path / "a", "1", [-1.0, -2.0])
    assert responses.read(tmp_path / "a").origin["model"] == "org/a"
    write_samples(tmp_path / "a", "2", [-1.0, -2.0])
    with pytest.raises(BadInput, match=r"two runs .* drugs, samples_drugs_1.*samples_drugs_2"):
        responses.read(tmp_path / "a")
    write_samples(tmp_path / "b/one", "1", [-1.0, -2.0], "org/one")
    write_samples(tmp_path / "b/two", "1", [-1.0, -2.0], "org/two")
    (tmp_path / "b/two/samples_drugs_1.jsonl").rename(tmp_path / "b/two/samples_genes_1.jsonl")
    with pytest.raises(BadInput, match="runs of two models, org/one and org/two"):
        responses.read(tmp_path / "b")


def test_a_part_is_a_subset_of_its_own_and_compared_on_what_both_have(project: Path) -> None:
    table = predictions()
    asked = sorted(table["query_id"].unique())[::3]
    table[table["query_id"].isin(asked)].to_csv("mine.csv", index=False)
    command = ("mine.csv", "--model", "small", "--method", "likelihood", "--benchmark", "medlama")
    status, output = run(*command)
    assert status == 2 and "have no answer" in output and "--partial" in output
    assert run(*command, "--partial")[0] == 0
    imported(NAME)
    subset = f"full-of-{NAME}"
    assert set(table_of("likelihood")["part"]) == {subset}
    probe("small", "likelihood", "medlama", PARAMS)
    score(PARAMS)
    scores = json.loads((places.SCORES / NAME / "likelihood.json").read_text())["medlama"]
    [*subsets] = (name for name in scores["default"] if "/" not in name)
    assert subsets == [subset]
    assert scores["default"][subset]["micro"]["acc_at_1"] == {
        **scores["default"][subset]["micro"]["acc_at_1"],
        "value": 1.0,
        "n": len(asked),
    }
    tests = paired_tests(places.PREDICTIONS, places.BENCHMARKS, PARAMS)
    ours = table_of("likelihood", "small")
    ours = ours[(ours["variant"] == "") & ours["query_id"].isin(asked) & (ours["rank"] == 1)]
    [test] = tests[
        (tests["subset"] == subset)
        & (tests["metric"] == "acc_at_1")
        & (tests["method_a"] == "likelihood")
        & (tests["method_b"] == "likelihood")
    ].to_dict("records")
    assert {test["model_a"], test["model_b"]} == {"small", NAME}
    assert test["n"] == len(asked)
    assert abs(test["difference"]) == pytest.approx(1 - ours["hit"].mean())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_a_table_of_any_script_comes_in(project: Path, ending: str) -> None:
    path, table = Path(f"mine{ending}"), predictions().sample(frac=1, random_state=1)
    if ending == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, sep="\t" if ending == ".tsv" else ",", index=False)
    status, output = run(path, "--model", "script", "--method", "likelihood")
    assert status == 0, output
    imported("script-imported")
    table = table_of("likelihood", "script-imported")
    assert table[table["rank"] == 1]["hit"].all() and not table[table["rank"] == 2]["hit"].any()
    assert set(table["rank"]) == {1, 2}


def ranked(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ranks from 1 by score."""
    order = table.groupby("query_id")["score"].rank(ascending=False, method="first")
    return table.assign(rank=order.astype(int))


def change(table: pd.DataFrame, row: int, column: str, value: object) -> pd.DataFrame:
    table = table.astype({column: object})
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda t: t.drop(columns="score"), "no column score"),
        (lambda t: change(t, 3, "score", "high"), "row 4: score is not a number"),
        (lambda t: t[t["query_id"] != "may_treat-0001"], "1 have no answer"),
        (lambda t: change(t, 0, "query_id", "x-1"), "query x-1 is not in the benchmark"),
        (lambda t: t.assign(rank=1), "row 2: rank 1 in the place of rank 2"),
        (lambda t: ranked(t).assign(rank=ranked(t)["rank"] - 1), "rank 0 in the place of rank 1"),
        (lambda t: ranked(t).assign(rank=ranked(t)["rank"] + 9), "rank 10 in the place of rank 1"),
        (lambda t: ranked(t).assign(rank=ranked(t)["rank"] - 0.5), "rank 0.5 in the place of"),
        (lambda t: ranked(t).assign(score=ranked(t)["rank"]), "a higher score than the prediction"),
        (lambda t: ranked(t).assign(prediction="gout"), "the query has this prediction twice"),
        (lambda t: t.assign(prediction="gout"), "the query has this prediction twice"),
        (lambda t: t.assign(score=-1.0), "all predictions of each query have the same score"),
        (lambda t: ranked(t).assign(score=-1.0), "all predictions of each query have the same"),
        (lambda t: t.assign(query_id="x" + t.index.astype(str)), "--benchmark"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    project: Path, changed: Callable[[pd.DataFrame], pd.DataFrame], says: str
) -> None:
    changed(predictions()).to_csv("mine.csv", index=False)
    benchmark = [] if says == "--benchmark" else ["--benchmark", "medlama"]
    if says == "--benchmark":
        shutil.copytree(places.BENCHMARKS / "medlama", places.BENCHMARKS / "other")
    status, output = run("mine.csv", "--model", "a", "--method", "b", *benchmark)
    assert status == 2 and says in output and output.count("\n") == 1
    assert not places.DATA.exists()


def test_a_log_likelihood_above_zero_is_refused(project: Path) -> None:
    predictions().assign(score=lambda t: -t["score"]).to_csv("mine.csv", index=False)
    status, output = run("mine.csv", "--model", "a", "--method", "likelihood")
    assert status == 2 and "a log-likelihood is above 0" in output


def test_an_empty_prediction_is_an_answer_that_is_wrong(project: Path) -> None:
    table = predictions().groupby("query_id").head(1)
    table.iloc[0, 1] = ""
    table.to_csv("mine.csv", index=False)
    assert run("mine.csv", "--model", "script", "--method", "generation")[0] == 0
    imported("script-imported")
    assert table_of("generation", "script-imported")["hit"].sum() == 35


def test_a_log_of_another_benchmark_is_refused(project: Path) -> None:
    [path] = Path("results").glob("results_*.json")
    text = path.read_text()
    metadata = json.loads(text)["configs"]["medprobe_medlama_full_may_treat"]["metadata"]
    path.write_text(text.replace(metadata["candidates_sha256"], "0" * 64))
    status, output = run("results")
    assert status == 2 and "exported from other candidates" in output
    [samples] = Path("results").glob("samples_*_may_treat_2*.jsonl")
    samples.write_text(samples.read_text().replace("[Y]", "[Y]", 1)[:-100])
    status, output = run("results")
    assert status == 2 and "line 36: no sample of lm-eval" in output
    assert not places.DATA.exists()


def test_other_results_are_replaced_only_by_force(project: Path) -> None:
    predictions().to_csv("mine.csv", index=False)
    command = ("mine.csv", "--model", "script", "--method", "likelihood")
    assert run(*command)[0] == run(*command)[0] == 0
    assert run("mine.csv", "--model", "script", "--method", "other")[0] == 0
    predictions().assign(score=lambda t: 2 * t["score"]).to_csv("mine.csv", index=False)
    status, output = run(*command)
    assert status == 2 and "--force" in output
    assert run(*command, "--force")[0] == 0
    imported_models = sorted(path.parent.name for path in IMPORTED.rglob("*.parquet"))
    assert imported_models == ["likelihood", "other"]


def test_nothing_names_a_folder_of_the_person(project: Path) -> None:
    [path] = Path("results").glob("results_*.json")
    content = json.loads(path.read_text())
    content["model_name"] = "/home/ada/models/small"
    path.write_text(json.dumps(content))
    assert run("results")[0] == 0
    imported(NAME)
    for file in [*IMPORTED.rglob("*.json"), *places.RUNS.rglob("*.json")]:
        assert "ada" not in file.read_text()


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.85])
def test_a_cut_log_is_refused_in_a_line(share: float, tmp_path: Path) -> None:
    (packed,) = (FIXTURE / "results").glob("samples_*_generate_*.jsonl.gz")
    content = gzip.decompress(packed.read_bytes())
    log = tmp_path / packed.stem
    log.write_bytes(content)
    assert responses.read(log).responses
    first_line = content.index(b"\n")
    log.write_bytes(content[: first_line + 1 + int(share * first_line)])
    with pytest.raises(BadInput, match="line 2: no sample of lm-eval"):
        responses.read(log)
