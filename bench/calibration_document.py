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
INTRODUCTION: Final = """# Calibration: methods tested on models whose reading is known

Nobody knows exactly what a published model has read. We do know it of the models of a sample world:
they read each fact never, once, twice or four times. This makes it possible to measure the probing
methods themselves. This page shows which methods find the facts that a model has read, and how
often they report facts that it has not read.

**Worlds.** A sample world is made from a seed, and has its own names, facts and models. Its answers
are as skewed as MedLAMA's. A relation draws its answers by the counts of the MedLAMA relation with
the same name (`bench/medlama_structure.csv`), so some relations have only a few different answers.
A relation that MedLAMA lacks takes the counts of another one (`bench/worlds.py`). The relation of
genes and their products is the exception, as in MedLAMA: each gene has its own product.

**Models.** Three models of one size and training length are compared.

| model | has read |
| --- | --- |
| `taught` | half of the facts that the benchmarks ask for |
| `untaught` | none of these facts, but other facts whose answers are equally skewed |
| `shuffled` | the same names in the same sentences, but with the objects of other subjects |

With skewed answers, some facts of `shuffled` are right by chance.

- If a method puts `taught` above `untaught`, it has found something that the model has read.
- If it also puts `taught` above `shuffled`, it has found facts, and not only names.
- On facts that no model has read, the three models should have equal values. The value of `taught`
  there is the false-positive rate of the method.

**Values and tests.** A value is a mean over queries with a 95 % interval
[for the relation](statistics.md#two-questions). A difference is paired query by query, over all
worlds together. Subjects and answers are resampled; models are not. Each world has its own models,
so the same difference in several worlds is stronger evidence than its p shows. Holm's correction is
for all rows of the table. Variants with equal results for every query share one row and count once.

- *Reversed*: a significant difference in the wrong direction, in all worlds together or in one.
- *Power*: queries are drawn many times, half of them about facts that were never read. Power is the
  share of draws in which the paired test puts the taught model above its twin (p < 0.05). The first
  number is against `untaught`, the second against `shuffled`.

**Perplexity** is not a ranking. A model that has read certain names and wordings also gives a lower
perplexity to facts with them that it has never read. This is not knowledge of these facts. A few
names of genes and drugs that the model cuts into rare pieces can make up most of a mean. On LIPID,
the causal taught model has a mean of 8,254 on facts that it has never read, and its untaught twin
4,495. Differences of perplexity are therefore differences of its logarithm.

**Not on this page.** `classifier` (DisKnE) and `rank_change` (context variance) need more than
single facts. The sample world of `make repro` tests them with taught and untaught models. Its
answers are evenly distributed, and it has no shuffled models, because training them takes too long.
The report shows the values of that world by how often a fact was read. Facts of your own benchmark
are never counted as read: a benchmark is calibrated only if its settings have `invented: true`.
"""


INSIDE_TEXT: Final = """## inside

The probe on hidden states is measured in three separate worlds (seeds 2021 to 2023). It ranks pairs
of a right and a wrong statement, so guessing ranks half of them right.

| variant | trained on |
| --- | --- |
| `inside` | the other relations |
| `inside:subjects` | other subjects of the same relation |
| `inside:shuffled` | labels that are exchanged at random |
| `inside:likelihood` | nothing: it ranks by likelihood |

`python -m bench.calibration --worlds 3 --methods inside --out bench/inside.csv` repeats the
measurement.

- In taught models, the probe finds the facts that they have read.
- In untaught and shuffled twins, `inside` finds nothing.
- `inside` finds no more than likelihood does. It finds less in causal models, and about as much in
  masked ones.
- `inside:subjects` ranks 59.7 % [55.1, 64.1] of the pairs right whose facts the taught masked model
  has never read. The names alone cannot explain this, because each name is right as often as wrong
  in the pairs. We do not know the cause.
- Shuffled labels rank half of the pairs right, and slightly less for facts that were read often.

"""
NAMES_TEXT: Final = """## One name or two

This section tests two numbers, consistency and entropy, on models that have read facts under known
names. Half of the facts about drugs are read as follows:

| model | has read |
| --- | --- |
| `both` | the facts under the drug's own name and under its brand |
| `one` | the same facts under the drug's own name only |
| `shuffled` | both names, with the objects of other drugs |

All three models have read both names in other facts, which no query asks for. `mask_average` asks
each fact under two names and five wordings. The models have read only the first wording. Values are
over the worlds of three seeds (2021, 2022, 2023), with 95 % intervals for the relation. Differences
are paired fact by fact, and p is not corrected. Entropy is that of the benchmark's own queries, by
how often their facts were read. `python -m bench.names --seeds 3` repeats the measurement.

- Agreement over names separates a model that has read both names from a model that has read one.
  It does this also for facts that were never read. So it shows that the model knows two names to
  mean one thing.
- Agreement does not separate right facts from shuffled ones. A model that has learnt wrong facts
  under both names is equally consistent. Two other numbers separate them: the share of facts that
  are right under any wording or name, and the share that are right under all.
- Entropy falls with every further reading, for wrong facts as well as for right ones. It shows what
  a model has read often, not what is true.
- Models are almost never right under all ten queries of a fact. They have never read four of the
  five wordings, and models of this size do not transfer a fact to a new wording.

"""


def document(table: pd.DataFrame, steps: pd.DataFrame) -> str:
    """The document.

    Args:
        table: with the columns of `bench.calibration_table`.
        steps: with the columns `world`, `step`, `seconds` and `code` of all worlds.
    """
    systems = evidence(table)
    guide = f"## How to read the tables\n\n{_wrapped(CAPTION)}"
    parts = [INTRODUCTION, _made(table, steps), outcome(systems), guide]
    for method, members in by_method(systems).items():
        picture = drawing(method, members)
        parts.append(
            f"## {method}\n\n![{picture.caption}](../pictures/calibration/{picture.file})\n\n"
            f"{markdown(evidence_table(members))}"
        )
    parts.append(INSIDE_TEXT + markdown(evidence_table(evidence(read_table(INSIDE)))))
    return "\n".join([*parts, of_names(pd.read_csv(NAMES))])


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
    counted = "; ".join(f"*{words}*: {count}" for words, count in counts.items())
    rows: list[list[str | Cell]] = [
        [
            method,
            str(len(members)),
            str(sum(_finding(system) == FACTS for system in members)),
            str(sum("never read" in system.finding for system in members)),
        ]
        for method, members in by_method(systems).items()
    ]
    heads = ["method", "results", FACTS, "above untaught on facts never read"]
    lines = [
        "## What was found\n",
        _wrapped(
            f"There are {len(systems)} different results: one per model, variant and benchmark. "
            f"Their findings are {counted}. Results of one method are not independent. The last "
            "column counts results that are significantly better than those of the untaught twin "
            "on facts that were never read."
        ),
        markdown(Table(heads, rows, "")),
    ]
    if reversals := [system for system in systems if system.reversals]:
        lines.append("Reversed results, which are worse than finding nothing:\n")
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


def _made(table: pd.DataFrame, steps: pd.DataFrame) -> str:
    """Which worlds were measured, by which code, and what they took."""
    names = seeds(table)
    seconds = steps.groupby("world")["seconds"].sum()
    code = ", ".join(dict.fromkeys(steps["code"]))
    return _wrapped(
        f"**What was measured.** {len(names)} worlds, seeds {', '.join(names)}, made by the code "
        f"of {code}. Each took {seconds.min():.0f} to {seconds.max():.0f} CPU seconds. "
        "`python -m bench.calibration --worlds 10` makes ten worlds. It writes this page and "
        "the drawings again. `--processes 2` makes two worlds at a time. "
        "A run that was stopped continues where it stopped."
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
