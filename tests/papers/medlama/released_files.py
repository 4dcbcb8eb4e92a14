"""Invented facts in the files that MedLAMA was released as."""

import csv
from pathlib import Path

from medprobe.papers.medlama.benchmarks.medlama.queries import hardness

SUBJECTS = ["velotrine", "karsivan", "ombrelix", "tasmorine", "fedulac", "prandovir"]
OBJECTS = ["fever", "chronic pain", "acute renal failure", "hepatitis", "influenza", "trauma"]


def released(folder: Path) -> Path:
    """Write the files."""
    (folder / "2021AA").mkdir(parents=True)
    for relation in ("may_treat", "may_prevent"):
        rows = [row(relation, *pair) for pair in zip(SUBJECTS, OBJECTS, strict=True)]
        hard = [
            released_row
            for released_row in rows
            if max(float(released_row["avg_match"]), float(released_row["avg_rouge_l"])) < 0.1
        ]
        for name, chosen in [
            (f"{relation}_{len(rows)}", rows),
            (f"{relation}_{len(hard)}_hard", hard),
        ]:
            with (folder / "2021AA" / f"{name}.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(chosen)
    return folder


def row(relation: str, subject: str, answer: str) -> dict[str, str]:
    cui = f"C{OBJECTS.index(answer):07}"
    match, rouge = hardness(subject, [answer])
    return {
        "head_cui": f"C{100 + SUBJECTS.index(subject):07}",
        "head_name": subject,
        "rel": relation,
        "tail_cuis_list": str([cui]),
        "tail_names_list": str([answer]),
        "tail_names": answer,
        "tail_cuis": cui,
        "tail_cuis_len": "1",
        "tail_names_len": "1",
        "avg_match": str(match),
        "avg_rouge_l": str(rouge),
    }
