"""BioLAMA's archive as unpacked, from which the builder `biolama` builds."""

from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.sources import triples as biolama
from medprobe.sources.releases import Release, folders, require_single

BRINGS = "biolama"

LICENCE = "its triples require a UMLS licence and BioLAMA's own script"


def find(path: Path) -> Release:
    """Find the sources at or below a folder, and read all triples.

    The report counts relations and the triples of each split.
    """
    folders_of_triples = folders(path, "triples_processed")
    places = [folder for folder in folders_of_triples if folder.name in biolama.SOURCES]
    if not places:
        problem = f"no folder {' or '.join(biolama.SOURCES)} with triples_processed"
        raise BadInput(path, problem, "give BioLAMA's unpacked data folder")
    root = require_single((place.parent for place in places), "sources")
    rows: list[dict[str, str | int]] = []
    files: dict[str, Path] = {}
    missing: list[str] = []
    for name in biolama.SOURCES:
        folder = root / name
        if folder not in places:
            missing.append(f"{name}; {LICENCE}" if name == "umls" else name)
            continue
        templates = biolama.read_templates(folder)
        relations = biolama.list_relations(folder)
        untemplated = [relation for relation in relations if relation not in templates]
        missing += [f"{name}: a template of {relation}" for relation in untemplated]
        counts = {
            split: sum(len(biolama.read(folder, relation, split)) for relation in relations)
            for split in biolama.SPLITS
        }
        rows.append({"source": name, "relations": len(relations), **counts})
        sources = [folder / "prompts" / "manual.jsonl"]
        sources += sorted(folder.glob("triples_processed/*/*.jsonl"))
        files |= {file.relative_to(root).as_posix(): file for file in sources}
    names = ", ".join(str(row["source"]) for row in rows)
    return Release(
        folder="biolama",
        files=files,
        checks="every triple, and a template with [X] and [Y] for each relation",
        report=pd.DataFrame(rows),
        next_step=f"name a benchmark of the builder biolama in params.yaml, sources: [{names}]",
        missing=missing,
    )
