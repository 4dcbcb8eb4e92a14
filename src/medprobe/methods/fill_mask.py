"""Fill-mask (Petroni et al., EMNLP 2019): one mask in the slot, the vocabulary's best tokens.

Answers of several tokens cannot be found; nothing is cut to make them fit.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from medprobe.engine import masked, ranking
from medprobe.engine.load import load
from medprobe.engine.slots import answer_ids, check_window, masked_slots
from medprobe.params import EngineParams, Section


class FillMask:
    """Ranks the vocabulary, special tokens left out. An answer of one token is a hit."""

    KINDS = ("masked",)

    class Settings(Section):
        """Nothing to choose."""

    def __init__(
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.model = load(folder, "masked", engine)
        tokenizer = self.model.tokenizer
        special = set(tokenizer.all_special_ids)
        self.names = [tokenizer.decode([i]).strip() for i in range(len(tokenizer))]
        vocabulary = [i for i, name in enumerate(self.names) if i not in special and name]
        self.by_name = np.array(sorted(vocabulary, key=lambda i: (self.names[i], i)))

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The k best tokens of each query; the candidates play no part. A text that two tokens
        have, with and without a blank before it, counts once.

        Raises BadInput for a prompt without exactly one slot or longer than the model's window.
        """
        where = [f"query {query}" for query in queries["query_id"]]
        slots = masked_slots(self.model.tokenizer, queries["prompt"], where)
        for slot, query in zip(slots, where, strict=True):
            check_window(slot, [[0]], self.model.max_length, query, ["one token"])

        def keep(item: int, log_prob: torch.Tensor) -> list[tuple[str, float]]:
            scores = log_prob[0].cpu().numpy()[self.by_name]
            best: dict[str, float] = {}
            for place in ranking.best(scores, 2 * k):
                best.setdefault(self.names[self.by_name[place]], float(scores[place]))
            return list(best.items())[:k]

        mask = self.model.tokenizer.mask_token_id
        rows = [slot.fill([mask]) for slot in slots]
        positions = [slot.positions(1) for slot in slots]
        found = masked.log_probs(self.model, rows, positions, self.model.token_budget, keep)
        table = []
        for row, slot, predictions in zip(queries.itertuples(), slots, found, strict=True):
            ids = answer_ids(self.model.tokenizer, list(row.answers), slot.left)
            hits = {self.names[tokens[0]] for tokens in ids if len(tokens) == 1}
            for line in ranking.rows(str(row.query_id), predictions):
                table.append({**line, "hit": line["prediction"] in hits})
        return pd.DataFrame(table)
