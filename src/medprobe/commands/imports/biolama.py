"""BioLAMA's archive as unpacked, from which the builder `biolama` builds."""

from pathlib import Path

import pandas as pd

from medprobe.commands.imports import Found, folders, one_of
from medprobe.core.errors import BadInput
from medprobe.sources import biolama

LICENCE = "its triples need a licence of the UMLS, and BioLAMA's own script to make them"


def find(path: Path) -> Found:
    """The sources at or below a folder, all triples read. The report counts relations and the
    triples of each split."""
    places = [one for one in folders(path, "triples_processed") if one.name in biolama.SOURCES]
    if not places:
        problem = f"no folder {' or '.join(biolama.SOURCES)} with triples_processed in it"
        raise BadInput(path, problem, "give BioLAMA's unpacked data folder")
    root = one_of((one.parent for one in places), "sources")
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
        missing += [f"{name}: a template of {one}" for one in relations if one not in templates]
        counts = {
            split: sum(len(biolama.read(folder, one, split)) for one in relations)
            for split in biolama.SPLITS
        }
        rows.append({"source": name, "relations": len(relations), **counts})
        used = [folder / "prompts" / "manual.jsonl"]
        used += sorted(folder.glob("triples_processed/*/*.jsonl"))
        files |= {file.relative_to(root).as_posix(): file for file in used}
    sources = ", ".join(str(row["source"]) for row in rows)
    return Found(
        "biolama",
        files,
        "every triple, and a template with [X] and [Y] for each relation",
        pd.DataFrame(rows),
        f"name a benchmark of the builder biolama in params.yaml, sources: [{sources}]",
        missing,
    )
