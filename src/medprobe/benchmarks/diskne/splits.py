"""DisKnE's splits: for each disease, nothing that mentions it is trained on.

Source: Alghanmi et al. 2021, section 3.3.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd

from medprobe.sources.mentions import Mentions

Match = Literal["words", "substrings"]
SPLITS: Final = ["target", "split", "example_id"]


def touched(
    examples: pd.DataFrame, names: Mapping[str, Sequence[str]], match: Match = "words"
) -> np.ndarray:
    """Which examples mention which disease, bool [examples, diseases of `names` in their order].

    An example mentions a disease that is its own or the one it replaced, or a name of which stands
    in its premise, full hypothesis or hypothesis: as whole words, or with `match="substrings"`
    anywhere, as the released code looks for them.
    """
    places = {cui: place for place, cui in enumerate(names)}
    search = _words(names) if match == "words" else _substrings(names)
    found = np.zeros((len(examples), len(places)), dtype=bool)
    for column in ("cui", "original_cui"):
        place = examples[column].map(places)
        known = place.notna().to_numpy()
        found[np.flatnonzero(known), place[known].astype(int)] = True
    for column in ("premise", "full_hypothesis", "hypothesis"):
        codes, texts = pd.factorize(examples[column])
        mentions = np.zeros((len(texts), len(places)), dtype=bool)
        for row, text in enumerate(texts):
            mentions[row, [places[cui] for cui in search(text)]] = True
        found |= mentions[codes]
    return found


def _words(names: Mapping[str, Sequence[str]]) -> Callable[[str], set[str]]:
    finder = Mentions((name, cui) for cui, own in names.items() for name in own)
    return lambda text: {cui for mention in finder.every(text) for cui in mention.ids}


def _substrings(names: Mapping[str, Sequence[str]]) -> Callable[[str], set[str]]:
    folded = [(name.casefold(), cui) for cui, own in names.items() for name in own if name]

    def search(text: str) -> set[str]:
        text = text.casefold()
        return {cui for name, cui in folded if name in text}

    return search


def split(
    examples: pd.DataFrame,
    names: Mapping[str, Sequence[str]],
    share: float,
    seed: int,
    match: Match = "words",
) -> pd.DataFrame:
    """`target, split, example_id`: for each target disease (a key of `names`) what trains,
    validates and tests.

    `test` are the positives of the target and their negatives. `train` and `validation` are the
    examples that do not mention it; validation is this share of their pairs (at least one), so that
    a pair is on one side only.
    """
    mentions = touched(examples, names, match)
    original = examples["original_cui"].to_numpy()
    pairs, distinct = pd.factorize(examples["pair_id"], sort=True)
    places = []  # (target, split, example) of each row, as places in their lists
    for place, target in enumerate(names):
        test = original == target
        train = ~mentions[:, place] & ~test
        generator = np.random.default_rng([seed, place])
        mixed = generator.permutation(np.unique(pairs[train]))
        held = np.zeros(len(distinct), dtype=bool)
        held[mixed[: max(1, round(share * len(mixed)))]] = True
        validation = train & held[pairs]
        for number, rows in enumerate((train & ~validation, validation, test)):
            found = np.flatnonzero(rows)
            places.append((np.full_like(found, place), np.full_like(found, number), found))
    lists = (list(names), ["train", "validation", "test"], examples["example_id"].tolist())
    columns = np.concatenate(places, axis=1) if places else np.empty((3, 0), dtype=np.intp)
    return pd.DataFrame(
        {
            column: pd.Series(values, dtype=str).take(taken).reset_index(drop=True)
            for column, values, taken in zip(SPLITS, lists, columns, strict=True)
        }
    )
