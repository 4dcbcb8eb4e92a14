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
    ids = examples["example_id"].to_numpy()
    pairs = examples["pair_id"].to_numpy()
    parts = []
    for place, target in enumerate(names):
        test = (examples["original_cui"] == target).to_numpy()
        train = ~mentions[:, place] & ~test
        distinct = np.unique(pairs[train].astype(object))
        generator = np.random.default_rng([seed, place])
        held = generator.permutation(distinct)[: max(1, round(share * len(distinct)))]
        validation = train & np.isin(pairs.astype(object), held)
        for name, rows in (
            ("train", train & ~validation),
            ("validation", validation),
            ("test", test),
        ):
            parts.append(pd.DataFrame({"target": target, "split": name, "example_id": ids[rows]}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SPLITS, dtype=str)
