"""Released annotation files are checked row by row before they are brought in."""

from pathlib import Path

import pytest

from medprobe.commands.import_ import import_annotation
from medprobe.core.errors import BadInput

REAL = Path(__file__).parent.parent.parent / "shared/data/diskne"
HEADER = "pair_id,CUI,label,category,original_cui,start_index,end_index\n"


def released(folder: Path, *rows: str) -> Path:
    folder.mkdir()
    path = folder / "DisknE_medical_similar_annotation.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return folder


def test_files_take_the_place_of_the_annotation_there(tmp_path: Path) -> None:
    rows = [
        "p1,C9900001,entailment,symptoms_diseases,C9900001,3,7",
        '"p1,ng",C9900002,non-entailment,symptoms_diseases,C9900001,,',
    ]
    sheet = tmp_path / "data/diskne/annotation.csv"
    sheet.parent.mkdir(parents=True)
    sheet.touch()
    report = import_annotation(released(tmp_path / "released", *rows), tmp_path / "data")
    assert list(report["rows"]) == [1, 1]
    there = [path.name for path in sheet.parent.iterdir()]
    assert there == ["DisknE_medical_similar_annotation.csv"]


def test_a_wrong_row_is_named_and_nothing_is_copied(tmp_path: Path) -> None:
    folder = released(tmp_path / "released", "p1,C99,entailment,symptoms_diseases,C9900001,3,7")
    with pytest.raises(BadInput, match=r"annotation\.csv.*2.*C99"):
        import_annotation(folder, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    with pytest.raises(BadInput, match="no DisknE_"):
        import_annotation(tmp_path, tmp_path / "data")


@pytest.mark.skipif(not REAL.is_dir(), reason="the released annotation files are not here")
def test_the_released_files_have_the_counts_of_the_specification(tmp_path: Path) -> None:
    report = import_annotation(REAL, tmp_path)
    counts = report.set_index(["file", "category", "label"])["rows"]
    medical = counts["DisknE_medical_similar_annotation"].groupby("label").sum()
    assert (medical[1], medical[0]) == (383, 3750)
    terms = counts["DisknE_terminological_similar_annotation"]
    assert (terms["terminological", 1], terms["terminological", 0]) == (259, 2380)
    positives = counts["DisknE_medical_similar_annotation"].xs(1, level="label")
    assert positives.to_dict() == {
        "symptoms": 122,
        "tests": 123,
        "treatments": 69,
        "procedures": 69,
    }
