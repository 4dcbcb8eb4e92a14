"""MedLAMA's expectations: facts that UMLS has, read again from its own file."""

from pathlib import Path

import pandas as pd

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.quality.checks import row_check

MRREL = places.DATA / "umls/MRREL.RRF"
CUI1, CUI2, RELA = 0, 4, 7  # fields: CUI2 has the relation to CUI1


@row_check
def expect_facts_to_be_in_umls(rows: pd.DataFrame, sample: int) -> pd.Series:
    """Every fact of a sample of rows is in MRREL.RRF.

    Columns `relation, subject_id, answer_ids`. The sample has this many rows, or all; the same
    table has the same sample. Source: UMLS Reference Manual, table MRREL.
    """
    relation, subject, _ = rows.columns
    drawn = rows.sample(min(sample, len(rows)), random_state=0)
    facts = _facts(MRREL, set(drawn[relation]), set(drawn[subject]))
    accepted = pd.Series(True, index=rows.index)
    for row, name, cui, answer_ids in drawn.itertuples(name=None):
        accepted[row] = all((name, cui, answer) in facts for answer in answer_ids)
    return accepted


def _facts(path: Path, relations: set[str], subjects: set[str]) -> set[tuple[str, str, str]]:
    """`(relation, subject, object)` by CUI, of these relations and subjects."""
    if not path.is_file():
        raise BadInput(path, "no such file", "the gate reads a sample of facts again")
    facts = set()
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            fields = line.split("|", RELA + 1)
            if fields[CUI2] in subjects and fields[RELA] in relations:
                facts.add((fields[RELA], fields[CUI2], fields[CUI1]))
    return facts
