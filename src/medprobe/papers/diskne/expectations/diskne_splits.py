"""DisKnE's expectations on splits: no leak, and complete sets.

Source: Alghanmi et al. 2021, section 3.3. `leaks` decides what a leak is, from UMLS's file and from
the texts, not from what the builder recorded of them.
"""

from collections.abc import Iterator

import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from medprobe.gate.checks import Context, row_check, says
from medprobe.papers.diskne.leaks import NAMED, NEARLY, find_leaks, plain
from medprobe.sources.reread import CUI, ENGLISH, MRCONSO, STR, read_names

TEXTS = ("hypothesis", "full_hypothesis", "premise")
CHECKS = {NAMED: "expect_no_disease_leakage", NEARLY: "expect_no_disease_nearly_named"}
FEWEST = 8  # words of a premise that can be a near copy
ROWS = 256  # premises that are held against all others at once


@row_check
def expect_examples_to_be_tested(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Each example of a disease that has splits is in the disease's test set.

    Columns `example_id, original_cui, category, premise, hypothesis`. An equal example can stand
    for it.
    """
    example, original, *alike = rows.columns
    splits = context.tables["splits"]
    tests = splits[splits["split"] == "test"]
    tested = pd.MultiIndex.from_frame(tests[["example_id", "target"]])
    pairs = pd.MultiIndex.from_frame(rows[[example, original]])
    is_tested = pd.Series(pairs.isin(tested), rows.index)
    is_covered = is_tested.groupby([rows[column] for column in (original, *alike)]).transform("any")
    return is_covered | ~rows[original].isin(splits["target"].unique())


@row_check
def expect_no_disease_leakage(rows: pd.DataFrame, context: Context, match: str) -> list[bool]:
    """Examples of training and validation do not mention the target disease.

    Columns `target, split, example_id`. The disease is neither the example's nor the replaced one,
    and none of its names is in the premise or the hypothesis, in whole words. With `match`
    "substrings" the names are looked up letter by letter, in the premise alone, as the released
    code does. The reason of a failing row is where the disease leaked, and the name.
    """
    return _are_free_of(NAMED, rows, match, context)


@row_check
def expect_no_disease_nearly_named(rows: pd.DataFrame, context: Context, match: str) -> list[bool]:
    """No sentence of training or validation has all words of a name by their first five letters.

    Columns `target, split, example_id`: "Cilund muscular dystrophy" for "Cilund dystrophy",
    "dystrophy, type Cilund", and "Cilund dystr.".
    """
    return _are_free_of(NEARLY, rows, match, context)


def _are_free_of(how: str, rows: pd.DataFrame, match: str, context: Context) -> list[bool]:
    mentions = _find_mentions(match, context)
    accepted = []
    for target, split, example in zip(*(rows[column] for column in rows.columns), strict=True):
        leak = split != "test" and mentions.get((how, example, target))
        if leak:
            context.reasons[CHECKS[how], f"{target} {split} {example}"] = leak
        accepted.append(not leak)
    return accepted


@row_check
def expect_tested_premises_to_have_no_near_copies(
    rows: pd.DataFrame, context: Context, share: float, shared_premises: bool, split: str
) -> list[bool] | bool:
    """No premise of a test set shares this share of its words with one of training or validation.

    Columns `target, split, example_id`. The share is Jaccard's of the sets of words, for premises
    of at least eight words. Premises of the same words are left to
    `expect_tested_premises_to_be_untrained`.
    """
    if shared_premises or split == "released":
        return True
    target, part, example = rows.columns
    premises = context.tables["examples"].set_index("example_id")["premise"]
    near_copies = _near_copies(sorted(set(premises)), share)
    texts = rows[example].map(premises)
    tested = set(zip(rows[target], texts.where(rows[part] == "test"), strict=True))
    return [
        name == "test" or all((cui, copy) not in tested for copy in near_copies.get(text, ()))
        for cui, name, text in zip(rows[target], rows[part], texts, strict=True)
    ]


@row_check
def expect_tested_premises_to_be_untrained(
    rows: pd.DataFrame, context: Context, shared_premises: bool, split: str
) -> pd.Series | bool:
    """No premise and no pair of a test set is in the training or validation set.

    Columns `target, split, example_id`. If `shared_premises` allow it, they can be, as the released
    split always allows.
    """
    if shared_premises or split == "released":
        return True
    target, part, example = rows.columns
    examples = context.tables["examples"].set_index("example_id")
    premises = examples["premise"].map(plain)
    accepted = pd.Series(True, index=rows.index)
    for column in (premises, examples["pair_id"]):
        keys = pd.MultiIndex.from_arrays([rows[target], rows[example].map(column)])
        accepted &= ~keys.isin(keys[rows[part] == "test"])
    return accepted | (rows[part] == "test")


@row_check
@says("the disease has no positive to train on")
def expect_targets_to_be_trained(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Each tested disease has training and validation rows, and positives that train it.

    Columns `target, split, example_id`. All rows of a disease without them fail.
    """
    target, split, example = rows.columns
    examples = context.tables["examples"]
    positives = set(examples.loc[examples["label"] == 1, "example_id"])
    parts = rows.groupby(target)[split].agg(set)
    complete = parts.map(lambda names: {"train", "validation"} <= names)
    trained = rows[(rows[split] == "train") & rows[example].isin(positives)]
    return rows[target].map(complete) & rows[target].isin(trained[target].unique())


@row_check
@says("too few of the examples that can train do")
def expect_other_examples_to_be_trained(
    rows: pd.DataFrame, context: Context, *, match: str, shared_premises: bool, share: float
) -> pd.Series:
    """Of all examples that can train a disease, this share trains it or validates.

    Columns `target, split, example_id`. An example can train a disease if it does not mention it,
    is not of a disease below it, and has no premise or pair of its test set, unless
    `shared_premises` are allowed. Equal examples count once. All rows of a disease with fewer fail.
    """
    target, split, example = rows.columns
    examples = context.tables["examples"]
    mentions = {(example, cui) for _, example, cui in _find_mentions(match, context)}
    below = context.tables["ancestors"].groupby("ancestor")["cui"].agg(set).to_dict()
    key = examples["premise"] + "\n" + examples["hypothesis"]
    texts = dict(zip(examples["example_id"], key, strict=True))
    premises = examples["premise"].map(plain)
    enough = {}
    for cui, part in rows.groupby(target):
        tests = examples["example_id"].isin(part.loc[part[split] == "test", example])
        usable = ~examples[["cui", "original_cui"]].isin(below.get(cui, set())).any(axis=1) & ~tests
        if not shared_premises:
            usable &= ~premises.isin(premises[tests])
            usable &= ~examples["pair_id"].isin(examples.loc[tests, "pair_id"])
        can_train = {
            texts[name]
            for name in examples.loc[usable, "example_id"]
            if (name, cui) not in mentions
        }
        trained = {texts.get(name) for name in part.loc[part[split] != "test", example]}
        enough[cui] = len(trained) >= share * len(can_train)
    return rows[target].map(enough)


@row_check
def expect_test_examples_to_be_of_the_target(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Columns `target, split, example_id`: test examples are of the target, or replace it."""
    target, split, example = rows.columns
    examples = context.tables["examples"].set_index("example_id")["original_cui"]
    return (rows[split] != "test") | (rows[example].map(examples) == rows[target])


@row_check
def expect_pairs_to_be_on_one_side(
    rows: pd.DataFrame, context: Context, split: str
) -> pd.Series | bool:
    """No pair's examples both train and validate.

    Columns `target, split, example_id`. The released code's split divides rows, so it is not
    checked.
    """
    if split == "released":
        return True
    target, part, example = rows.columns
    pairs = rows[example].map(context.tables["examples"].set_index("example_id")["pair_id"])
    sides = rows[part].where(rows[part] != "test").groupby([rows[target], pairs])
    return (rows[part] == "test") | (sides.transform("nunique") == 1)


def _near_copies(texts: list[str], share: float) -> dict[str, list[str]]:
    """For each text of at least `FEWEST` words the others that share so much of its words."""
    lines = [plain(text) for text in texts]
    matrix = CountVectorizer(analyzer=str.split, binary=True).fit_transform(lines)
    sizes = matrix.sum(axis=1).A1
    copies: dict[str, list[str]] = {}
    for start in range(0, len(texts), ROWS):
        shared = (matrix[start : start + ROWS] @ matrix.T).toarray()
        union = sizes[start : start + ROWS, None] + sizes[None] - shared
        near = (shared >= share * union) & (shared < union) & (sizes >= FEWEST)[None]
        for row, column in zip(*near.nonzero(), strict=True):
            copies.setdefault(texts[start + row], []).append(texts[column])
    return copies


def _find_mentions(match: str, context: Context) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Map `(how, example, disease)` to where the example mentions the disease, and by which name.

    All diseases that have splits are looked up, once in a run.
    """
    if match in context.computed:
        return context.computed[match]  # type: ignore[no-any-return]
    examples, targets = context.tables["examples"], set(context.tables["splits"]["target"])
    why = "the gate needs UMLS's names to find leaks"
    names = {(row[STR], row[CUI]) for row in read_names(MRCONSO, targets, ENGLISH, why)}
    positives = examples[(examples["kind"] == "positive") & examples["cui"].isin(targets)]
    names |= {(row.full_hypothesis[row.start : row.end], row.cui) for row in positives.itertuples()}
    ordered = sorted(names | {(cui, cui) for cui in targets})
    find = find_leaks if match == "forms" else _find_letters
    mentions: dict[tuple[str, str, str], tuple[str, str]] = {}
    for column in TEXTS if match == "forms" else TEXTS[-1:]:
        found = {text: [*find(text, ordered)] for text in examples[column].unique()}
        for example, pair, text in examples[["example_id", "pair_id", column]].to_numpy():
            for how, name, cui in found[text]:
                mentions[how, example, cui] = f"pair {pair}, in its {column}", repr(name)
    for column in ("original_cui", "cui"):
        for example, pair, cui in examples[["example_id", "pair_id", column]].to_numpy():
            mentions[NAMED, example, cui] = f"pair {pair}, {cui} is its {column}", ""
    context.computed[match] = mentions
    return mentions


def _find_letters(text: str, names: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Find names letter by letter, in any case, as the released code does."""
    lower = text.lower()
    return ((NAMED, name, cui) for name, cui in names if name.strip() and name.lower() in lower)
