"""What reads the files of LAMA and LIPID, and a file for each reader to damage."""

import json
from pathlib import Path
from typing import Final

from helpers.damage import Reader, file
from medprobe.papers.template_free import entities, lama, pubmed
from medprobe.papers.template_free.benchmarks import lipid_released


def _pubmed(folder: Path) -> object:
    return [list(pubmed.read_records(path)) for path in pubmed.list_files(folder)]


READERS: Final[dict[str, Reader]] = {
    "Google-RE": (
        "lama/Google_RE/place_of_birth_test.jsonl",
        lambda d: list(lama.read_google_re(d / "lama")),
    ),
    "T-REx": ("lama/TREx/P19.jsonl", lambda d: list(lama.read_trex(d / "lama"))),
    "ConceptNet": ("lama/ConceptNet/test.jsonl", lambda d: list(lama.read_conceptnet(d / "lama"))),
    "SQuAD": ("lama/Squad/test.jsonl", lambda d: list(lama.read_squad(d / "lama"))),
    "LAMA's templates": ("lama/relations.jsonl", lambda d: lama.read_templates(d / "lama")),
    "PubMed": ("pubmed/*.xml.gz", lambda d: _pubmed(d / "pubmed")),
    "an entity list": file("entities/chemicals.txt", entities.read_names),
    "CHEMDNER": file("entities/c.annotations.txt", entities.read_names),
    "LIPID's prompts": file("released/LIPID.json", lipid_released.read),
}


def write_files(data: Path) -> None:
    """Write the files that the sample world lacks."""
    row = "123\tT\t0\t8\t{}\tTRIVIAL\n"
    names = ("acid of aspirin", "Acid of aspirin", "ibuprofen")
    (data / "entities/c.annotations.txt").write_text("".join(map(row.format, names)))
    (released := data / "released").mkdir(exist_ok=True)
    prompts = [{"type": "gene", "prompt": f"{n} is [MASK].", "answer": f"G{n}"} for n in range(9)]
    (released / "LIPID.json").write_text(json.dumps(prompts, indent=1))
