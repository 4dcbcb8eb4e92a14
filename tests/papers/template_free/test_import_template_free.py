"""LAMA's archive and LIPID's file are brought in."""

from pathlib import Path

import pytest

from helpers import FolderOf
from helpers.jsonl import write_lines
from helpers.project import Project
from helpers.released_project import begun, gate_rows
from medprobe.core.params import Params
from medprobe.pipeline.doctor import list_sources, missing_sources
from medprobe.sources.releases import import_files


def lama(folder: Path) -> Path:
    """LAMA's archive without ConceptNet and SQuAD."""
    born = {"judgments": [], "sub_label": "Ada", "sub": "/m/1", "obj_label": "Ulm", "obj": "/m/2"}
    row = {**born, "uuid": "1", "masked_sentences": ["Of [MASK].", "A doctor."]}
    write_lines(folder / "data/Google_RE/place_of_birth_test.jsonl", row)
    about = {"uuid": "2", "sub_label": "France", "sub_uri": "Q1", "obj_label": "Paris"}
    evidence = {"masked_sentence": "Its [MASK].", "obj_surface": "Paris", "sub_surface": "It"}
    write_lines(
        folder / "data/TREx/P36.jsonl",
        {**about, "obj_uri": "Q2", "evidences": [evidence, evidence]},
    )
    template = {"template": "The capital of [X] is [Y] ."}
    write_lines(
        folder / "data/relations.jsonl", *({"relation": n, **template} for n in ("P36", "P37"))
    )
    return folder


def test_lamas_archive_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = import_files("lama", lama(tmp_path / "archive"), tmp_path / "data")
    assert {path.relative_to(tmp_path / "data/lama").as_posix() for path in copies} == {
        *("Google_RE/place_of_birth_test.jsonl", "TREx/P36.jsonl", "relations.jsonl")
    }
    assert "not there: ConceptNet/*.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize(
    "settings",
    [{"sets": ["google-re", "t-rex"]}, {"sets": ["google-re"], "families": {}}],
    ids=["templates of T-REx", "families of Google-RE"],
)
def test_the_doctor_misses_the_file_of_templates(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    """It says so before the build, which cannot do without."""
    import_files("lama", lama(tmp_path / "archive"), data := tmp_path / "data")
    params = Params(benchmarks={"lama": {"real": settings}})
    assert missing_sources(list_sources(params, data)) == []
    (data / "lama/relations.jsonl").unlink()
    assert missing_sources(list_sources(params, data)) == ["lama/relations.jsonl"]


def test_lipid_is_found(tmp_path: Path) -> None:
    row = {"type": "gene", "prompt": "[MASK].", "answer": "BRX2"}
    write_lines(tmp_path / "down/LIPID.json", row)
    assert import_files("lipid", tmp_path / "down", tmp_path / "data") == [
        tmp_path / "data/lipid/LIPID.json"
    ]


def test_the_gate_has_no_false_alarm_on_released_files(
    tmp_path: Path, released_data: FolderOf
) -> None:
    settings = {"sets": ["google-re", "t-rex", "squad"]}
    project: Project = begun(tmp_path / "project", benchmarks={"lama": {"real": settings}})
    project.works("medprobe", "import", "lama", str(released_data("lama")))
    escaped = {"expect_names_to_be_whole": 182}  # queries whose names hold %C5%A0 for Š
    assert gate_rows(project, **escaped) == (34_624, 2_805)
