"""Sound tables of the builder `table`, which the gate passes."""

import csv
from collections.abc import Sequence
from pathlib import Path

from helpers.broken_tables import Tables
from medprobe.benchmarks import table


def own_table(objects: Sequence[str] = (), *, at_most: int = 36) -> Tables:
    """What the builder makes of a table of one's own, which is written into `data/`.

    The first rows have these objects; there are 36 rows, or fewer.
    """
    Path("data/tables").mkdir(parents=True)
    rows = [
        (f"drug {n}", relation, f"ailment {(n + shift) % 12}", f"drug {n} {relation} [Y] .")
        for shift, relation in enumerate(("treats", "prevents", "causes"))
        for n in range(12)
    ][:at_most]
    for number, name in enumerate(objects):
        rows[number] = (*rows[number][:2], name, rows[number][3])
    with Path("data/tables/facts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("subject", "relation", "object", "prompt"), *rows])
    built = table.build(Path("data"), table.Settings(facts=Path("tables/facts.csv")), 0)
    return {"queries": built.queries, "candidates": built.candidates, **built.others}
