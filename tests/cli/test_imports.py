"""What people have is found where it lies, checked, and never put over a file of theirs."""

import gzip
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from medprobe.cli.imports import import_files
from medprobe.core.errors import BadInput
from medprobe.core.plugins import find_plugins
from papers.medlama.released_files import released

RELEASES = [name for name in find_plugins("imports") if name != "results"]
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


def lines(path: Path, *rows: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def lama(folder: Path) -> Path:
    """LAMA's archive without ConceptNet and SQuAD."""
    born = {"judgments": [], "sub_label": "Ada", "sub": "/m/1", "obj_label": "Ulm", "obj": "/m/2"}
    row = {**born, "uuid": "1", "masked_sentences": ["Of [MASK].", "A doctor."]}
    lines(folder / "data/Google_RE/place_of_birth_test.jsonl", row)
    about = {"uuid": "2", "sub_label": "France", "sub_uri": "Q1", "obj_label": "Paris"}
    evidence = {"masked_sentence": "Its [MASK].", "obj_surface": "Paris", "sub_surface": "It"}
    lines(
        folder / "data/TREx/P36.jsonl",
        {**about, "obj_uri": "Q2", "evidences": [evidence, evidence]},
    )
    template = {"template": "The capital of [X] is [Y] ."}
    lines(folder / "data/relations.jsonl", *({"relation": n, **template} for n in ("P36", "P37")))
    return folder


def biolama(folder: Path) -> Path:
    """BioLAMA's archive with one source."""
    row = {"predicate_id": "CD1", "sub_uri": "D1", "sub_label": "velotrine", "sub_type": ""}
    row |= {"obj_uris": ["M1"], "obj_labels": ["pain"], "obj_types": [], "obj_aliases": [[]]}
    for split in ("train", "dev", "test"):
        place = folder / f"data/ctd/triples_processed/CD1/{split}.jsonl"
        lines(place, {**row, "uuid": split})
    prompt = {"relation": "CD1", "template": "[X] treats [Y] ."}
    lines(folder / "data/ctd/prompts/manual.jsonl", prompt)
    return folder


def test_relations_of_a_clone_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_files("medlama", clone(tmp_path / "clone"), tmp_path / "data")
    file_names = {path.name for path in (tmp_path / "data/medlama").iterdir()}
    assert file_names == TEXTS
    output = capsys.readouterr().out
    assert "found: 4 files" in output
    assert "missing: relation may_treat" not in output
    assert "missing: relation occurs_after" in output
    assert "medprobe import sentences" in output


def test_sentence_sets_need_no_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = import_files("sentences", clone(tmp_path / "clone"), tmp_path / "data")
    assert report["sentences"].tolist() == [2, 2]
    names = sorted(path.name for path in (tmp_path / "data/sentences").iterdir())
    assert names == [f"pubmed_sents_no_punkt_10k_{number}.txt" for number in range(2)]
    output = capsys.readouterr().out
    assert "sentence_sets: {pubmed_sents_no_punkt_10k_0: {}, " in output
    assert "fewer than the paper's 10,000 sentences" in output
    sentence_file = tmp_path / "mine.txt"
    sentence_file.write_text("a sentence .\n")
    import_files("sentences", sentence_file, tmp_path / "data")
    assert len(list((tmp_path / "data/sentences").iterdir())) == 3


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


def test_biolamas_archive_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = import_files("biolama", biolama(tmp_path / "archive"), tmp_path / "data")
    assert report.to_numpy().tolist() == [["ctd", 1, 1, 1, 1]]
    output = capsys.readouterr().out
    assert (
        "missing: wikidata" in output
        and "missing: umls; its triples require a UMLS licence" in output
    )
    assert (tmp_path / "data/biolama/ctd/prompts/manual.jsonl").is_file()


def test_lipid_is_counted_beside_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(tmp_path / "down/LIPID.json", {"type": "gene", "prompt": "[MASK].", "answer": "BRX2"})
    report = import_files("lipid", tmp_path / "down", tmp_path / "data").set_index("subset")
    assert report.loc["gene"].tolist() == [1, 1, 41839, 2591]
    assert "missing: 46827 prompts of chem" in capsys.readouterr().out
    assert (tmp_path / "data/lipid/LIPID.json").is_file()


def test_a_file_of_ones_own_is_replaced_only_by_force(tmp_path: Path) -> None:
    source, data = clone(tmp_path / "clone"), tmp_path / "data"
    import_files("medlama", source, data)
    import_files("medlama", source, data)  # the same files: nothing to lose
    own_file = data / "medlama/may_treat_6.csv"
    own_file.write_text("mine")
    (data / "medlama/may_treat_9.csv").write_text("of another release")
    (data / "medlama/notes.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"may_treat_6\.csv: exists and differs; --force"):
        import_files("medlama", source, data)
    assert own_file.read_text() == "mine"
    import_files("medlama", source, data, force=True)
    assert own_file.read_text() != "mine"
    assert not (data / "medlama/may_treat_9.csv").exists()
    assert (data / "medlama/notes.txt").read_text() == "mine"


def test_a_link_into_a_cache_is_not_written_through(tmp_path: Path) -> None:
    data, cached = tmp_path / "data/sentences", tmp_path / "cached"
    data.mkdir(parents=True)
    cached.write_text("as it was\n")
    (data / "mine.txt").symlink_to(cached)
    (tmp_path / "mine.txt").write_text("a sentence .\n")
    import_files("sentences", tmp_path / "mine.txt", tmp_path / "data", force=True)
    assert cached.read_text() == "as it was\n"
    assert (data / "mine.txt").read_text() == "a sentence .\n"


def test_a_link_out_of_an_archive_brings_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a key .\n")
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "first.txt").write_text("velotrine is given .\n")
    (archive / "again.txt").symlink_to(archive / "first.txt")
    import_files("sentences", archive, tmp_path / "data")
    (archive / "second.txt").symlink_to(secret)
    (archive / "loop").symlink_to(archive)
    with pytest.raises(BadInput, match=r"second\.txt: a link to a file outside of the folder"):
        import_files("sentences", archive, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    link = tmp_path / "link"  # what the user names is the user's choice
    link.symlink_to(secret)
    import_files("sentences", link, tmp_path / "other")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    for name in ("pipe", "archive/pipe.txt"):
        os.mkfifo(tmp_path / name)
    for path, problem in (("pipe", "no such file or folder"), ("archive", "no text file")):
        with pytest.raises(BadInput, match=problem):
            import_files("sentences", tmp_path / path, tmp_path / "data")


@pytest.mark.parametrize("what", [name for name in RELEASES if name != "sentences"])
def test_a_folder_without_it_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="empty: "):
        import_files(what, tmp_path / "empty", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("what", RELEASES)
def test_an_archive_is_refused(tmp_path: Path, what: str) -> None:
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as packed:
        packed.writestr("../outside.csv", "a")
    (tmp_path / "release.gz").write_bytes(gzip.compress(bytes(70_000_000), 1))
    for name in ("release.zip", "release.gz"):
        with pytest.raises(BadInput, match=rf"{name}.*; "):
            import_files(what, tmp_path / name, tmp_path / "data")
    assert {path.name for path in tmp_path.iterdir()} == {"release.zip", "release.gz"}


def test_released_files_are_taken_as_they_lie(
    released_data: Callable[[str], Path], tmp_path: Path
) -> None:
    report = import_files("lama", released_data("lama"), tmp_path).set_index("set")
    assert report.loc["google-re"].tolist() == [5528, 6106, 870]
    assert report.loc["squad"].tolist() == [305, 305, 303]
    report = import_files("sentences", released_data("sentences"), tmp_path)
    assert report["sentences"].tolist() == [10_000, 10_000]
