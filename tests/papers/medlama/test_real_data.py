"""A project without the sample world: released files, and a model from a folder; and the first hour
with the files as they were really released, where these are there."""

import random
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers import ROOT, FolderOf
from helpers.project import Project
from helpers.released_project import begun, gate_rows
from papers.medlama.released_files import OBJECTS, SUBJECTS, released

# all-MiniLM-L6-v2, not rewired, all 19 relations, in per cent.
UNREWIRED = {
    ("full", "acc_at_1"): 1.489,
    ("full", "acc_at_5"): 8.947,
    ("full", "acc_at_10"): 12.205,
    ("hard", "acc_at_1"): 0.096,
    ("hard", "acc_at_5"): 4.280,
    ("hard", "acc_at_10"): 6.849,
}
SENTENCE = "patients with {} were given {} and were followed for about {} weeks without relapse"


def sentences(path: Path) -> None:
    draw = random.Random(7)
    texts = {
        SENTENCE.format(draw.choice(OBJECTS), draw.choice(SUBJECTS), draw.randint(2, 99))
        for _ in range(80)
    }
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(sorted(texts)) + "\n")


def test_released_files_and_a_model_from_a_folder(tmp_path: Path, tiny_model: FolderOf) -> None:
    project = Project(tmp_path / "project")
    source = released(tmp_path / "released")
    project.works("medprobe", "import", "medlama", str(source))
    sentences(project.folder / "data/sentences/pubmed.txt")
    params = project.params()
    kept_sections = {name: params[name] for name in ("seed", "engine", "score", "track")}
    project.write_params(
        kept_sections
        | {
            "folders": {"mine": str(tiny_model("bert"))},
            "models": {"masked": {"mine": {}}},
            "sentence_sets": {"pubmed": {}},
            "rewire": {"steps": 2, "checkpoint_every": 1, "batch": 16},
            "benchmarks": {
                "medlama_released": {"real": {"relations": ["may_treat", "may_prevent"]}}
            },
            "methods": {
                "masked": {
                    "mask_average": {"real": {}},
                    "contrastive": {"real": {"sets": ["pubmed"]}},
                }
            },
        }
    )
    project.works("dvc", "add", "--quiet", "data")
    project.works("medprobe", "doctor")
    project.works("medprobe", "repro")
    assert not (project.folder / "data/sample").exists()
    numbers = pd.read_csv(project.folder / "reports/comparison.csv")
    assert set(numbers["benchmark"]) == {"real"}
    assert set(numbers["model"]) == {"mine", "baseline"}
    assert {"mask_average", "contrastive", "contrastive:original"} <= set(numbers["method"])
    assert "up to date" in project.works("dvc", "repro")


def the_day() -> tuple[list[str], dict[str, Any]]:
    """The commands of own-data.md's day with released files, and what its params.yaml says."""
    page = (ROOT / "docs/how-to/own-data.md").read_text(encoding="utf-8")
    blocks = [
        block.partition("\n```")[0] for block in page.partition("five commands")[2].split("```")
    ]
    commands, settings = blocks[1].split("\n"), blocks[3].removeprefix("yaml\n")
    return [command_words for command_words in commands if command_words], yaml.safe_load(settings)


@pytest.mark.parametrize("real", [False, True], ids=["made-encoder", "all-MiniLM-L6-v2"])
def test_medlama_as_released_comes_to_the_page_as_the_documents_say(
    tmp_path: Path, tiny_model: FolderOf, released_data: FolderOf, real: bool
) -> None:
    """own-data.md's commands and settings, in a clone laid out as the released one, with one
    sentence set. A made encoder is asked little of each relation; the real one all, and its figures
    without rewiring are known."""
    released = released_data("medlama-released")
    encoder = released_data("all-MiniLM-L6-v2") if real else tiny_model("bert")
    commands, settings = the_day()
    assert len(commands) <= 6
    project = begun(tmp_path / "project", **settings)
    if not real:
        few = {
            "rewire": {"steps": 1, "checkpoint_every": 1, "batch": 8},
            "score": {"bootstrap": 20},
        }
        project.replace(benchmarks={"medlama_released": {"real": {"per_relation": 20}}}, **few)
    (checkpoint,) = settings["folders"].values()
    (sentence_set,) = settings["sentence_sets"]
    (project.folder / checkpoint).parent.mkdir()
    shutil.copytree(encoder, project.folder / checkpoint)
    clone = tmp_path / "medlama/data"
    (clone / "elicit_corpora").mkdir(parents=True)
    shutil.copytree(released, clone / "medlama")
    shutil.copy(released_data("sentences") / sentence_set, clone / "elicit_corpora")
    output = ""
    for command in commands:
        output += project.works(*command.replace("~", str(tmp_path)).split())
    assert "copied 38 files" in output and "not there" not in output
    assert f"sentence_sets.{sentence_set}" in output
    outputs = project.folder / "outputs"
    assert (outputs / "passed/real").is_file()
    assert (outputs / f"validation/sentences/{sentence_set}/result.json").is_file()
    assert "may_prevent" in (project.folder / "reports/index.html").read_text()
    assert "tokens per second" in (project.folder / "reports/provenance.js").read_text()
    numbers = pd.read_csv(project.folder / "reports/comparison.csv")
    macro = numbers[(numbers["relation"] == "macro") & (numbers["model"] == "minilm")]
    assert {"contrastive", "contrastive:original"} <= set(macro["method"])
    queries = pd.read_parquet(outputs / "benchmarks/real/queries.parquet")
    assert queries["relation"].nunique() == 19
    if real:
        assert queries["subset"].value_counts().to_dict() == {"full": 19_000, "hard": 15_329}
        names = pd.read_parquet(outputs / "benchmarks/real/candidates.parquet")
        assert names["subset"].value_counts().to_dict() == {"full": 22_923, "hard": 17_532}
        unrewired = macro[macro["method"] == "contrastive:original"]
        measured = unrewired.set_index(["subset", "metric"])["value"]
        for (subset, metric), percent in UNREWIRED.items():
            assert 100 * measured[subset, metric] == pytest.approx(percent, abs=0.03)


def test_the_gate_has_no_false_alarm_on_released_files(
    tmp_path: Path, released_data: FolderOf
) -> None:
    project = begun(tmp_path / "project", benchmarks={"medlama_released": {"real": {}}})
    project.works("medprobe", "import", "medlama", str(released_data("medlama-released")))
    own_answer = {"expect_answers_not_to_be_the_subject": 200}  # of associated_morphology_of
    assert gate_rows(project, **own_answer) == (34_329, 40_455)
