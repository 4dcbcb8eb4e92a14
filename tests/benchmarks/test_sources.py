"""What builders read is what they say they read: dvc.yaml's dependencies are made from it."""

from pathlib import Path

import pytest

from helpers.reading import check_reading, check_refusal
from medprobe import benchmarks
from medprobe.core.errors import BadInput


def test_a_builder_reads_its_sources_all_of_them_and_nothing_else(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("data/tables").mkdir(parents=True)
    Path("data/other.csv").write_text("subject,relation,object,prompt\n")
    for name, subject in (("facts", "X"), ("told", "Z")):
        row = f"{subject},treats,pain,{subject} is given for [Y] ."
        Path(f"data/tables/{name}.csv").write_text(f"subject,relation,object,prompt\n{row}\n")
    check_reading("table", {"facts": "tables/facts.csv", "train": "tables/told.csv"}, monkeypatch)


@pytest.mark.parametrize("facts", ["evil2.csv", "tables/../../outside.csv"])
def test_a_path_outside_of_the_sources_is_refused(working_folder: Path, facts: str) -> None:
    check_refusal("table", {"facts": facts}, "facts")


def test_benchmarks_are_found_by_name() -> None:
    assert "statistics" not in benchmarks.list_names()
    for wrong in ["tabl", "statistics"]:
        with pytest.raises(BadInput, match="no builder"):
            benchmarks.find(wrong)
    with pytest.raises(BadInput, match=r"did you mean 'table'\?"):
        benchmarks.find("tabl")
