"""docs/results.md, from the numbers of its project.

    python -m bench.results PROJECT   # take the numbers over from a project that has been run
    python -m bench.results           # write the page anew from the numbers in docs/results/

The project has the settings docs/results/params.yaml. What is taken over contains no text of the
benchmarks: numbers of relations and of all, differences with their tests, and the hashes of inputs.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any, Final

import jinja2
import pandas as pd
import yaml

from medprobe.core.papers import MEAN, PublishedRow, papers
from medprobe.core.spreadsheets import read_csv
from medprobe.metrics.shuffled import shuffled_name

FOLDER: Final = Path("docs/results")
PAGE: Final = Path("docs/results.md")
ACCURACIES: Final = ("acc_at_1", "acc_at_5", "acc_at_10")
METRICS: Final = (*ACCURACIES, "subject_at_1")
FEW: Final = (  # that are asked ten queries per relation
    ("SmolLM2, `likelihood`", "smollm2", "likelihood"),
    ("MiniLM, as it came", "minilm", "contrastive:original"),
    ("MiniLM, rewired", "minilm", "contrastive"),
)
WHOLE: Final = (  # on all of MedLAMA
    ("MiniLM, as it came", "medlama", "minilm", "contrastive:original"),
    ("*shuffled*", "medlama", "minilm", "contrastive:shuffled-original"),
    ("MiniLM, rewired (one set)", "medlama", "minilm", "contrastive"),
    ("*shuffled*", "medlama", "minilm", "contrastive:shuffled"),
    ("MiniLM, as it came, without the subject", "medlama-others", "minilm", "contrastive:original"),
    ("letters of the names, without the subject", "medlama", "baseline", "letters"),
    ("letters of the names, with it", "medlama", "baseline", "letters:with_subject"),
    ("majority baseline", "medlama", "baseline", "majority"),
    ("a random answer of the relation", "medlama", "baseline", "random_answer"),
)
ECHOES: Final = ("contrastive:original", "letters:with_subject")
BLIND: Final = (  # where letters find nothing
    ("MiniLM, as it came", "minilm", "contrastive:original"),
    ("*shuffled*", "minilm", "contrastive:shuffled-original"),
    ("majority baseline", "baseline", "majority"),
    ("a random answer of the relation", "baseline", "random_answer"),
)
DIFFERENCES: Final = (
    ("shuffled", "full", "acc_at_1", "minilm contrastive:shuffled-original"),
    ("shuffled", "full", "acc_at_10", "minilm contrastive:shuffled-original"),
    ("shuffled", "hard", "acc_at_1", "minilm contrastive:shuffled-original"),
    ("shuffled", "hard", "acc_at_10", "minilm contrastive:shuffled-original"),
    ("shuffled", "full/letters:blind", "acc_at_1", "minilm contrastive:shuffled-original"),
    ("shuffled", "full/letters:blind", "acc_at_10", "minilm contrastive:shuffled-original"),
    ("letters", "full", "acc_at_1", "baseline letters"),
)
LIBRARIES: Final = ("python", "version.torch", "version.transformers", "version.tokenizers")


def take_over(project: Path) -> None:
    """Copy the numbers of a project, and the hashes of what they follow from."""
    numbers = read_csv(project / "reports/comparison.csv")
    numbers[numbers["metric"].isin(METRICS)].to_csv(FOLDER / "numbers.csv", index=False)
    tests = read_csv(project / "reports/significance.csv")
    tests[tests["metric"].isin(ACCURACIES)].to_csv(FOLDER / "differences.csv", index=False)
    stages = yaml.safe_load((project / "dvc.lock").read_text("utf-8"))["stages"].values()
    read = {row["path"]: row["md5"] for stage in stages for row in stage["deps"]}
    made = {row["path"]: row["md5"] for stage in stages for row in stage["outs"]}
    kept = {path: md5 for path, md5 in read.items() if path.startswith("data/")}
    kept |= {path: md5 for path, md5 in made.items() if path.startswith("outputs/models/")}
    files = sorted((project / "outputs/runs").rglob("*.json"))
    runs = [json.loads(path.read_text("utf-8")) for path in files]
    [versions] = {tuple(run[name] for name in LIBRARIES) for run in runs}
    locked = (project / "requirements.lock").read_text("utf-8")
    [(version, code)] = re.findall(r"^medprobe==(\S+) # code (\w+)$", locked, re.MULTILINE)
    made_of = {
        "version": version,
        "code": code,
        **dict(zip(LIBRARIES, versions, strict=True)),
        "md5": kept,
    }
    text = json.dumps(made_of, indent=1, sort_keys=True) + "\n"
    (FOLDER / "made-of.json").write_text(text, "utf-8")


class Numbers:
    """What the page's template asks for."""

    def __init__(self, folder: Path) -> None:
        self.numbers = pd.read_csv(folder / "numbers.csv")
        self.tests = pd.read_csv(folder / "differences.csv")

    def row(self, *where: str) -> pd.Series:
        """A mean of a model: benchmark, subset, model, method, metric, and `micro` if not macro."""
        columns = ("benchmark", "subset", "model", "method", "metric", "relation")
        wanted = dict(zip(columns, (*where, "macro"), strict=False))
        found = self.numbers
        for column, value in wanted.items():
            found = found[found[column] == value]
        if len(found) != 1:
            raise LookupError(f"{len(found)} numbers of {wanted}")
        return found.iloc[0]

    def value(self, *where: str) -> float:
        """The number alone."""
        return float(self.row(*where)["value"])

    def percent(self, *where: str) -> str:
        """The number in per cent."""
        return f"{self.value(*where):.1%}".replace("%", " %")

    def three(self, *system: str) -> str:
        """Acc@1, 5 and 10 in per cent: of a benchmark, subset, model and method."""
        numbers = [f"{100 * self.value(*system, metric):.1f}" for metric in ACCURACIES]
        return f"{' / '.join(numbers)} %"

    def count(self, *system: str) -> str:
        """How many queries a benchmark's part has."""
        return f"{self.row(*system, 'acc_at_1', 'micro')['n']:,.0f}"

    def shuffled(
        self, benchmark: str, subset: str, model: str, method: str, metric: str = "acc_at_1"
    ) -> str:
        """The accuracy with answers to other subjects; a dash where all have one subject."""
        base, _, variant = method.partition(":")
        name = f"{base}:{shuffled_name(variant)}"
        try:
            return self.percent(benchmark, subset, model, name, metric)
        except LookupError:
            return "–"

    def interval(self, *where: str) -> str:
        """The number in per cent, with its interval if there is one."""
        row = self.row(*where)
        if pd.isna(row["low"]):
            return f"{100 * row['value']:.1f}"
        return f"{100 * row['value']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"

    def test(
        self, benchmark: str, subset: str, one: str, other: str, metric: str = "acc_at_1"
    ) -> pd.Series:
        """The test of a metric: `model method` against `model method`, turned to the first."""
        tests = self.tests[
            (self.tests["benchmark"] == benchmark)
            & (self.tests["subset"] == subset)
            & (self.tests["metric"] == metric)
            & (self.tests["relation"] == "macro")
        ]
        a, b = (tests[f"model_{side}"] + " " + tests[f"method_{side}"] for side in "ab")
        found = tests[((a == one) & (b == other)) | ((a == other) & (b == one))]
        if len(found) != 1:
            raise LookupError(f"{len(found)} tests of {one} against {other} on {benchmark}")
        row = found.iloc[0]
        if f"{row['model_a']} {row['method_a']}" == one:
            return row
        turned = {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
        return pd.Series({**row, **turned})

    def difference(
        self, benchmark: str, subset: str, one: str, other: str, metric: str = "acc_at_1"
    ) -> str:
        """A test of a metric: the difference with its interval, and p."""
        row = self.test(benchmark, subset, one, other, metric)
        points, low, high = (f"{100 * row[name]:+.1f}" for name in ("difference", "low", "high"))
        return f"{points} [{low}, {high}] | {p_value(row)}".replace("-", "−")

    def above(
        self, benchmark: str, subset: str, model: str, method: str, metric: str = "acc_at_1"
    ) -> str:
        """The p of a system against its answers to other subjects."""
        base, _, variant = method.partition(":")
        other = f"{model} {base}:{shuffled_name(variant)}"
        p = p_value(self.test(benchmark, subset, f"{model} {method}", other, metric))
        return f"p {p}" if p.startswith("<") else f"p = {p}"


def p_value(test: pd.Series) -> str:
    """The p of a test as papers print it, corrected where something is claimed."""
    p = test["p"] if pd.isna(test["p_holm"]) else test["p_holm"]
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def best_published(subset: str) -> tuple[str, PublishedRow]:
    """The best published acc@1 on MedLAMA, and the number of its table."""
    rows = [
        (number, row)
        for paper in papers().values()
        for number, table in paper.tables.items()
        for row in table.rows
        if (row.benchmark, row.subset, row.relation) == ("medlama", subset, "macro")
        if paper.stands and "acc_at_1" in row.values and row.model != MEAN
    ]
    return max(rows, key=lambda numbered: numbered[1].values["acc_at_1"])


def page() -> str:
    """The text of docs/results.md."""
    template = (FOLDER / "results.md.jinja").read_text("utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    made_of: dict[str, Any] = json.loads((FOLDER / "made-of.json").read_text("utf-8"))
    names: dict[str, Any] = {"n": Numbers(FOLDER), "made_of": made_of}
    names["best_table"], names["best"] = best_published("full")
    names |= {"few": FEW, "whole": WHOLE, "echoes": ECHOES, "blind": BLIND}
    names["differences"] = DIFFERENCES
    return environment.from_string(template).render(names)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path, nargs="?", help="a project that has been run")
    if project := parser.parse_args().project:
        take_over(project)
    PAGE.write_text(page(), "utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
