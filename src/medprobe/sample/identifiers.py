"""The identifiers of the sample world, by which a benchmark of invented facts is known."""

import re
from typing import Final

from medprobe.core.tables import DISTRACTOR, BenchmarkTables

# Concepts, also below another word (`MESH:C9900001`); Wikidata's items; PMIDs, PMC's articles and
# rows of notes; MedNLI's pairs. No number given out is as high, and no machine is that node.
FORMS: Final = re.compile(
    r"\b(C9[89][0-9]{5}|Q9[89][0-9]{7}|99[0-9]{6}|[0-9a-f]{8}-5a3e-11e7-0000-0{12})\b"
)


def are_invented(tables: BenchmarkTables, columns: tuple[str, ...]) -> bool:
    """Return whether all identifiers in these columns of a benchmark are the sample world's."""
    own = tables.candidates[tables.candidates["type"] != DISTRACTOR]  # distractors are names
    every = (tables.queries, own, *tables.others.values())
    found = (table[name].explode().unique() for table in every for name in columns if name in table)
    is_sample = (FORMS.search(str(identifier)) for column in found for identifier in column)
    return all(is_sample) and not tables.queries.empty
