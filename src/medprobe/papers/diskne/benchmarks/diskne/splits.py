"""DisKnE's splits: for each disease, nothing that mentions it is trained on.

Source: Alghanmi et al. 2021, section 3.3.

Nothing a model trains on may name the disease it is tested on, in any form. The paper's rule is
"check for occurrences of all the synonyms"; its released code looks for raw characters, which
misses a comma or an accent. Here texts and names are folded first: case, accents, full-width
letters, invisible characters, punctuation, a possessive 's, and British or American spelling make
no difference. A name is mentioned where

- it is in the text, within a longer word too, if it has three characters or more;
- it is a word of its own, or in capitals with a plural s, if it has two;
- its words, plural or not, are adjacent in any order: "failure of the heart". Of a name of several
  words, each can be an adjective: "allergic asthma" for "asthma, allergy".

The search looks into all readings of a text (sources/forms.py): without tags and masks, with
lists of words taken apart, with spelt letters joined. A name of several words can be one word, if
it has eight letters or more. Names of one character are not looked for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd

from medprobe.sources.forms import Forms, fold

Match = Literal["forms", "substrings"]
Names = Mapping[str, Sequence[str]]  # of each target disease
SPLITS: Final = ["target", "split", "example_id"]
TEXTS: Final = ("premise", "full_hypothesis", "hypothesis")


def touched(
    examples: pd.DataFrame,
    names: Names,
    match: Match = "forms",
    below: Mapping[str, Names] | None = None,
) -> np.ndarray:
    """Find which examples mention which disease: bool [examples, diseases of `names` in order].

    An example mentions its own disease, the disease that this replaced, and every disease of which
    a name in any form, or the CUI, is in its premise, full hypothesis or hypothesis.
    `match="substrings"` looks for names as the released code does: as raw characters, and in the
    premise only. An example that mentions a disease `below` another one, with the names of that
    disease, mentions that one too.
    """
    below = below or {}
    every = {**names}
    for descendants in below.values():
        every |= descendants
    mentions = _mentioned(examples, every, match)
    places = {cui: place for place, cui in enumerate(every)}
    families = ([target, *below.get(target, ())] for target in names)
    columns = [mentions[:, [places[cui] for cui in family]].any(axis=1) for family in families]
    return np.array(columns, dtype=bool).reshape(len(names), len(examples)).T


def _mentioned(examples: pd.DataFrame, names: Names, match: Match) -> np.ndarray:
    places = {cui: place for place, cui in enumerate(names)}
    by_form = Forms([*_pairs(names), *((cui, cui) for cui in names)])
    search = by_form.diseases if match == "forms" else _substrings(names)
    is_mentioned = np.zeros((len(examples), len(places)), dtype=bool)
    for column in ("cui", "original_cui"):
        place = examples[column].map(places)
        is_target = place.notna().to_numpy()
        is_mentioned[np.flatnonzero(is_target), place[is_target].astype(int)] = True
    for column in TEXTS if match == "forms" else TEXTS[:1]:
        codes, texts = pd.factorize(examples[column])
        mentions = np.zeros((len(texts), len(places)), dtype=bool)
        for row, text in enumerate(texts):
            mentions[row, [places[cui] for cui in search(text)]] = True
        is_mentioned |= mentions[codes]
    return is_mentioned


def _pairs(names: Names) -> list[tuple[str, str]]:
    return [(name, cui) for cui, disease_names in names.items() for name in disease_names]


def _substrings(names: Names) -> Callable[[str], set[str]]:
    lowered = [(name.lower(), cui) for name, cui in _pairs(names) if name]

    def search(text: str) -> set[str]:
        text = text.lower()
        return {cui for name, cui in lowered if name in text}

    return search


def split(
    examples: pd.DataFrame,
    mentions: np.ndarray,
    targets: Sequence[str],
    share: float,
    seed: int,
    *,
    shared_premises: bool = False,
) -> pd.DataFrame:
    """Divide the examples for each target disease, of which `touched` gives the `mentions`.

    The columns are `target, split, example_id`.

    `test` are the positives of the target and their negatives. `train` and `validation` are the
    examples that do not mention it and, unless `shared_premises` are allowed, have no premise that
    is tested; validation is this share of their pairs (at least one), so that a pair is on one side
    only.
    """
    original = examples["original_cui"].to_numpy()
    pairs, distinct = pd.factorize(examples["pair_id"], sort=True)
    premises, _ = pd.factorize(examples["premise"].map(fold).str.split().str.join(" "))
    parts = [pd.DataFrame(columns=SPLITS, dtype=str)]
    for place, target in enumerate(targets):
        test = original == target
        train = ~mentions[:, place] & ~test
        if not shared_premises:
            train &= ~np.isin(premises, premises[test]) & ~np.isin(pairs, pairs[test])
        generator = np.random.default_rng([seed, place])
        mixed = generator.permutation(np.unique(pairs[train]))
        held = np.zeros(len(distinct), dtype=bool)
        held[mixed[: max(1, round(share * len(mixed)))]] = True
        validation = train & held[pairs]
        sides = {"train": train & ~validation, "validation": validation, "test": test}
        for name, rows in sides.items():
            parts.append(examples.loc[rows, ["example_id"]].assign(target=target, split=name))
    return pd.concat(parts, ignore_index=True)


def split_as_released(
    examples: pd.DataFrame, mentions: np.ndarray, targets: Sequence[str], share: float
) -> pd.DataFrame:
    """Divide the examples as the authors' released code divides one annotation file.

    Of rows alike in premise and disease the first stays, in each category's test set and in what
    trains; what trains is mixed, always in the same way, and its last rows validate, so that a pair
    may be on both sides. Source: `splits.py` of israa-alghanmi/DisKnE, commit 11bbdb9.
    """
    from sklearn.model_selection import train_test_split
    from sklearn.utils import shuffle

    alike = ["premise", "hypothesis"]
    parts = [pd.DataFrame(columns=SPLITS, dtype=str)]
    for place, target in enumerate(targets):
        about = examples[examples["original_cui"] == target]
        test = about.drop_duplicates(["category", *alike])
        rest = shuffle(examples[~mentions[:, place]].drop_duplicates(alike), random_state=42)
        train, validation = train_test_split(rest, test_size=share, shuffle=False)
        for name, rows in (("train", train), ("validation", validation), ("test", test)):
            parts.append(rows[["example_id"]].assign(target=target, split=name))
    return pd.concat(parts, ignore_index=True)
