"""docs/concepts/calibration.md and its drawings, from what `bench.calibration` measured."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Final

import pandas as pd

from bench.calibration_table import (
    CAPTION,
    TaughtSystem,
    by_method,
    drawing,
    evidence,
    evidence_table,
    read_table,
    seeds,
)
from medprobe.report.blocks import Cell, Table
from medprobe.report.verdicts import p_value

DOCUMENT: Final = Path("docs/concepts/calibration.md")
FACTS: Final = "finds facts"
PICTURES: Final = Path("docs/pictures/calibration")
INSIDE: Final = Path("bench/inside.csv")
NAMES: Final = Path("bench/names.csv")
MODELS: Final = ("both", "one", "shuffled")
PAIRS: Final = ("both - one", "both - shuffled", "one - shuffled")
NUMBERS: Final = {
    "name": "agreement, other name, %",
    "wording": "agreement, other wording, %",
    "right_under_all": "right under all, %",
    "right_under_any": "right under any, %",
    "entropy": "entropy, nats",
}
INTRODUCTION: Final = """# Calibration: what methods say of models whose reading is known

Nobody knows what a published model has read. Of the models of a sample world it is known: each fact
was read never, once, twice or four times. So a probing method can itself be measured.

**The worlds.** Each has a seed of its own, with names, facts and models of its own. Answers are as
skewed as MedLAMA's: a relation draws its answers by the counts of its namesake in the released
files (`bench/medlama_structure.csv`), so that some relations have a handful. Relations that MedLAMA
lacks take the counts of another one (`bench/worlds.py`). Products of genes are the exception in
both: each gene has its own.

**The models** come in threes of one size and training length.

- `taught` has read half of the facts that are asked about.
- `untaught` has read none of them, but other facts, with the same habits of answers.
- `shuffled` has read the same names in the same sentences, each as often, but with the objects of
  another subject. With skewed answers some of these are right by chance.

A method that puts `taught` above `untaught` has found something that was read. One that puts it
above `shuffled` has found facts, and not names. On facts that were never read the three should be
alike: what the taught model has right there is the method's false-positive rate.

**The numbers.** Values are means over queries, with 95 % intervals for the relation
([statistics](statistics.md)). Differences are paired, query by query, over all worlds together;
subjects and answers are drawn, models are not. With each world come other models, so that the same
difference in several worlds says more than its p. p-values are corrected for all rows of the table
(Holm). A *reversal* is a significant difference the wrong way, in all worlds together or in a
single one. Variants with the same result for each query are in one row, and count once. *Power*
is the share of draws of so many queries, half of them about facts that were never read, in which
the paired test finds the taught model above its untaught and above its shuffled twin (p < .05).

Perplexity is no ranking. A model that has read names and wordings is less surprised by them in
facts that it has never read, too: that is no knowledge of these facts. LIPID's perplexity of causal
models has also been *reversed*: in an earlier world with even answers (seed 2023) the taught model
had 16,071 [11,337, 22,022], and the untaught one 8,771 [7,138, 10,642]. Names of genes and drugs,
in pieces that a model has hardly read together, make most of that mean. Here differences of
perplexity are those of its logarithm, which a few such names do not decide.

**What is not here.** `classifier` (DisKnE) and `rank_change` (context variance) ask for more than
single facts. The sample that `make repro` runs has them, with taught and untaught models; it has
even answers, and no shuffled models, as there is no time to train them. Its own dose-response
is on the page. Facts of your own benchmark are never counted as read: a benchmark is
calibrated where its settings say `invented: true`.
"""


INSIDE_TEXT: Final = """## inside

The probe on hidden states is measured in three worlds of its own (seeds 2021 to 2023). Guessing
ranks half of the pairs right. `inside` is trained on the other relations, `inside:subjects` on
other subjects of the same relation, and `inside:shuffled` on labels that are exchanged by chance.
`python -m bench.calibration --worlds 3 --methods inside --out bench/inside.csv` measures it again.

- The probe finds nothing in the untaught twins, and nothing in those that read shuffled facts.
- In taught models it finds the facts that they have read.
- It does not find more than likelihood shows: less in causal models, as much in masked ones.
- The probe of other subjects ranks some facts right that the taught masked model has never read:
  59.7 % [55.1, 64.1]. The names alone cannot do this, as each name is right as often as wrong in
  the pairs. We do not know what does.
- Shuffled labels give one half, and a little less for facts that were read often.

"""
NAMES_TEXT: Final = """## One name or two

Consistency and entropy are measured with models that have read facts under names that are known.
`both` has read half of the facts about drugs under the drug's own name and under its brand. `one`
has read the same facts under the own name only. `shuffled` has read both names with the objects of
other drugs. All three have read of both names in facts that are never asked about. Each fact is
asked under two names and five wordings by mask average; only the first wording is one that the
models have read. Values are over the worlds of three seeds (2021, 2022, 2023), with 95 % intervals
for the relation. Differences are paired, fact by fact, and p is not corrected. Entropy is that of
the benchmark's own queries, by how often their facts were read. `python -m bench.names --seeds 3`
measures it again.

- Agreement over names tells a model that has read both names from one that has read one of them. It
  does so on facts that were never read, too: it shows that two names are one thing to the model.
- It does not tell facts from shuffled ones: a model that has learnt wrong facts under both names is
  as consistent. What is right under any wording or name, and under all of them, tells them apart.
- Entropy falls with every further reading, of wrong facts as much as of right ones. It shows what
  a model has read often, not what is true.
- No model is right under all ten queries of a fact but in a few cases: four of the five wordings
  were never read, and models of this size do not carry a fact over to them.

"""


def document(table: pd.DataFrame, steps: pd.DataFrame) -> str:
    """The document.

    Args:
        table: with the columns of `bench.calibration_table`.
        steps: with the columns `world`, `step`, `seconds` and `code` of all worlds.
    """
    systems = evidence(table)
    parts = [INTRODUCTION, _made(table, steps), outcome(systems)]
    for method, members in by_method(systems).items():
        picture = drawing(method, members)
        parts.append(
            f"## {method}\n\n![{picture.caption}](../pictures/calibration/{picture.file})\n\n"
            f"{markdown(evidence_table(members))}"
        )
    parts.append(INSIDE_TEXT + markdown(evidence_table(evidence(read_table(INSIDE)))))
    return "\n".join([*parts, f"{CAPTION}\n", of_names(pd.read_csv(NAMES))])


def of_names(table: pd.DataFrame) -> str:
    """What consistency and entropy say of models that have read facts under one name or two.

    Args:
        table: as `bench.names` writes it.
    """
    values, rows = table.set_index(["number", "read", "of"]), []
    for (number, read), part in table.groupby(["number", "read"], sort=False):
        scale = 1 if number == "entropy" else 100
        cells = []
        for name in [*MODELS, *PAIRS]:
            row = scale * values.loc[(number, read, name), ["value", "low", "high"]].astype(float)
            p = values.loc[(number, read, name), "p"]
            sign, note = ("", "") if name in MODELS else ("+", f", {p_value(p)}")
            digits = 2 if scale == 1 else 1
            low, high = f"{row['low']:.{digits}f}", f"{row['high']:.{digits}f}"
            cells.append(f"{row['value']:{sign}.{digits}f} [{low}, {high}]{note}")
        rows.append([NUMBERS[number], read, *cells, f"{part['n'].iloc[0]:.0f}"])
    heads = ["number", "facts", *MODELS, *(pair.replace("-", "−") for pair in PAIRS), "n"]
    return NAMES_TEXT + markdown(Table(heads, rows, ""))


def drawings(table: pd.DataFrame) -> dict[str, str]:
    """The drawing of each method: the name of its file -> SVG."""
    pictures = [drawing(*named) for named in by_method(evidence(table)).items()]
    return {system.file: system.svg for system in pictures}


def outcome(systems: list[TaughtSystem]) -> str:
    """How many systems find what, and which are reversed."""
    counts = pd.Series([_finding(system) for system in systems]).value_counts()
    counted = "; ".join(f"{words}: {count}" for words, count in counts.items())
    facts = ", ".join(
        f"{method} {sum(_finding(system) == FACTS for system in members)} of {len(members)}"
        for method, members in by_method(systems).items()
    )
    never = [system for system in systems if "never read" in system.finding]
    lines = [
        "## What was found\n",
        _wrapped(
            f"{len(systems)} different results, of a model under a variant on a benchmark: "
            f"{counted}. Variants of one method are no independent results. By method, facts are "
            f"found by {facts}."
        ),
        _wrapped(
            f"On facts that were never read {len(never)} results are significantly better than the "
            f"untaught twin's{_named(never)}."
        ),
    ]
    if reversals := [system for system in systems if system.reversals]:
        lines.append("Reversed, which is worse than blind:\n")
        lines += [
            f"- {system.method} of {system.taught} on {system.benchmark}, below "
            + ", ".join(system.reversals)
            for system in reversals
        ]
        lines.append("")
    else:
        lines.append("No result is reversed.\n")
    return "\n".join(lines)


def _finding(system: TaughtSystem) -> str:
    """What a system finds, without what is odd about it."""
    return system.finding.partition(";")[0]


def _named(systems: list[TaughtSystem]) -> str:
    names = ", ".join(
        f"{system.method} of {system.taught} on {system.benchmark}" for system in systems
    )
    return f" ({names})" if names else ""


def _made(table: pd.DataFrame, steps: pd.DataFrame) -> str:
    """Which worlds were measured, by which code, and what they took."""
    names = seeds(table)
    seconds = steps.groupby("world")["seconds"].sum()
    spent = ", ".join(f"{seconds[name]:.0f}" for name in seconds.index)
    code = ", ".join(dict.fromkeys(steps["code"]))
    return _wrapped(
        f"**What was measured.** {len(names)} worlds, seeds {', '.join(names)}, made by the code "
        f"of {code}. They took {spent} CPU seconds. `python -m bench.calibration --worlds 10` "
        "makes ten and writes this page and the drawings again; "
        "`--processes 2` makes two at a time. A run that was stopped goes on where it was."
    )


def _wrapped(text: str) -> str:
    """A paragraph in lines of a hundred letters, and an empty one."""
    return fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def markdown(table: Table) -> str:
    """A table in Markdown, the notes of its cells in brackets."""
    rows: Iterable[list[str]] = [
        [*table.heads],
        ["---"] * len(table.heads),
        *([_text(cell) for cell in row] for row in table.rows),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _text(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return cell
    return cell.text + (f" ({cell.note})" if cell.note else "")
