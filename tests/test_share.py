"""Results in the forms of others: Every Eval Ever, the hub's .eval_results, result cards."""

import getpass
import json
import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import parse_eval_result_entries
from jsonschema import Draft7Validator

from medprobe.cli import main
from medprobe.core import places
from medprobe.core.params import Params, ScoreParams
from medprobe.tracking import lineage, shared
from toy_project import NAMED, project, score_once

FORMS = ("every-eval-ever", "eval-results", "cards")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `merge` writes of a project, in which a person's name is recorded."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(getpass, "getuser", lambda: "ada-lovelace")
        project(folder, monkeypatch)
        path = places.PREDICTIONS / "taught/contrastive/made_up.parquet"
        record = places.RUNS / "taught/contrastive/made_up.json"
        with lineage.recorded(record, path, {"device": "cpu"}):
            pass
        assert "ada-lovelace" in record.read_text()
        score_once(Params(score=ScoreParams(bootstrap=50), **NAMED))
        options = [word for form in FORMS for word in ("--format", form)]
        command = ["merge", ".", "--out", "shared", "--organization", "our-group", *options]
        outcome = CliRunner().invoke(main, command)
        assert outcome.exit_code == 0, outcome.output
    return folder / "shared"


def records(out: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(out.glob("every-eval-ever/*/*/*.json"))]


def test_records_have_every_mean_with_its_interval_and_queries(out: Path) -> None:
    file = shared.read(out)
    records_by_name = records(out)
    assert len(records_by_name) == len(file.results) == 2
    for record, result in zip(records_by_name, file.results, strict=True):
        assert record["model_info"]["name"] == result.model
        listed = {
            (
                metric_result["metric_config"]["additional_details"]["variant"],
                metric_result["evaluation_name"].partition("/")[2],
                metric_result["metric_config"]["metric_id"].removeprefix("medprobe."),
            ): metric_result
            for metric_result in record["evaluation_results"]
        }
        expected_means = {
            (variant, subset, metric): numbers
            for variant, by_subset in result.scores.items()
            for subset, relations in by_subset.items()
            if "/" not in subset
            for metric, numbers in relations["macro"].items()
        }
        assert listed.keys() == expected_means.keys()
        assert "low" in expected_means["default", "full", "acc_at_1"]
        for key, metric_result in listed.items():
            numbers, details = expected_means[key], metric_result["score_details"]
            assert details["score"] == numbers["value"]
            if "low" in numbers:
                interval = details["uncertainty"]["confidence_interval"]
                assert (interval["lower"], interval["upper"]) == (numbers["low"], numbers["high"])
            hashes = metric_result["source_data"]["additional_details"]
            assert hashes["queries_sha256"] == file.benchmarks["made_up"].queries["full"]


def test_records_are_valid_by_the_schema(out: Path) -> None:
    path = Path(os.environ.get("MEDPROBE_RELEASED_DATA", ""), "every-eval-ever.schema.json")
    if not path.is_file():
        pytest.skip(
            "the folder that MEDPROBE_RELEASED_DATA names has no every-eval-ever.schema.json"
        )
    validator = Draft7Validator(json.loads(path.read_text(encoding="utf-8")))
    for record in records(out):
        assert [error.message for error in validator.iter_errors(record)] == []


def test_the_hubs_own_library_reads_its_form(out: Path) -> None:
    path = out / "eval-results/taught/.eval_results/made_up-contrastive.yaml"
    [entry] = parse_eval_result_entries(yaml.safe_load(path.read_text()))
    assert (entry.dataset_id, entry.task_id, entry.value) == ("our-group/made_up", "full", 0.75)
    assert "acc@1 by contrastive, interval 0." in entry.notes and "20 queries" in entry.notes


def test_the_hubs_form_needs_an_account(out: Path, tmp_path: Path) -> None:
    command = ["merge", str(out), "--out", str(tmp_path / "x"), "--format", "eval-results"]
    outcome = CliRunner().invoke(main, command)
    assert outcome.exit_code == 2 and "--organization" in outcome.output
    assert not (tmp_path / "x").exists()


def test_a_card_says_what_was_asked_how_and_what_not_to_conclude(out: Path) -> None:
    text = (out / "cards/taught.md").read_text()
    assert "made-up facts" in text and "nobody, never" in text
    assert "| full | contrastive | 75.0 % |" in text
    assert "step-50" not in text and "Imported" not in text
    assert "## What not to conclude" in text and "patients" in text
    assert sorted(path.name for path in (out / "cards").iterdir()) == ["taught.md", "untaught.md"]


def test_a_card_of_an_imported_model_says_so(out: Path, tmp_path: Path) -> None:
    content = json.loads((out / shared.NAME).read_text())
    content["results"][0]["made"] = {"imported.tool": "lm-eval", "imported.tool_version": "0.4.13"}
    content["results"][0]["kind"] = "imported"
    (tmp_path / shared.NAME).write_text(json.dumps(content))
    target = tmp_path / "again"
    options = ["--format", "cards", "--format", "every-eval-ever"]
    command = ["merge", str(tmp_path / shared.NAME), "--out", str(target), *options]
    assert CliRunner().invoke(main, command).exit_code == 0
    text = (target / "cards/taught.md").read_text()
    assert "Kind of model: imported" in text and "**Imported.**" in text
    library = records(target)[0]["eval_library"]
    assert (library["name"], library["version"]) == ("lm-eval", "0.4.13")


def test_the_login_name_is_in_nothing_that_is_shared(out: Path) -> None:
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert b"ada-lovelace" not in path.read_bytes(), path
