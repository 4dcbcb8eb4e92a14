"""One fact in other words: which wordings and names change a model's answer."""

from typing import Final

import pandas as pd

from medprobe.core.tables import is_families
from medprobe.metrics.results import comparable, without_controls, without_sweeps
from medprobe.report.blocks import Block, Cell, Choice, Part, Table, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, format_value, metric_head
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section
from medprobe.report.verdicts import p_cell

PART: Final = ("acc_at_1", "acc_at_1_change", "consistency")  # metrics of a wording or kind of name
WHOLE: Final = (  # metrics of whole families
    *("right_under_any", "right_under_all"),
    *("acc_at_1_best_wording", "best_wording_gain"),
)
P: Final = "acc_at_1_change_p_holm"
TITLE: Final = "The same fact in other words"
CHANGES: Final = {
    "change:wording": "wording alone",
    "change:name": "name alone",
    "change:both": "both",
}
CAPTION: Final = (
    "Agreement of first answers, per cent of the pairs of queries about one fact that differ in "
    "the wording alone, in the subject's name alone, or in both. Macro means, agreement by kind of "
    "change micro means, with intervals. The best wording is chosen on the "
    "facts of one half of the subjects and scored on those of the other; its gain is over the "
    "original wording of the same facts."
)
BY_PART: Final = (
    "Each wording and kind of name: its accuracy, the change against the original one of the same "
    "facts, and how often both first answers agree. p is of a paired test within facts, corrected "
    "over all wordings and kinds of name of the system (Holm)."
)


def section(results: PageData, benchmark: str) -> list[Part]:
    """Agreement by kind of change, and the numbers of each wording and kind of name.

    There is nothing where a benchmark has no families.
    """
    rows = without_controls(without_sweeps(results.rows(benchmark)))
    measured = rows.loc[rows["metric"] == "consistency", "subset"]
    subsets = sorted(filter(is_families, set(measured)))
    return [
        block
        for subset in subsets
        for block in _of_subset(rows, subset, TITLE if len(subsets) == 1 else f"{TITLE}: {subset}")
    ]


def _of_subset(rows: pd.DataFrame, subset: str, title: str) -> list[Part]:
    whole = rows[(rows["subset"] == subset) & (rows["relation"] == "macro")]
    inside = rows["subset"].str.startswith(f"{subset}/") & (rows["relation"] == "micro")
    parts = rows[inside].assign(part=rows["subset"].str.partition("/")[2])
    return part(
        title,
        paragraph(*_summarise(comparable(whole))),
        _by_change(parts, whole),
        _by_part(parts),
    )


def _summarise(whole: pd.DataFrame) -> list[str]:
    """Sentences about the systems that know a fact under one wording or name and not under all."""
    values = whole.pivot_table(index=["model", "method"], columns="metric", values="value")
    answered = values[values["right_under_any"] > 0]
    if answered.empty:
        return ["No system is right about any fact under any wording or name."]
    gap = answered["right_under_any"] - answered["right_under_all"]
    model, method = gap.idxmax()
    under_any, under_all = (
        format_value(name, answered.loc[(model, method), name])
        for name in ("right_under_any", "right_under_all")
    )
    return [
        "A family is one fact under several wordings and names.",
        f"The widest gap is that of {model} ({method}): it answers {under_any} of the facts right "
        f"under at least one wording and name, and {under_all} under all of them (macro means).",
        "The query pages list the facts that fall apart, right under some and wrong under others.",
    ]


def _by_change(parts: pd.DataFrame, whole: pd.DataFrame) -> list[Block]:
    consistency = parts[parts["metric"] == "consistency"]
    changes = [name for name in CHANGES if name in set(consistency["part"])]
    overall = whole[whole["metric"] == "consistency"].sort_values("value", ascending=False)
    cells = {
        (row.model, row.method, row.part): cell("consistency", row.value, row.low, row.high)
        for row in consistency.itertuples()
    }
    families = [name for name in WHOLE if name in set(whole["metric"])]
    cells |= {
        (row.model, row.method, row.metric): cell(row.metric, row.value, row.low, row.high)
        for row in whole[whole["metric"].isin(families)].itertuples()
    }
    body: list[list[str | Cell]] = [
        [
            *(row.model, row.method),
            cell("consistency", row.value, row.low, row.high),
            *(cells.get((row.model, row.method, name), MISSING) for name in (*changes, *families)),
            count(row.n),
        ]
        for row in overall.itertuples()
    ]
    titles = [*(CHANGES[name] for name in changes), *map(metric_head, families)]
    return [Table(["model", "method", "all pairs", *titles, "facts"], body, CAPTION)]


def _by_part(parts: pd.DataFrame) -> list[Block]:
    named = parts[parts["part"].str.startswith(("wording:", "name:"))]
    named = named[named["metric"].isin([*PART, P])]
    tables = {
        f"{model}, {method}": _table_of_system(rows)
        for (model, method), rows in named.groupby(["model", "method"], sort=True)
    }
    return [Choice("System", tables)] if tables else []


def _table_of_system(rows: pd.DataFrame) -> Table:
    numbers = {
        (row.part, row.metric): cell(row.metric, row.value, row.low, row.high)
        for row in rows.itertuples()
    }
    chances = rows[rows["metric"] == P].set_index("part")["value"]
    body: list[list[str | Cell]] = [
        [
            *name.split(":", 1),
            *(numbers.get((name, key), MISSING) for key in PART),
            p_cell(chances[name]) if name in chances else MISSING,
        ]
        for name in sorted(set(rows["part"]))
    ]
    heads = ["changed", "to", *map(metric_head, PART), "corrected p"]
    return Table(heads, body, BY_PART)


SECTION = Section(20, section)
