"""Mask average (Kassner et al., EACL 2021): a candidate of n tokens is scored by the mean
log-probability of its tokens at n masks in the slot.

One forward pass with n masks serves all candidates of n tokens.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from medprobe.engine import masked, ranking
from medprobe.engine.load import Model, load
from medprobe.engine.slots import answer_ids, check_window, masked_slots
from medprobe.params import EngineParams, Section
from medprobe.tables import DISTRACTOR


class MaskAverage:
    """Ranks all candidates (variant "") and the relation's own answers (variant "relation").

    Where a subset has distractors, "" is without them, and a variant "distractors" with them: one
    pass serves all.
    """

    KINDS = ("masked",)
    KNOWS_DISTRACTORS = True

    class Settings(Section):
        """Nothing to choose: both candidate sets are ranked."""

    def __init__(
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.model = load(folder, "masked", engine)
        self.known = ranking.Remembered()

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The k best names of each query, in each variant.

        Raises BadInput for a prompt without exactly one slot, a name that tokenises to nothing, a
        name that does not fit into the model's window.
        """
        names = sorted(set(candidates["name"]))
        answers = {name for row in queries["answers"] for name in row}
        own = np.array([i for i, name in enumerate(names) if name in answers], dtype=int)
        added = set(candidates.loc[candidates["type"] == DISTRACTOR, "name"])
        plain = np.array([i for i, name in enumerate(names) if name not in added], dtype=int)
        variants = {"": plain, "relation": own}
        if len(plain) < len(names):
            variants["distractors"] = np.arange(len(names))
        prompts = queries["prompt"].tolist()
        where = [f"query {query}" for query in queries["query_id"]]
        found = self.known.scores(
            prompts,
            names,
            lambda: mean_log_probs(self.model, prompts, where, names, self.model.token_budget),
        )
        rows = []
        for query, scores in zip(queries["query_id"], found, strict=True):
            for variant, among in variants.items():
                order = among[ranking.best(scores[among], k)]
                rows += ranking.rows(query, [(names[i], scores[i]) for i in order], variant)
        return pd.DataFrame(rows)


def mean_log_probs(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str], budget: int
) -> np.ndarray:
    """The score of each name in each prompt's slot, (prompts, names), float32.

    `where` names each prompt in errors. Raises BadInput as `MaskAverage.rank` does.
    """
    slots = masked_slots(model.tokenizer, prompts, where)
    lengths = {left: _by_length(model, names, left) for left in {slot.left for slot in slots}}
    for slot, query in zip(slots, where, strict=True):
        longest = max(lengths[slot.left])
        name = names[int(lengths[slot.left][longest][0][0])]
        check_window(slot, [[0] * longest], model.max_length, query, [name])
    work = [(i, n) for i, slot in enumerate(slots) for n in lengths[slot.left]]
    mask = model.tokenizer.mask_token_id
    rows = [slots[i].fill([mask] * n) for i, n in work]
    positions = [slots[i].positions(n) for i, n in work]
    found = np.empty((len(slots), len(names)), dtype=np.float32)

    def keep(item: int, log_prob: torch.Tensor) -> None:
        i, n = work[item]
        at, tokens = lengths[slots[i].left][n]
        found[i, at] = log_prob.gather(1, tokens).mean(0).cpu().numpy()

    masked.log_probs(model, rows, positions, budget, keep)
    return found


def _by_length(
    model: Model, names: Sequence[str], left: str
) -> dict[int, tuple[np.ndarray, torch.Tensor]]:
    """For each number of tokens n: which names have it, and their tokens, (n, names)."""
    at = defaultdict(list)
    ids = answer_ids(model.tokenizer, names, left)
    for i, tokens in enumerate(ids):
        at[len(tokens)].append(i)
    return {
        n: (np.array(of_n), torch.tensor([ids[i] for i in of_n]).T.to(model.device))
        for n, of_n in at.items()
    }
