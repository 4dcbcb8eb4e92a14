"""The gate against broken benchmarks: what stops the pipeline, what is a warning, what is missed.

    python -m bench.gate               # every case, on benchmarks of a small sample world
    python -m bench.gate diskne        # those of one benchmark

Each case damages sound tables in one way, as a mistake of a builder, of a source or of a hand
would, and the benchmark's own suites run on them. docs/reference/gate.md has the table.
"""

import argparse
import tempfile
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
import yaml

from medprobe import benchmarks
from medprobe.commands.sample import sample
from medprobe.core.params import Params, parse_section
from medprobe.core.places import EXPECTATIONS
from medprobe.core.tables import SLOT
from medprobe.quality import gate, suites

ROOT: Final = Path(__file__).parents[1]
BUILDERS: Final = ("medlama", "biolama", "diskne", "context", "lipid")
PREMISE: Final = "He was seen at home twice this week and could walk a few steps ."
SIZE: Final = {"queries": 20, "reserve": 12}  # of the sample world

Tables = dict[str, pd.DataFrame]
Damage = Callable[[Tables], None]
CASES: dict[str, list[tuple[str, Damage]]] = {builder: [] for builder in BUILDERS}


class Outcome(NamedTuple):
    """What the gate says of one case."""

    builder: str
    case: str
    verdict: str  # stopped, warned or missed
    expectations: list[str]  # that failed


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate")
    parser.add_argument("builders", nargs="*", choices=[[], *BUILDERS], default=[])
    chosen = parser.parse_args().builders or BUILDERS
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        outcomes = [outcome for builder in chosen for outcome in run(builder)]
    print(table(outcomes))


def table(outcomes: list[Outcome]) -> str:
    """Format outcomes as Markdown, with their counts."""
    lines = [
        "| benchmark | what is broken | the gate | expectations |",
        "| --- | --- | --- | --- |",
    ]
    for builder, case, verdict, expectations in outcomes:
        names = ", ".join(f"`{name}`" for name in expectations) or "–"
        lines.append(f"| {builder} | {case} | {verdict} | {names} |")
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("stopped", "warned", "missed"))
    return "\n".join([*lines, "", f"Of {len(outcomes)} cases: {counts}."])


def run(builder: str) -> list[Outcome]:
    """Run all cases of a builder, in a folder that becomes a project with the sample world."""
    params = Params.model_validate(yaml.safe_load((ROOT / "params.yaml").read_text()))
    if not Path("data").exists():
        sample(Path("data"), {**params.sample, **SIZE}, params.seed)
    plugin = benchmarks.find(builder)
    settings = parse_section(plugin.settings, params.benchmarks[builder][builder], builder)
    built = plugin.build(Path("data"), settings, params.seed)
    tables = {"queries": built.queries, "candidates": built.candidates, **built.others}
    loaded = suites.load(ROOT / EXPECTATIONS / builder, [], settings.model_dump(mode="json"))
    before = _failing(loaded, tables)
    outcomes = []
    for case, damage in CASES[builder]:
        damaged = {name: rows.copy() for name, rows in tables.items()}
        damage(damaged)
        failing = _failing(loaded, damaged)
        new = {name: severity for name, severity in failing.items() if name not in before}
        verdict = "stopped" if "critical" in new.values() else "warned" if new else "missed"
        outcomes.append(Outcome(builder, case, verdict, sorted(new)))
    return outcomes


def _failing(loaded: list[suites.Suite], tables: Tables) -> dict[str, str]:
    """The expectations that fail, with their severities."""
    reports = gate.run([suite for suite in loaded if suite.table in tables], tables, text=False)
    failing = [check for report in reports for check in report["checks"] if not check["success"]]
    return {check["type"]: check["severity"] for check in failing}


def case(builder: str, name: str) -> Callable[[Damage], Damage]:
    """Register a damage as a case."""

    def register(damage: Damage) -> Damage:
        CASES[builder].append((name, damage))
        return damage

    return register


def change(tables: Tables, name: str, row: int, **values: Any) -> None:
    """Replace values of one row of a table."""
    records = tables[name].to_dict("records")
    records[row] |= values
    tables[name] = pd.DataFrame(records, columns=tables[name].columns)


def append(tables: Tables, name: str, rows: pd.DataFrame) -> None:
    """Append rows to a table."""
    tables[name] = pd.concat([tables[name], rows], ignore_index=True)


def full(tables: Tables) -> pd.DataFrame:
    """The first relation's queries of the subset `full`, with their index."""
    queries = tables["queries"]
    queries = queries[queries["subset"] == "full"]
    return queries[queries["relation"] == queries["relation"].iloc[0]]


@case("medlama", "more than ten answers")
def eleven_answers(tables: Tables) -> None:
    names = tables["candidates"]["name"].unique()[:11]
    ids = [f"C99{number:05}" for number in range(11)]
    change(tables, "queries", 0, answers=[*names], answer_ids=ids)


@case("medlama", "a query twice, with one id")
def same_id(tables: Tables) -> None:
    append(tables, "queries", tables["queries"].head(1))


@case("medlama", "a query twice, with two ids")
def two_ids(tables: Tables) -> None:
    append(tables, "queries", tables["queries"].head(1).assign(query_id="another"))


@case("medlama", "a query twice, under two subject ids")
def two_subject_ids(tables: Tables) -> None:
    row = tables["queries"].head(1)
    append(tables, "queries", row.assign(query_id="another", subject_id="C9999999"))


@case("medlama", "subject and object exchanged")
def exchanged(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(
        tables,
        "queries",
        0,
        subject=row["answers"][0],
        subject_id=row["answer_ids"][0],
        answers=[row["subject"]],
        answer_ids=[row["subject_id"]],
    )


@case("medlama", "a relation is missing")
def no_relation(tables: Tables) -> None:
    queries = tables["queries"]
    tables["queries"] = queries[queries["relation"] != queries["relation"].iloc[0]]


@case("medlama", "answers shuffled, their ids not")
def shuffled(tables: Tables) -> None:
    rows = full(tables)
    answers = tables["queries"]["answers"].copy()
    answers[rows.index] = rows["answers"].to_list()[1:] + rows["answers"].to_list()[:1]
    tables["queries"]["answers"] = answers


@case("medlama", "answers permuted with their ids, within a relation")
def permuted(tables: Tables) -> None:
    rows = full(tables)
    for column in ("answers", "answer_ids"):
        values = tables["queries"][column].copy()
        values[rows.index] = rows[column].to_list()[1:] + rows[column].to_list()[:1]
        tables["queries"][column] = values


@case("medlama", "two relations exchanged")
def relations_exchanged(tables: Tables) -> None:
    first, second = tables["queries"]["relation"].unique()[:2]
    names = {first: second, second: first}
    tables["queries"]["relation"] = tables["queries"]["relation"].replace(names)


@case("medlama", "a prompt holds its answer")
def prompt_with_answer(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=f"{row['answers'][0]} . {row['prompt']}")


@case("medlama", "a prompt of another subject")
def prompt_of_another(tables: Tables) -> None:
    rows = full(tables)
    change(tables, "queries", rows.index[0], prompt=rows["prompt"].iloc[1])


@case("medlama", "a prompt without its subject")
def prompt_without_subject(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=row["prompt"].replace(row["subject"], "It"))


@case("medlama", "an answer that is not a candidate")
def unknown_answer(tables: Tables) -> None:
    change(tables, "queries", 0, answers=["no such name"], answer_ids=["C9999999"])


@case("medlama", "an easy query in the hard set")
def easy(tables: Tables) -> None:
    hard = tables["queries"].index[tables["queries"]["subset"] == "hard"][0]
    change(tables, "queries", hard, avg_match=0.5, avg_rouge_l=0.5)


@case("biolama", "a test query in train")
def test_in_train(tables: Tables) -> None:
    append(tables, "train", tables["queries"].head(1))


@case("biolama", "a test query in dev")
def test_in_dev(tables: Tables) -> None:
    append(tables, "dev", tables["queries"].head(1))


@case("biolama", "a query of dev in train")
def dev_in_train(tables: Tables) -> None:
    append(tables, "train", tables["dev"].head(1))


@case("biolama", "a test query in train, under another subject id")
def renamed_in_train(tables: Tables) -> None:
    row = tables["queries"].head(1)
    append(tables, "train", row.assign(query_id="another", subject_id="MESH:C9999999"))


@case("biolama", "a near copy of a test query in train")
def near_copy_in_train(tables: Tables) -> None:
    row = tables["queries"].head(1).assign(query_id="another", subject_id="MESH:C9999999")
    append(tables, "train", row.assign(subject=row["subject"].str.title() + "s"))


@case("biolama", "a prompt of another subject")
def biolama_prompt(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[1])


@case("biolama", "a relation is missing")
def biolama_relation(tables: Tables) -> None:
    queries = tables["queries"]
    tables["queries"] = queries[queries["relation"] != queries["relation"].iloc[0]]


def leak(hide: Callable[[str], str], pattern: str, column: str, tables: Tables) -> None:
    """Name a target in a text that trains it, in a hidden form.

    Args:
        hide: Makes the form of a name.
        pattern: Of the names that are hidden.
        column: Of the text.
        tables: Where it is changed.
    """
    splits, names = tables["splits"], tables["names"]
    fitting = names[names["cui"].isin(splits["target"]) & names["name"].str.fullmatch(pattern)]
    cui, name = fitting[["cui", "name"]].iloc[0]
    row = splits[(splits["target"] == cui) & (splits["split"] == "train")].iloc[0]
    index = tables["examples"].index[tables["examples"]["example_id"] == row["example_id"]][0]
    text = f"{tables['examples'].loc[index, column]} There was {hide(name)} too ."
    change(tables, "examples", index, **{column: text})


NAMED: Final[dict[str, Callable[[str], str]]] = {
    "in full width": lambda name: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in name),
    "with invisible characters": lambda name: (
        name[:3] + "\u200b" + name[3:-3] + "\u00ad" + name[-3:]
    ),
    "with hyphens between its words": lambda name: name.replace(" ", "-"),
    "with its words in reverse": lambda name: " ".join(reversed(name.split())),
    "with accents": lambda name: name.replace("a", "a\u0301").replace("u", "\u00fc"),
    "over two lines": lambda name: name.replace(" ", "\n\t"),
    "as a genitive": lambda name: name.replace(" ", "'s "),
    "in the plural": lambda name: name[:-1] + "ies" if name.endswith("y") else f"{name}s",
    "with a hyphen within a word": lambda name: name[:-4] + "-" + name[-4:],
    "with a hyphen and a blank within a word": lambda name: name[:-4] + "- " + name[-4:],
    'as "… of the type …"': lambda name: " of the type ".join(reversed(name.split())),
    "with a word between": lambda name: name.replace(" ", " chronic "),
    "as an adjective": lambda name: name.rstrip("y") + "ic",
    "with a typing error": lambda name: name[:2] + name[3] + name[2] + name[4:],
    "run together": lambda name: name.replace(" ", ""),
    "letter by letter": lambda name: " ".join("".join(name.split())),
    "with a letter of another alphabet": lambda name: name.replace("e", "\u0435").replace(
        "o", "\u043e"
    ),
    "with an entity of HTML": lambda name: name.replace(" ", "&nbsp;"),
}
ABBREVIATED: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "in the plural": lambda name: f"{name}s",
    "with full stops": lambda name: ".".join(name) + ".",
    "letter by letter": " ".join,
}
LEAKS: Final = [
    *((f"named {form}", hide, r"[A-Z]\w+ [a-z]+", "premise") for form, hide in NAMED.items()),
    *(
        (f"by its abbreviation {form}", hide, "[A-Z]+", "premise")
        for form, hide in ABBREVIATED.items()
    ),
    ("by a synonym", str, r"[a-z]+", "premise"),
    ("in the full hypothesis alone", str, r"[A-Z]\w+ [a-z]+", "full_hypothesis"),
]
CASES["diskne"] += [
    (f"a text that trains a disease has it, {form}", partial(leak, hide, pattern, column))
    for form, hide, pattern, column in LEAKS
]


def premise_copied(edit: Callable[[str], str], tables: Tables) -> None:
    """Give an example that trains a disease the edited premise of one that tests it."""
    splits, examples = tables["splits"], tables["examples"]
    target = splits["target"].iloc[0]
    of = splits[splits["target"] == target]
    tests = of.loc[of["split"] == "test", "example_id"]
    train = of.loc[of["split"] == "train", "example_id"].iloc[0]
    for example, premise in ((tests.iloc[0], PREMISE), (train, edit(PREMISE))):
        index = examples.index[examples["example_id"] == example][0]
        change(tables, "examples", index, premise=premise)


PREMISES: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "in capitals, with more blanks": lambda text: "  ".join(text.upper().split()),
    "without its full stop": lambda text: text.rstrip(" ."),
    "with one more word": lambda text: f"today {text}",
}
CASES["diskne"] += [
    (f"a premise that tests also trains, {form}", partial(premise_copied, edit))
    for form, edit in PREMISES.items()
]


@case("diskne", "an example that tests also trains")
def test_moved(tables: Tables) -> None:
    row = tables["splits"].query("split == 'test'").head(1)
    append(tables, "splits", row.assign(split="train"))


@case("diskne", "an example moved from test to train")
def moved(tables: Tables) -> None:
    index = tables["splits"].index[tables["splits"]["split"] == "test"][0]
    change(tables, "splits", index, split="train")


@case("diskne", "a positive with the label 0")
def positive_as_zero(tables: Tables) -> None:
    index = tables["examples"].index[tables["examples"]["kind"] == "positive"][0]
    change(tables, "examples", index, label=0)


@case("diskne", "a negative that is related to the original")
def related(tables: Tables) -> None:
    ancestors = tables["ancestors"].set_index("cui")["ancestor"]
    examples = tables["examples"]
    fitting = examples[(examples["label"] == 0) & examples["original_cui"].isin(ancestors.index)]
    original = fitting["original_cui"].iloc[0]
    ancestor = ancestors.loc[[original]].iloc[0]
    change(tables, "examples", fitting.index[0], cui=ancestor)


@case("diskne", "no ancestors at all")
def no_ancestors(tables: Tables) -> None:
    tables["ancestors"] = tables["ancestors"].head(0)


@case("diskne", "a target without examples that train it")
def no_train(tables: Tables) -> None:
    splits = tables["splits"]
    gone = (splits["target"] == splits["target"].iloc[0]) & (splits["split"] == "train")
    tables["splits"] = splits[~gone].reset_index(drop=True)


@case("diskne", "a target without examples that test it")
def no_test(tables: Tables) -> None:
    splits = tables["splits"]
    gone = (splits["target"] == splits["target"].iloc[0]) & (splits["split"] == "test")
    tables["splits"] = splits[~gone].reset_index(drop=True)


@case("diskne", "a disease without splits")
def no_splits(tables: Tables) -> None:
    splits = tables["splits"]
    gone = splits["target"] == splits["target"].iloc[0]
    tables["splits"] = splits[~gone].reset_index(drop=True)


@case("context", "the answer in the prompt of one step")
def context_with_answer(tables: Tables) -> None:
    queries = tables["queries"]
    row = queries[queries["step"] == 0].index[0]
    answer = queries.loc[row, "answers"][0]
    change(tables, "queries", row, prompt=f"{answer} . {queries.loc[row, 'prompt']}")


@case("context", "a query without its slot")
def context_without_slot(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[0].replace(SLOT, ""))


@case("context", "a step that shows less than the one before")
def context_shows_less(tables: Tables) -> None:
    queries = tables["queries"]
    row = queries[queries["step"] == 2].index[0]
    change(tables, "queries", row, shown=[])


@case("lipid", "an article from before the date that models have read to")
def old_article(tables: Tables) -> None:
    change(tables, "queries", 0, date="1990-01-01")


@case("lipid", "a prompt that is not its sentence")
def other_text(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=f"Nothing of the kind is {SLOT} .")


if __name__ == "__main__":
    main()
