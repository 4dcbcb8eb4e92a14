"""Released annotation files are brought in, and checked row by row where they are read."""

from pathlib import Path

import pytest

from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.papers.diskne.annotation import read_released
from medprobe.pipeline.doctor import Source, list_sources
from medprobe.sources.releases import import_files

HEADER = "pair_id,CUI,label,category,original_cui,start_index,end_index\n"


def released(folder: Path, *rows: str) -> Path:
    folder.mkdir()
    path = folder / "DisknE_medical_similar_annotation.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return folder


RIGHT = [
    "p1,C9900001,entailment,symptoms_diseases,C9900001,3,7",
    '"p1,ng",C9900002,non-entailment,symptoms_diseases,C9900001,,',
]


def test_files_come_beside_those_that_are_there(tmp_path: Path) -> None:
    target = tmp_path / "data/diskne"
    target.mkdir(parents=True)
    for name in ("annotation.csv", "DisknE_medical_random_annotation.csv"):
        (target / name).write_text("weeks of work")
    import_files("annotation", released(tmp_path / "released", *RIGHT), tmp_path / "data")
    assert {path.name: path.read_text() == "weeks of work" for path in target.iterdir()} == {
        "annotation.csv": True,
        "DisknE_medical_random_annotation.csv": True,
        "DisknE_medical_similar_annotation.csv": False,
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("p1,C9900001,entailment,symptoms_diseases,C9900003,3,7", "CUI C9900001 and original_cui"),
        ('"p1,ng",C9900001,non-entailment,symptoms_diseases,C9900001,,', "are the same"),
        ("p1,C9900002,non-entailment,symptoms_diseases,C9900001,,", "does not end in ,ng"),
        ('"p1,ng",C9900001,entailment,symptoms_diseases,C9900001,3,7', "ends in ,ng, but"),
        (
            '"p2,ng",C9900002,non-entailment,symptoms_diseases,C9900001,,',
            "'p2' has a negative but no",
        ),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"annotation\.csv, line 4: .*{message}"):
        read_released(*released(tmp_path / "released", *RIGHT, row).iterdir())


def test_the_doctor_lists_the_sheet_with_what_it_enables(tmp_path: Path) -> None:
    sheet = Source(source="diskne/annotation.csv", bytes=None, enables=["(diskne)"])
    assert sheet in list_sources(Params(), tmp_path)
