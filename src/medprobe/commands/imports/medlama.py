"""MedLAMA's released files, from which the builder `medlama_released` builds."""

from pathlib import Path

import pandas as pd

from medprobe.benchmarks.medlama.hardness import hardness
from medprobe.benchmarks.medlama.prompts import HUMAN_PROMPTS, RELATIONS
from medprobe.commands.imports import Release, folders, require_single
from medprobe.core.errors import BadInput
from medprobe.sources import medlama
from medprobe.sources.records import Name, Record, read_csv_records


class PromptRow(Record):
    """A row of `prompts.csv`."""

    pid: Name
    human_prompt: str


def find(path: Path) -> Release:
    """Find the relations in any folder of a clone or download, and `prompts.csv` there or above.

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
    candidates = (folder / "prompts.csv", folder.parent / "prompts.csv")
    prompts = next((file for file in candidates if file.is_file()), None)
    files = {file.name: file for file in [*full.values(), *hard.values()]}
    missing = [f"relation {name}" for name in RELATIONS if name not in full]
    checks = "hardness and hard sets, recomputed"
    if prompts:
        files["prompts.csv"] = prompts
        checks += "; " + _compare_prompts(prompts)
    else:
        missing.append("prompts.csv; the package contains the paper's prompts")
    if sets := folders(path, "*sents*"):
        checks += f"; {sets[0]} contains sentence sets: `medprobe import sentences` imports them"
    return Release(
        folder="medlama",
        files=files,
        checks=checks,
        report=report,
        next_step="name a benchmark of the builder medlama_released in params.yaml",
        missing=missing,
        conflicts=("*.csv",),
    )


def _compare_prompts(path: Path) -> str:
    """Describe how the prompts of the file differ from those of the package."""
    remedy = "download the file again"
    rows = {row.pid: row.human_prompt for _, row in read_csv_records(path, PromptRow, remedy)}
    packaged = {name: prompt for name, prompt in HUMAN_PROMPTS.items() if name in rows}
    differing = [name for name, prompt in packaged.items() if rows[name].strip() != prompt]
    if differing:
        return f"prompts; for {', '.join(differing)} they differ from the package's, which are used"
    return f"{len(packaged)} prompts, equal to those of the package"


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
