"""LAMA's archive as unpacked, from which the builder `lama` builds."""

from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.papers.template_free import lama
from medprobe.sources.releases import Release, folders, require_single

BRINGS = "lama"


def find(path: Path) -> Release:
    """Find the data sets at or below a folder, and read every line.

    The report counts facts, sentences and objects: 5,528, 6,106 and 870 in Google-RE; 305, 305 and
    303 in SQuAD.
    """
    sets = [folder for folder, _ in lama.READERS.values()]
    places = [place for folder in sets for place in folders(path, folder)]
    if not places:
        problem = f"contains none of {', '.join(sets)}"
        raise BadInput(path, problem, "give LAMA's unpacked data folder")
    root = require_single(places, "data sets")
    rows = []
    files: dict[str, Path] = {}
    missing = []
    for name, (folder, read_items) in lama.READERS.items():
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
    found = ", ".join(row[0] for row in rows)
    return Release(
        folder="lama",
        files=files,
        checks="every line, and the templates of relations.jsonl",
        report=pd.DataFrame(rows, columns=["set", "facts", "sentences", "objects"]),
        next_step=f"name a benchmark of the builder lama in params.yaml, sets: [{found}]",
        missing=missing,
    )
