"""Released annotation files are checked row by row before they are brought in."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import FolderOf
from helpers.needed import SECTIONS
from medprobe.cli import main
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
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
    (target / "DisknE_medical_random_annotation.csv").touch()
    report = import_files("annotation", released(tmp_path / "released", *RIGHT), tmp_path / "data")
    assert list(report["rows"]) == [1, 1]
    assert [path.name for path in sorted(target.iterdir())] == [
        "DisknE_medical_random_annotation.csv",
        "DisknE_medical_similar_annotation.csv",
    ]


def test_a_sheet_that_somebody_filled_in_is_replaced_only_by_force(tmp_path: Path) -> None:
    sheet = tmp_path / "data/diskne/annotation.csv"
    sheet.parent.mkdir(parents=True)
    sheet.write_text("weeks of work")
    folder = released(tmp_path / "released", *RIGHT)
    with pytest.raises(
        BadInput, match=r"annotation\.csv: would mix with the imported files; --force"
    ):
        import_files("annotation", folder, tmp_path / "data")
    assert [path.read_text() for path in sheet.parent.iterdir()] == ["weeks of work"]
    (tmp_path / "params.yaml").write_text(SECTIONS)
    command = ["import", "annotation", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert "--force" in CliRunner().invoke(main, command).output
        assert CliRunner().invoke(main, [*command, "--force"]).exit_code == 0
    assert [path.name for path in sheet.parent.iterdir()] == [
        "DisknE_medical_similar_annotation.csv"
    ]


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
        import_files("annotation", released(tmp_path / "released", *RIGHT, row), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_odd_rows_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        *RIGHT,
        RIGHT[0],  # twice
        '"p1,neg",C9900003,non-entailment,symptoms_diseases,C9900002,,',  # of another disease
        "p3,C9900001,entailment,symptoms_diseases,C9900001,3,7",  # without negatives
        "He is well, now,C9900001,entailment,symptoms_diseases,C9900001,3,7".replace(
            "He is well, now", '"He is well, now"'
        ),
    ]
    report = import_files("annotation", released(tmp_path / "released", *rows), tmp_path / "data")
    counts = report.set_index("label")[["rows", "twice", "alone", "by_premise"]]
    assert counts.loc[1].tolist() == [4, 1, 2, 1]
    assert counts.loc[0].tolist() == [2, 0, 1, 0]
    assert "by_premise" in capsys.readouterr().out


def test_a_folder_without_such_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match="no DisknE_"):
        import_files("annotation", tmp_path / "none", tmp_path / "data")


def test_the_doctor_lists_the_sheet_with_what_it_enables(tmp_path: Path) -> None:
    sheet = Source(source="diskne/annotation.csv", bytes=None, enables=["(diskne)"])
    assert sheet in list_sources(Params(), tmp_path)


def test_all_four_released_files_are_imported_and_odd_rows_are_reported(
    released_data: FolderOf, tmp_path: Path
) -> None:
    import_files("annotation", released_data("diskne"), tmp_path)
    report = import_files("annotation", released_data("diskne-random"), tmp_path)
    assert len(list((tmp_path / "diskne").iterdir())) == 4
    totals = report.groupby(["file", "label"])[["rows", "alone", "by_premise"]].sum()
    medical, terms = (f"DisknE_{of}_random_annotation" for of in ("medical", "terminological"))
    assert totals.loc[(medical, 1)].tolist() == [383, 25, 2]
    assert totals.loc[(medical, 0)].tolist() == [3760, 0, 20]
    assert totals.loc[(terms, 1)].tolist() == [259, 24, 0]
    assert totals.loc[(terms, 0)].tolist() == [2370, 20, 0]
