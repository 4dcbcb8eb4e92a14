"""The identifiers of the sample world, by which a benchmark of invented facts is known."""

import re
from typing import Final

from medprobe.core.tables import BenchmarkTables

# Concepts, also below another word (`MESH:C9900001`); Wikidata's items; PMIDs, PMC's articles and
# rows of notes; MedNLI's pairs. All are above any number that is given out, or of a node that no
# machine has.
FORMS: Final = re.compile(
    r"\b(C9[89][0-9]{5}|Q9[89][0-9]{7}|99[0-9]{6}|[0-9a-f]{8}-5a3e-11e7-0000-0{12})\b"
)


def are_invented(tables: BenchmarkTables, columns: tuple[str, ...]) -> bool:
    """Return whether all identifiers of a benchmark are the sample world's.

    Args:
        tables: The benchmark.
        columns: Of any of its tables, those that have identifiers of its sources.
    """
    every = (tables.queries, tables.candidates, *tables.others.values())
    found = [table[name] for table in every for name in columns if name in table]
    identifiers = [column.explode().unique() for column in found]
    return any(map(len, identifiers)) and all(
        FORMS.search(str(identifier)) for column in identifiers for identifier in column
    )
