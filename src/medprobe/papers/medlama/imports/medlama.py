"""MedLAMA's released files, from which the builder `medlama_released` builds."""

from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.papers.medlama.benchmarks import medlama_released as medlama
from medprobe.papers.medlama.benchmarks.medlama.queries import RELATIONS, hardness
from medprobe.sources.releases import Release, folders, require_single

BRINGS = "medlama"


def find(path: Path) -> Release:
    """Find the relations in any folder of a clone or download; the package has the prompts.

    Both hardness columns and the hard set of each relation are recomputed. The report has one row
    per relation: queries, hard queries, and whether the recomputed `columns` and the `hard_set` are
    identical. A difference is an error, since the build would differ from the release.
    """
    places = [item for item in folders(path, "*_hard.csv") if medlama.find_released_files(item)]
    folder = require_single(places, "relations") if places else path
    full, hard = medlama.find_released_files(folder)
    if strays := sorted(set(full) ^ set(hard)):
        raise BadInput(folder, f"{strays[0]}: the full or the hard file is missing")
    report = pd.DataFrame([_compare(name, full[name], hard[name]) for name in full])
    for row in report[~(report["columns"] & report["hard_set"])].head(1).itertuples():
        part = "hard set" if row.columns else "hardness columns"
        problem = f"the {part} differ from the recomputed values"
        raise BadInput(full[row.relation], problem, "download the files again")
    checks = "hardness and hard sets, recomputed"
    if sets := folders(path, "*sents*"):
        checks += f"; {sets[0]} contains sentence sets: `medprobe import sentences` imports them"
    return Release(
        folder="medlama",
        files={file.name: file for file in [*full.values(), *hard.values()]},
        checks=checks,
        report=report,
        next_step="name a benchmark of the builder medlama_released in params.yaml",
        missing=[f"relation {name}" for name in RELATIONS if name not in full],
        conflicts=("*_[0-9]*.csv",),
    )


def _compare(relation: str, full: Path, hard: Path) -> dict[str, object]:
    """Compare a relation's released hardness and hard set with the recomputed ones."""
    queries = medlama.read_queries(full, relation)
    medlama.read_queries(hard, relation)
    recomputed = [hardness(row.subject, row.answers) for row in queries.itertuples()]
    released = list(zip(queries["avg_match"], queries["avg_rouge_l"], strict=True))
    is_hard = [match < 0.1 and rouge < 0.1 for match, rouge in recomputed]
    released_hard = medlama.read_rows(hard)
    return {
        "relation": relation,
        "queries": len(queries),
        "hard": len(released_hard),
        "columns": recomputed == released,
        "hard_set": medlama.read_rows(full)[is_hard].reset_index(drop=True).equals(released_hard),
    }
