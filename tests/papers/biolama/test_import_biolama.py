"""BioLAMA's archive is brought in."""

from pathlib import Path

from helpers.jsonl import write_lines
from medprobe.core.params import Params
from medprobe.pipeline.doctor import list_sources, missing_sources
from medprobe.sources.releases import import_files


def biolama(folder: Path) -> Path:
    """BioLAMA's archive with one source."""
    row = {"predicate_id": "CD1", "sub_uri": "D1", "sub_label": "velotrine", "sub_type": ""}
    row |= {"obj_uris": ["M1"], "obj_labels": ["pain"], "obj_types": [], "obj_aliases": [[]]}
    for split in ("train", "dev", "test"):
        place = folder / f"data/ctd/triples_processed/CD1/{split}.jsonl"
        write_lines(place, {**row, "uuid": split})
    prompt = {"relation": "CD1", "template": "[X] treats [Y] ."}
    write_lines(folder / "data/ctd/prompts/manual.jsonl", prompt)
    return folder


def test_biolamas_archive_is_found(tmp_path: Path) -> None:
    copies = import_files("biolama", biolama(tmp_path / "archive"), tmp_path / "data")
    assert tmp_path / "data/biolama/ctd/prompts/manual.jsonl" in copies and len(copies) == 4


def test_the_doctor_misses_the_file_of_prompts(tmp_path: Path) -> None:
    """It says so before the build, which cannot do without."""
    import_files("biolama", biolama(tmp_path / "archive"), data := tmp_path / "data")
    params = Params(benchmarks={"biolama": {"real": {"sources": ["ctd"]}}})
    assert missing_sources(list_sources(params, data)) == []
    (data / "biolama/ctd/prompts/manual.jsonl").unlink()
    assert missing_sources(list_sources(params, data)) == ["biolama/ctd/prompts/manual.jsonl"]
