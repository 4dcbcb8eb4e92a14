"""A clone of MedLAMA's repository, and sentence sets, are brought in."""

from pathlib import Path

import pytest

from helpers import FolderOf
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.papers.medlama.benchmarks.medlama_released import find_released_files
from medprobe.papers.medlama.sentences import read_sentences
from medprobe.pipeline.doctor import list_sources, missing_sources
from medprobe.sources.releases import import_files
from papers.medlama.released_files import released
from pipeline.test_doctor import sources

TEXTS = {"may_treat_6.csv", "may_treat_6_hard.csv", "may_prevent_6.csv", "may_prevent_6_hard.csv"}


def clone(folder: Path) -> Path:
    """A clone of MedLAMA's repository, with invented facts."""
    released(folder / "data/medlama")
    (folder / "data/elicit_corpora").mkdir()
    for number in range(2):
        name = f"pubmed_sents_no_punkt_10k_{number}"
        (folder / "data/elicit_corpora" / name).write_text("velotrine is given .\nso is water .\n")
    (folder / "README.md").write_text("MedLAMA")
    return folder


def test_relations_of_a_clone_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_files("medlama", clone(tmp_path / "clone"), tmp_path / "data")
    file_names = {path.name for path in (tmp_path / "data/medlama").iterdir()}
    assert file_names == TEXTS
    assert "copied 4 files" in capsys.readouterr().out


def test_sentence_sets_need_no_ending(tmp_path: Path) -> None:
    import_files("sentences", clone(tmp_path / "clone"), tmp_path / "data")
    names = sorted(path.name for path in (tmp_path / "data/sentences").iterdir())
    assert names == [f"pubmed_sents_no_punkt_10k_{number}.txt" for number in range(2)]
    sentence_file = tmp_path / "mine.txt"
    sentence_file.write_text("a sentence .\n")
    import_files("sentences", sentence_file, tmp_path / "data")
    assert len(list((tmp_path / "data/sentences").iterdir())) == 3


def test_released_sentence_sets_are_taken_as_they_lie(
    released_data: FolderOf, tmp_path: Path
) -> None:
    """All have 10,000 lines, of which one is blank in three of PubMed's."""
    for file in import_files("sentences", released_data("sentences"), tmp_path):
        assert 9_999 <= len([*filter(None, read_sentences(file))]) <= 10_000


def test_files_of_two_releases_are_not_mixed(tmp_path: Path) -> None:
    import_files("medlama", clone(tmp_path / "clone"), tmp_path / "data")
    (tmp_path / "data/medlama/may_treat_9.csv").write_text("of another release")
    with pytest.raises(BadInput, match=r"may_treat_9\.csv: it and may_treat_6\.csv are both"):
        find_released_files(tmp_path / "data/medlama")


def test_released_sources_and_sentence_sets_are_listed_with_sizes(tmp_path: Path) -> None:
    (tmp_path / "medlama").mkdir()
    (tmp_path / "medlama/may_treat_1.csv").write_bytes(b"x" * 1500)
    (tmp_path / "sentences").mkdir()
    (tmp_path / "sentences/other.txt").write_text("a sentence .\n")
    params = Params(sentence_sets={"mine": {}}, benchmarks={"medlama_released": {"real": {}}})
    rows = sources(params, tmp_path)
    assert rows["medlama"] == (1500, ["real"])
    assert rows["umls/MRREL.RRF"][0] is None
    assert "(medlama)" in rows["umls/MRREL.RRF"][1]
    assert rows["sentences/mine.txt"] == (None, ["sentence_sets.mine"])
    assert missing_sources(list_sources(params, tmp_path)) == ["sentences/mine.txt"]
    assert rows["sentences/other.txt"] == (13, ["(sentence_sets.other)"])
