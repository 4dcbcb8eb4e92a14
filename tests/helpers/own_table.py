"""Sound tables of the builder `table`, which the gate passes."""

from pathlib import Path

from helpers.broken_tables import Tables
from medprobe.benchmarks import table


def own_table() -> Tables:
    """What the builder makes of a table of one's own, which is written into `data/`."""
    Path("data/tables").mkdir(parents=True)
    rows = [
        f"drug {number},{relation},ailment {(number + shift) % 12},drug {number} {relation} [Y] ."
        for shift, relation in enumerate(("treats", "prevents", "causes"))
        for number in range(12)
    ]
    facts = "\n".join(["subject,relation,object,prompt", *rows])
    Path("data/tables/facts.csv").write_text(facts + "\n")
    built = table.build(Path("data"), table.Settings(facts=Path("tables/facts.csv")), 0)
    return {"queries": built.queries, "candidates": built.candidates, **built.others}
