"""MedNLI, MEDIQA-NLI and the annotation: what is read, and one clear line for what is amiss."""

import json
from pathlib import Path

import pytest

from medprobe.core.errors import BadInput
from medprobe.papers.diskne import annotation, mednli
from papers.diskne.diskne_world import lines, write_csv


def row(pair: str, **changes: str) -> str:
    fields = {"pairID": pair, "gold_label": "neutral", "sentence1": "a", "sentence2": "b"}
    return json.dumps({**fields, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(mednli.MEDNLI):
        lines(tmp_path / name, [row(f"p{number}", sentence1_parse="(ROOT a)")])
    lines(tmp_path / mednli.MEDIQA, ['{"pairID": "q", "sentence1": "c\u2028d", "sentence2": "e"}'])
    lines(tmp_path / mednli.MEDIQA_LABELS, ["pair_id,label", "q,entailment"])
    return tmp_path


def test_reads_both(folder: Path) -> None:
    pairs = mednli.read(folder, folder)
    assert pairs["pair_id"].tolist() == ["p0", "p1", "p2", "q"]
    assert pairs.loc[3].tolist() == ["q", "entailment", "c\u2028d", "e"]


def test_pairs_on_which_nobody_agreed_are_left_out(folder: Path) -> None:
    lines(folder / mednli.MEDNLI[1], [row("p1", gold_label="-"), row("p3")])
    lines(folder / mednli.MEDIQA_LABELS, ["pair_id,label", "q,-"])
    assert mednli.read(folder, folder)["pair_id"].tolist() == ["p0", "p3", "p2"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (mednli.MEDNLI[1], None, "no such file"),
        (mednli.MEDNLI[1], ["{"], "line 1: not JSON"),
        (mednli.MEDNLI[1], [row("x"), '{"pairID": "y"}'], "line 2: no field 'sentence1'"),
        (
            mednli.MEDIQA_LABELS,
            ["pair_id,label", "q,neutral", "q,entailment"],
            "line 3: pair q has a label on line 2 already",
        ),
        (
            mednli.MEDIQA_LABELS,
            ["pair_id,label", "q,neutral", "z,neutral"],
            "line 3: pair z is not",
        ),
        (mednli.MEDNLI[1], [row("p0")], "pair p0 occurs twice"),
        (mednli.MEDIQA_LABELS, ["pair_id,label", "r,neutral"], "pair q has no label"),
        (mednli.MEDIQA_LABELS, ["q,neutral"], "line 1: no column 'pair_id'"),
        (mednli.MEDIQA_LABELS, ["pair_id,label", "q,yes"], "line 2: label is 'yes', expected"),
    ],
)
def test_names_what_is_amiss(folder: Path, name: str, text: list[str] | None, message: str) -> None:
    (folder / name).unlink()
    if text is not None:
        lines(folder / name, text)
    with pytest.raises(BadInput, match=message):
        mednli.read(folder, folder)


HEADER = ["pair_id", "CUI", "label", "category", "original_cui", "start_index", "end_index"]
GOOD = ["p", "C0000001", "entailment", "symptoms_diseases", "C0000001", "4", "6"]


def test_released_annotation(tmp_path: Path) -> None:
    negative = ["p,ng", "C0000002", "non-entailment", "procedure_diseases", "C0000001", "", ""]
    write_csv(tmp_path / "a.csv", [HEADER, GOOD, negative])
    first, second = annotation.read_released(tmp_path / "a.csv").values.tolist()
    assert first == ["p", "C0000001", 1, "symptoms", "C0000001", 4, 7]  # end is exclusive here
    assert second == ["p", "C0000002", 0, "procedures", "C0000001", -1, -1]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, "C000001", "line 2: CUI is 'C000001', expected C and 7 digits"),
        (4, "", "line 2: original_cui is empty"),
        (2, "entails", "line 2: label is 'entails'.*'entailment' or 'non-entailment'"),
        (3, "symptom_diseases", "did you mean 'symptoms_diseases'"),
        (5, "", "line 2: start is empty"),
    ],
)
def test_bad_released_row(tmp_path: Path, place: int, value: str, message: str) -> None:
    write_csv(tmp_path / "a.csv", [HEADER, [*GOOD[:place], value, *GOOD[place + 1 :]]])
    with pytest.raises(BadInput, match=message):
        annotation.read_released(tmp_path / "a.csv")


def test_sheet(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    complete_row = ["p", "a", "b gout", "gout", "C0000001", "2", "6", "tests", "yes"]
    write_csv(path, [[*annotation.SHEET, "keep"], complete_row, [*complete_row[:-1], "no"]])
    assert annotation.read_sheet(path).values.tolist() == [
        ["p", "C0000001", 1, "tests", "C0000001", 2, 6]
    ]
    write_csv(path, [[*annotation.SHEET, "keep"], [*complete_row[:-1], ""]])
    with pytest.raises(BadInput, match="line 2: keep is empty; write yes or no"):
        annotation.read_sheet(path)
