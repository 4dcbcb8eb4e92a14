"""MedLAMA's released files, from which the builder `medlama_released` builds."""

from pathlib import Path

import pandas as pd

from medprobe.benchmarks.medlama.hardness import hardness
from medprobe.benchmarks.medlama.prompts import HUMAN_PROMPTS, RELATIONS
from medprobe.commands.imports import Found, folders, one_of
from medprobe.core.errors import BadInput
from medprobe.sources import medlama
from medprobe.sources.records import Name, Record, read_csv_records


class Prompt(Record):
    """A row of `prompts.csv`."""

    pid: Name
    human_prompt: str


def find(path: Path) -> Found:
    """The relations of a clone or download, in whatever folder below; `prompts.csv` lies beside
    them or above.

    Recomputes both hardness columns and the hard set of each relation. The report has a row a
    relation: queries, hard queries, and whether each comes out identical, `columns` to the last
    bit, `hard_set` row for row. A relation that does not is an error: what would be built from it
    is not what was released.
    """
    places = [one for one in folders(path, "*_hard.csv") if medlama.find_released_files(one)]
    folder = one_of(places, "relations") if places else path
    full, hard = medlama.find_released_files(folder)
    if strays := sorted(set(full) ^ set(hard)):
        raise BadInput(folder, f"{strays[0]}: full and hard file are not both there")
    report = pd.DataFrame([_compare(name, full[name], hard[name]) for name in full])
    for row in report[~(report["columns"] & report["hard_set"])].head(1).itertuples():
        what = "hard set" if row.columns else "hardness columns"
        raise BadInput(full[row.relation], f"{what} not as recomputed", "fetch the files anew")
    beside = (folder / "prompts.csv", folder.parent / "prompts.csv")
    prompts = next((one for one in beside if one.is_file()), None)
    files = {one.name: one for one in [*full.values(), *hard.values()]}
    missing = [f"relation {name}" for name in RELATIONS if name not in full]
    checked = "hardness and hard sets, recomputed"
    if prompts:
        files["prompts.csv"] = prompts
        checked += "; " + _held(prompts)
    else:
        missing.append("prompts.csv; the package has the paper's prompts")
    if sets := [one for one in folders(path, "*sents*")]:
        checked += f"; sentence sets are in {sets[0]}: medprobe import sentences"
    return Found(
        "medlama",
        files,
        checked,
        report,
        "name a benchmark of the builder medlama_released in params.yaml",
        missing,
        ("*.csv",),
    )


def _held(path: Path) -> str:
    """The prompts of the file held against those that the package has."""
    rows = {row.pid: row.human_prompt for _, row in read_csv_records(path, Prompt, "fetch it anew")}
    ours = {name: prompt for name, prompt in HUMAN_PROMPTS.items() if name in rows}
    other = [name for name, prompt in ours.items() if rows[name].strip() != prompt]
    if other:
        return f"prompts, of which {', '.join(other)} are not the package's, whose prompts count"
    return f"{len(ours)} prompts, as the package has them"


def _compare(relation: str, full: Path, hard: Path) -> dict[str, object]:
    """Whether a relation's released hardness and hard set are what the rule gives."""
    queries = medlama.read_queries(full, relation)
    medlama.read_queries(hard, relation)
    found = [hardness(row.subject, row.answers) for row in queries.itertuples()]
    released = list(zip(queries["avg_match"], queries["avg_rouge_l"], strict=True))
    is_hard = [match < 0.1 and rouge < 0.1 for match, rouge in found]
    released_hard = medlama.read_rows(hard)
    return {
        "relation": relation,
        "queries": len(queries),
        "hard": len(released_hard),
        "columns": found == released,
        "hard_set": medlama.read_rows(full)[is_hard].reset_index(drop=True).equals(released_hard),
    }
