"""`medprobe run` and `medprobe list`: beside the pipeline, and of one mind with it."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from helpers import FolderOf
from helpers.needed import NEEDED
from medprobe import benchmarks, methods
from medprobe.benchmarks import table
from medprobe.cli import main
from medprobe.core import places
from medprobe.core.papers import papers
from medprobe.core.tables import read_table
from medprobe.library.probing import draw_queries
from medprobe.metrics.results import comparison

NAMES = ["hepatitis", "influenza", "Karsten syndrome", "chronic pain", "fracture of bone"]


@pytest.fixture
def project(tmp_path: Path, tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built benchmark of two relations, a model, and no results."""
    folder = tmp_path / "data/tables"
    folder.mkdir(parents=True)
    rows = [
        f"drug {i},{relation},{NAMES[i % 5]},[Y] is what drug {i} {relation}"
        for relation in ("treats", "prevents")
        for i in range(8)
    ]
    facts = "\n".join(["subject,relation,object,prompt", *rows])
    (folder / "facts.csv").write_text(facts + "\n")
    params = {
        **NEEDED,
        "models": {"masked": {"mine": {}}},
        "folders": {"mine": str(tiny_model("bert"))},
        "benchmarks": {"table": {"drugs": {"facts": "tables/facts.csv"}}},
        "methods": {"masked": {"mask_average": {"drugs": {}}}},
        "score": {"bootstrap": 50},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    monkeypatch.chdir(tmp_path)
    works("build --benchmark drugs")
    works("fetch --model mine")
    return tmp_path


def medprobe(command: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, command.split(), env={"COLUMNS": "200"})
    return result.exit_code, result.output


def works(command: str) -> str:
    code, printed = medprobe(command)
    assert code == 0, printed
    return printed


def test_run_gives_the_pipelines_numbers_and_records_nothing(project: Path) -> None:
    before = sorted(project.rglob("*"))
    output = works("run mine --method mask_average --benchmark drugs --out found.parquet --all")
    assert {*project.rglob("*")} - {*before} == {project / "found.parquet"}
    (places.VALIDATION / "drugs").mkdir(parents=True)
    works("probe --model mine --method mask_average --benchmark drugs")
    works("score")
    path = places.PREDICTIONS / "mine/mask_average/drugs.parquet"
    pd.testing.assert_frame_equal(read_table(path, []), read_table(Path("found.parquet"), []))
    numbers = comparison()
    macro = numbers[(numbers["relation"] == "macro") & (numbers["method"] == "mask_average")]
    for row in macro.itertuples():
        assert f"{row.value:.3f}" in output, row.metric


def test_a_folder_is_asked_like_the_model_of_that_name(project: Path) -> None:
    by_name = works("run mine --method mask_average --benchmark drugs --limit 6")
    folder = json.dumps(str(places.MODELS / "mine")).strip('"')
    assert works(f"run {folder} --method mask_average --benchmark drugs --limit 6") == by_name


def test_without_a_method_one_that_serves_the_model_is_taken(project: Path) -> None:
    chosen = works("run mine --benchmark drugs --limit 6")
    assert chosen == works("run mine --method mask_average --benchmark drugs --limit 6")


def test_a_limit_takes_of_all_relations_and_the_same_ones_each_time() -> None:
    queries = pd.DataFrame({"subset": "full", "relation": ["a"] * 50 + ["b"] * 3, "id": range(53)})
    ten = draw_queries(queries, 10, 7)
    assert ten["relation"].value_counts().to_dict() == {"a": 7, "b": 3}
    assert list(ten["id"]) == sorted(ten["id"])
    assert list(draw_queries(queries, 10, 7)["id"]) == list(ten["id"])
    assert set(draw_queries(queries, 6, 7)["id"]) <= set(ten["id"])
    assert len(draw_queries(queries, 99, 7)) == 53


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("run mine --method mask_average --benchmark drug", r"did you mean 'drugs'\?"),
        (
            "run mine --method generative --benchmark drugs",
            "this one serves as masked; choose one of: .*mask_average",
        ),
        ("run mine --method mask_average --benchmark drug.csv", r"drug\.csv: no such file"),
        (
            "run yours --method mask_average --benchmark drugs",
            "no model 'yours', and none of",
        ),
        ("run mine --method mask --benchmark drugs", "no method 'mask'"),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_cannot_run_is_refused_in_a_line(
    command: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, printed = medprobe(command)
    assert code == 2
    assert re.search(says, printed)
    assert len(printed.strip().splitlines()) == 1


@pytest.mark.usefixtures("project")
def test_what_is_not_built_yet_says_how() -> None:
    (places.BENCHMARKS / "drugs/queries.parquet").unlink()
    for file in (places.BENCHMARKS / "drugs").iterdir():
        file.unlink()
    (places.BENCHMARKS / "drugs").rmdir()
    code, printed = medprobe("run mine --method mask_average --benchmark drugs")
    assert code == 2
    assert "dvc repro build-table@drugs" in printed


@pytest.mark.usefixtures("project")
def test_lists_name_all_there_is() -> None:
    assert all(name in works("list methods") for name in methods.list_names())
    assert "mine" in works("list models")
    builders = works("list benchmarks")
    assert all(name in builders for name in benchmarks.list_names())
    assert table.METADATA.description in builders
    assert all(name in works("list papers") for name in papers())


def test_a_folder_and_a_file_of_facts_need_no_project(
    working_folder: Path, tiny_model: FolderOf
) -> None:
    Path("facts.csv").write_text("subject,relation,object\naspirin,treats,fever\n")
    Path("prompts.csv").write_text("relation,template\ntreats,[X] treats [Y] .\n")
    start = f"run {tiny_model('bert')} --method mask_average --benchmark"
    output = works(f"{start} facts.csv --prompts prompts.csv")
    assert "acc@1 on 1 query (full)" in output
    assert "acc@10" not in output  # of one name
    missing = medprobe("run ./away/bert --method fill_mask --benchmark facts.csv")[1]
    assert "away/bert: no such folder" in missing
    assert "no template for relation treats" in medprobe(f"{start} facts.csv")[1]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("run {folder} --benchmark drugs", "drugs: no such file, and no params.yaml here that"),
        ("run {folder} --benchmark away.csv", "away.csv: no such file; correct its path"),
        ("run {folder} --benchmark f.csv --prompts away.csv", "--prompts away.csv: no such file"),
        ("run {folder} --benchmark f.csv --prompts semi.csv", "semi.csv, line 1: one column"),
        ("run {folder}/config.json --benchmark f.csv", "config.json: a file, expected the folder"),
        (
            "run lab/bert --benchmark f.csv --prompts p.csv",
            "lab/bert: not in the hub's local cache, and working",
        ),
        ("run gpt2 --benchmark f.csv --prompts p.csv", "gpt2: not in the hub's local cache, and"),
        ("ask https://hf.co/lab/bert [Y]", "lab/bert: not in the hub's local cache, and"),
        ("ask https://hf.co/datasets/lab/facts [Y]", "no such folder; give a checkpoint's folder"),
        ("ask lab/bert [Y]", "lab/bert: not in the hub's local cache, and working offline"),
        ("ask {folder} text", "prompt: needs exactly one [Y], and has 0; put"),
        ("ask lab/bert/ [Y]", "lab/bert: not in the hub's local cache, and working offline"),
        ("ask lab/bert@v1 [Y]", "lab/bert: not in the hub's local cache, and working offline"),
        ("ask a/away/ [Y]", "a/away/: no such folder; give a checkpoint's folder, or a model's"),
        ("run {folder},{folder} --benchmark f.csv", "no such folder; give a checkpoint's folder"),
        ("run {folder} --benchmark empty.csv", "empty.csv: the file of facts has no rows; write"),
        ("ask {folder} [Y] --names gout,gout", "--names: 1 name, and nothing to rank; write two"),
        ("ask {folder} [Y] --names a", "--names: a is a folder; give a .txt file with one name"),
        ("ask {folder}/config.json [Y]", "config.json: a file, expected the folder"),
        ("ask a[Y] {folder}", "MODEL: a prompt in its place; give the model first"),
        ("ask {folder} [X]treats[Y]", "[X] has no meaning here; write the subject"),
        ("ask {folder} [Y] --names ,", "--names: no name, and nothing to rank; write two"),
        (
            "ask {folder} [Y] --names gout",
            "--names: 1 name, and nothing to rank; write two or more",
        ),
        ("run {folder} {folder} --benchmark f.csv --prompts p.csv", "MODELS: one of them is there"),
        ("run {folder} --benchmark f.csv --prompts [X]a[Y]", "--prompts: a template in place of a"),
        ("ask {folder} [Y] --names away.txt", "--names away.txt: no such file"),
        ("ask {folder} [Y] --names gout;pain", "--names: another list than names with commas"),
        ("ask {folder} [Y] --names [gout,pain]", "--names: another list than names with commas"),
        ("ask {folder} [Y]\udce9", "PROMPT: not UTF-8; set the terminal's encoding"),
        ("ask {folder} [Y] --names gout,\udce9", "--names: not UTF-8; set the terminal's"),
        ("ask {folder} [Y] --names f.csv", "--names: f.csv is a file; give a file of facts by"),
        (
            "run {folder} --benchmark f.csv --prompts p.csv --out p.csv/x.parquet",
            "p.csv: a file is where",
        ),
        ("run {folder} --benchmark f.csv --out x.csv", "x.csv: predictions are saved as parquet"),
    ],
)
def test_an_error_names_the_argument_that_is_wrong(
    command: str,
    says: str,
    working_folder: Path,
    tiny_model: FolderOf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    Path("f.csv").write_text("subject,relation,object\naspirin,treats,fever\nb12,treats,anemia\n")
    Path("a").mkdir()
    Path("empty.csv").write_text("subject,relation,object\n")
    Path("semi.csv").write_text("relation;template\ntreats;[X] treats [Y] .\n")
    Path("p.csv").write_text("relation,template\ntreats,[X] treats [Y] .\n")
    words = command.format(folder=tiny_model("bert"))
    code, printed = medprobe(f"{words} --method mask_average")
    assert code == 2
    assert says in printed
    assert len(printed.strip().splitlines()) == 1


def test_a_table_with_one_name_to_rank_is_warned_of(
    working_folder: Path, tiny_model: FolderOf
) -> None:
    row = "subject,relation,object,prompt\naspirin,treats,fever,aspirin treats [Y] .\n"
    Path("f.csv").write_text(row)
    command = f"run {tiny_model('bert')} --method mask_average --benchmark f.csv"
    assert "warning: f.csv: relation treats ranks one name only" in works(command)
    Path("f.csv").write_text(f"{row}zinc,treats,gout,zinc treats [Y] .\n")
    assert "warning" not in works(command)


def test_a_folder_of_facts_needs_no_project(working_folder: Path, tiny_model: FolderOf) -> None:
    Path("facts").mkdir()
    for relation in ("treats", "causes"):
        row = f"aspirin,{relation},fever,aspirin {relation} [Y] ."
        Path("facts", f"{relation}.csv").write_text(f"subject,relation,object,prompt\n{row}\n")
    command = f"run {tiny_model('bert')} --method mask_average --benchmark facts"
    assert "on 2 queries" in works(command)


def with_fact(project: Path, row: str) -> None:
    """Add a fact to the benchmark, and build it again."""
    with (project / "data/tables/facts.csv").open("a", encoding="utf-8") as file:
        file.write(f"{row}\n")
    works("build --benchmark drugs")


def test_a_fact_with_a_special_token_is_probed_by_no_command(project: Path) -> None:
    with_fact(project, "drug 9,treats,[PAD],[Y] is what drug 9 treats")
    options = ("--method", "mask_average", "--benchmark", "drugs")
    for command in (("probe", "--model", "mine"), ("run", "mine"), ("ask", "mine", "it is [Y]")):
        result = CliRunner().invoke(main, [*command, *options])
        assert result.exit_code == 2
        assert "the text contains [PAD], a special token" in result.output
    assert not [*places.PREDICTIONS.rglob("*.parquet")]


def test_what_one_of_several_models_cannot_do_is_said_before_any_is_probed(
    project: Path, tiny_model: FolderOf
) -> None:
    command = f"run mine {tiny_model('gpt2')} --benchmark drugs --method mask_average"
    code, printed = medprobe(command)
    assert code == 2 and "gpt2: the method needs a model of kind masked" in printed
    assert "facts can show" not in printed, "the line before the first model is probed"


def test_names_that_are_one_to_the_model_are_counted(project: Path) -> None:
    with_fact(project, "drug 9,treats,Influenza,[Y] is what drug 9 treats")
    output = works("run mine --method mask_average --benchmark drugs")
    assert "to the tokenizer of mine, of 6 names 2 are the same text as another one" in output
