"""Command `import`: check released files and bring them into data/, for `dvc add data` after."""

import shutil
from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing


def import_released(what: str, folder: Path, data: Path, *, force: bool = False) -> None:
    """Check the released files of `folder`, say how they come out, and copy them below `data`.

    `force` lets an annotation that somebody filled in be replaced. Raises BadInput for the first
    thing that is wrong; nothing is copied then.
    """
    importers = {
        "medlama": lambda: import_medlama(folder, data),
        "annotation": lambda: import_annotation(folder, data, force=force),
    }
    if what not in importers:
        raise BadInput(what, f"nothing to import by this name{nearest(what, list(importers))}")
    importers[what]()


def import_medlama(folder: Path, data: Path) -> pd.DataFrame:
    """Bring MedLAMA's released files into `data/medlama`, from which the builder
    medlama_released builds.

    Recomputes both hardness columns and the hard set of each relation and returns, and prints, a
    table of relation, queries, hard queries, and whether each comes out identical: `columns` to
    the last bit, `hard_set` row for row. A relation that does not is an error: what would be built
    from it is not what was released.
    """
    from medprobe.sources import medlama

    full, hard = medlama.released_files(folder)
    if strays := sorted(set(full) ^ set(hard)):
        raise BadInput(folder, f"{strays[0]}: full and hard file are not both there")
    report = pd.DataFrame([_compare(name, full[name], hard[name]) for name in full])
    print(report.to_string(index=False))
    for row in report[~(report["columns"] & report["hard_set"])].head(1).itertuples():
        what = "hard set" if row.columns else "hardness columns"
        raise BadInput(full[row.relation], f"{what} not as recomputed", "fetch the files anew")
    with replacing(data / "medlama") as target:
        target.mkdir()
        prompts = [path for path in [folder / "prompts.csv"] if path.is_file()]
        for path in [*full.values(), *hard.values(), *prompts]:
            shutil.copyfile(path, target / path.name)
    say = "now: name a benchmark of the builder medlama_released in params.yaml, dvc add data"
    print(f"copied to {data / 'medlama'}; {say}")
    return report


def import_annotation(folder: Path, data: Path, *, force: bool = False) -> pd.DataFrame:
    """Bring DisKnE's released annotation files into `data/diskne`, beside what was released and is
    there already, from which the builder diskne_released builds.

    Checks every row and returns, and prints, by file, category and label how many rows there are,
    and how many of them are odd (`sources.annotation.oddities`). With `force`, all else in
    `data/diskne` goes. Raises BadInput without it where a filled-in sheet is there, since whoever
    imports has probably forgotten it.
    """
    from medprobe.sources.annotation import oddities, read_released

    files = sorted(folder.glob("DisknE_*_annotation.csv"))
    if not files:
        raise BadInput(folder, "no DisknE_*_annotation.csv", "give the released files' folder")
    tables = [read_released(path).assign(file=path.stem) for path in files]
    rows = pd.concat([table.assign(rows=1).join(oddities(table)) for table in tables])
    counted = ["rows", "twice", "alone", "by_premise"]
    report = rows.groupby(["file", "category", "label"])[counted].sum().reset_index()
    print(report.to_string(index=False))
    if (sheet := data / "diskne/annotation.csv").exists() and not force:
        raise BadInput(sheet, "somebody filled it in", "move it away, or --force to replace it")
    kept = [] if force else sorted((data / "diskne").glob("DisknE_*_annotation.csv"))
    with replacing(data / "diskne") as target:
        target.mkdir()
        for path in [*kept, *files]:
            shutil.copyfile(path, target / path.name)
    say = "now: name a benchmark of the builder diskne_released in params.yaml, dvc add data"
    print(f"copied to {data / 'diskne'}; {say}")
    return report


def _compare(relation: str, full: Path, hard: Path) -> dict[str, object]:
    """Whether a relation's released hardness and hard set are what the rule gives."""
    from medprobe.benchmarks.medlama.hardness import hardness
    from medprobe.sources import medlama

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
