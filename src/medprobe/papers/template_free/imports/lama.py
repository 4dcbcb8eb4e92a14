"""LAMA's archive as unpacked, from which the builder `lama` builds."""

from pathlib import Path

import pandas as pd

from medprobe.cli.imports import Release, folders, require_single
from medprobe.core.errors import BadInput
from medprobe.papers.template_free import lama

BRINGS = "lama"

SETS = {  # folder: name in params.yaml, reader
    "Google_RE": ("google-re", lama.read_google_re),
    "TREx": ("t-rex", lama.read_trex),
    "ConceptNet": ("conceptnet", lama.read_conceptnet),
    "Squad": ("squad", lama.read_squad),
}


def find(path: Path) -> Release:
    """Find the data sets at or below a folder, and read every line.

    The report counts facts, sentences and objects: 5,528, 6,106 and 870 in Google-RE; 305, 305 and
    303 in SQuAD.
    """
    places = [place for folder in SETS for place in folders(path, folder)]
    if not places:
        raise BadInput(
            path, f"contains none of {', '.join(SETS)}", "give LAMA's unpacked data folder"
        )
    root = require_single(places, "data sets")
    rows = []
    files: dict[str, Path] = {}
    missing = []
    for folder, (name, read_items) in SETS.items():
        if not (root / folder).is_dir():
            missing.append(f"{folder}; list the other sets in the setting `sets`")
            continue
        items = list(read_items(root))
        sentences = sum(len(item.sentences) for item in items)
        rows.append((name, len(items), sentences, len({item.object for item in items})))
        files |= {f"{folder}/{file.name}": file for file in sorted((root / folder).glob("*.jsonl"))}
    if (root / "TREx").is_dir():
        files["relations.jsonl"] = root / "relations.jsonl"
        codes = (name for name in lama.read_templates(root) if name[0] == "P")
        if absent := sorted(code for code in codes if f"TREx/{code}.jsonl" not in files):
            missing.append(f"T-REx's relations {', '.join(absent)}")
    sets = ", ".join(row[0] for row in rows)
    return Release(
        folder="lama",
        files=files,
        checks="every line, and the templates of relations.jsonl",
        report=pd.DataFrame(rows, columns=["set", "facts", "sentences", "objects"]),
        next_step=f"name a benchmark of the builder lama in params.yaml, sets: [{sets}]",
        missing=missing,
    )
