"""LAMA's archive and LIPID's file are brought in."""

from pathlib import Path

import pytest

from helpers import FolderOf
from helpers.jsonl import write_lines
from helpers.project import Project
from helpers.released_project import begun, gate_rows
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
    report = import_files("lama", lama(tmp_path / "archive"), tmp_path / "data")
    assert report.to_numpy().tolist() == [["google-re", 1, 2, 1], ["t-rex", 1, 2, 1]]
    output = capsys.readouterr().out
    assert "missing: ConceptNet; list the other sets" in output
    assert "missing: T-REx's relations P37" in output
    assert "sets: [google-re, t-rex]" in output
    assert (tmp_path / "data/lama/TREx/P36.jsonl").is_file()


def test_lipid_is_counted_beside_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(
        tmp_path / "down/LIPID.json", {"type": "gene", "prompt": "[MASK].", "answer": "BRX2"}
    )
    report = import_files("lipid", tmp_path / "down", tmp_path / "data").set_index("subset")
    assert report.loc["gene"].tolist() == [1, 1, 41839, 2591]
    assert "missing: 46827 prompts of chem" in capsys.readouterr().out
    assert (tmp_path / "data/lipid/LIPID.json").is_file()


def test_released_files_are_taken_as_they_lie(released_data: FolderOf, tmp_path: Path) -> None:
    report = import_files("lama", released_data("lama"), tmp_path).set_index("set")
    assert report.loc["google-re"].tolist() == [5528, 6106, 870]
    assert report.loc["squad"].tolist() == [305, 305, 303]


def test_the_gate_has_no_false_alarm_on_released_files(
    tmp_path: Path, released_data: FolderOf
) -> None:
    settings = {"sets": ["google-re", "t-rex", "squad"]}
    project: Project = begun(tmp_path / "project", benchmarks={"lama": {"real": settings}})
    project.works("medprobe", "import", "lama", str(released_data("lama")))
    assert gate_rows(project) == (34_618, 2_805)
