"""DisKnE's expectations on form: nothing but the disease tells a positive from a negative.

Source: Alghanmi et al. 2021, section 3.4, on artefacts, and section 3.3, on articles.
"""

from collections import defaultdict

import pandas as pd

from medprobe.core.tables import SLOT
from medprobe.gate import leaks
from medprobe.gate.checks import Context, row_check, says
from medprobe.gate.umls import CUI, MRCONSO, PREFERRED, STR, read_names
from medprobe.papers.diskne.expectations.diskne import related_diseases


@row_check
@says("the hypothesis is not the preferred name")
def expect_hypotheses_to_be_preferred_names(
    rows: pd.DataFrame, context: Context, hypothesis: str
) -> list[bool] | pd.Series:
    """The first column's text is the preferred name of the second column's concept, byte for byte.

    The preferred name is that of the table `names`, and MRCONSO.RRF must prefer it too where it
    prefers a name of the concept. With `hypothesis` "surface" the text is in lower case, as the
    released code has it.
    """
    text, cui = rows.columns
    if hypothesis == "surface":
        return rows[text] == rows[text].str.lower()
    preferred = _preferred_names(context)
    in_umls: dict[str, set[str]] = defaultdict(set)
    for row in read_names(MRCONSO, set(rows[cui]), PREFERRED, "the gate reads names again"):
        in_umls[row[CUI]].add(row[STR])
    return [
        name == preferred.get(concept) and name in in_umls.get(concept, {name})
        for name, concept in zip(rows[text], rows[cui], strict=True)
    ]


@row_check
@says("its text is a name of another disease, and none of its own")
def expect_texts_to_name_their_diseases(rows: pd.DataFrame, context: Context) -> list[bool]:
    """What a positive's text calls its disease is no name of another one alone.

    Columns `cui, full_hypothesis, start, end`, of positives. Names are those of UMLS's file, of all
    their diseases. What is a name of none, such as a misspelt one, passes, and so does a name of a
    disease above or below the annotated one.
    """
    cui = rows.columns[0]
    of_name: dict[str, set[str]] = defaultdict(set)
    for name, concept in leaks.umls_names(MRCONSO, set(rows[cui])):
        of_name[_form(name)].add(concept)
    related = related_diseases(context)
    accepted = []
    for disease, text, start, end in rows.itertuples(index=False, name=None):
        named = of_name.get(_form(text[start:end]), {disease})
        accepted.append(any(other == disease or (disease, other) in related for other in named))
    return accepted


def _form(name: str) -> str:
    """A name without regard to case, marks and endings."""
    return " ".join(leaks.normalise(name).roots)


@row_check
@says("its pair has several premises")
def expect_premises_to_be_of_their_pairs(rows: pd.DataFrame) -> pd.Series:
    """Rows of one pair, the first column, have one premise, the second one, byte for byte."""
    pair, premise = rows.columns
    return rows.groupby(pair)[premise].transform("nunique") == 1


@row_check
def expect_prompts_to_be_of_examples(rows: pd.DataFrame, context: Context) -> list[bool]:
    """A query's prompt is the premise and the full hypothesis of its positive, the disease a slot.

    Columns `query_id, prompt`; the query's id is the example's.
    """
    examples = context.tables["examples"]
    prompts = {}
    for row in examples[examples["label"] == 1].itertuples():
        before, after = row.full_hypothesis[: row.start], row.full_hypothesis[row.end :]
        prompts[row.example_id] = f"{row.premise} {before}{SLOT}{after}"
    query, prompt = rows.columns
    return [prompts.get(name) == text for name, text in zip(rows[query], rows[prompt], strict=True)]


def _preferred_names(context: Context) -> dict[str, str]:
    """The preferred name of each concept of the table `names`."""
    names = context.tables["names"]
    return names[names["preferred"]].set_index("cui")["name"].to_dict()
