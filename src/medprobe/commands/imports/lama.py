"""LAMA's archive as unpacked, from which the builder `lama` builds."""

from pathlib import Path

import pandas as pd

from medprobe.commands.imports import Found, folders
from medprobe.core.errors import BadInput
from medprobe.sources import lama

SETS = {"Google_RE": lama.google_re, "TREx": lama.trex, "ConceptNet": lama.conceptnet,
        "Squad": lama.squad}  # fmt: skip
NAMES = {"Google_RE": "google-re", "TREx": "t-rex", "ConceptNet": "conceptnet", "Squad": "squad"}


def find(path: Path) -> Found:
    """The data sets at or below a folder, each read to its last line. The report counts facts,
    sentences and objects, of which Google-RE has 5,528, 6,106 and 870, SQuAD 305, 305 and 303."""
    places = sorted({one for name in SETS for one in folders(path, name)})
    if not places:
        raise BadInput(path, f"none of {', '.join(SETS)} in it", "give LAMA's unpacked data folder")
    if len(places) > 1:
        raise BadInput(path, f"{places[0]} and {places[1]} both hold data sets", "give one of them")
    folder = places[0]
    there = [name for name in SETS if (folder / name).is_dir()]
    rows = []
    for name in there:
        items = list(SETS[name](folder))
        sentences = sum(len(item.sentences) for item in items)
        rows.append((NAMES[name], len(items), sentences, len({item.object for item in items})))
    missing = [
        f"{name}; name the others in the setting `sets`" for name in SETS if name not in there
    ]
    files = {
        file.relative_to(folder).as_posix(): file
        for name in there
        for file in sorted((folder / name).glob("*.jsonl"))
    }
    if "TREx" in there:
        templates = lama.templates(folder)
        files["relations.jsonl"] = folder / "relations.jsonl"
        known = {file.stem for file in (folder / "TREx").glob("*.jsonl")}
        if lacking := sorted(name for name in templates if name[0] == "P" and name not in known):
            missing.append(f"T-REx's relations {', '.join(lacking)}")
    return Found(
        "lama",
        files,
        "every line, and the templates of relations.jsonl",
        pd.DataFrame(rows, columns=["set", "facts", "sentences", "objects"]),
        f"name a benchmark of the builder lama in params.yaml, sets: [{_named(there)}]",
        missing,
    )


def _named(there: list[str]) -> str:
    return ", ".join(NAMES[name] for name in there)
