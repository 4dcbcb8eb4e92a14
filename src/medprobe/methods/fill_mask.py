"""Fill-mask (Petroni et al., EMNLP 2019): one mask in the slot, the vocabulary's best tokens.

Answers of several tokens cannot be found; nothing is cut to make them fit.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from medprobe.core import answers
from medprobe.core.params import EngineParams, RankingSettings
from medprobe.engine import masked, ranking
from medprobe.engine.load import load
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots
from medprobe.methods import Method, Task


class FillMask(Method):
    """Ranks the vocabulary, special tokens left out. A token is a hit where an answer has no other,
    or where it reads as one by the benchmark's rule, letter case aside.
    """

    KINDS = ("masked",)
    WRITES = True

    class Settings(RankingSettings):
        """Nothing else to choose."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "masked", engine)
        tokenizer = self.model.tokenizer
        special = set(tokenizer.all_special_ids)
        self.names = [tokenizer.decode([i]).strip() for i in range(len(tokenizer))]
        vocabulary = [i for i, name in enumerate(self.names) if i not in special and name]
        self.by_name = np.array(sorted(vocabulary, key=lambda i: (self.names[i], i)))

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best tokens of each query; the candidates play no part. A text that two tokens
        have, with and without a blank before it, counts once.

        Raises BadInput for a prompt without exactly one slot or longer than the model's window.
        """
        slots = self._slots(task)
        for slot, query in zip(slots.values(), task.label_by_prompt.values(), strict=True):
            check_window(slot, [[0]], self.model.max_length, query, ["one token"])

        def keep(item: int, log_prob: torch.Tensor) -> list[tuple[str, float]]:
            scores = log_prob[0].cpu().numpy()[self.by_name]
            best: dict[str, float] = {}
            for i in ranking.best(scores, 2 * task.k):
                best.setdefault(self.names[self.by_name[i]], float(scores[i]))
            return list(best.items())[: task.k]

        mask = self.model.tokenizer.mask_token_id
        rows = [slot.fill([mask]) for slot in slots.values()]
        positions = [slot.positions(1) for slot in slots.values()]
        best = masked.log_probs(self.model, rows, positions, self.model.token_budget, keep)
        of_prompt = dict(zip(slots, best, strict=True))
        same, table = answers.uncased(task.normalise), []
        for query in task.queries.itertuples():
            slot, predictions = slots[query.prompt], of_prompt[query.prompt]
            ids = answer_ids(self.model.tokenizer, list(query.answers), slot.left)
            tokens = {self.names[found[0]] for found in ids if len(found) == 1}
            right = {same(answer) for answer in query.answers}
            for row in ranking.rows(str(query.query_id), predictions):
                text = row["prediction"]
                table.append({**row, "hit": text in tokens or same(text) in right})
        return pd.DataFrame(table)

    def reads(self, task: Task, pass_: str) -> list[int]:
        """Each prompt, its slot one token."""
        return [len(slot.fill([0])) for slot in self._slots(task).values()]

    def _slots(self, task: Task) -> dict[str, Slot]:
        """The slot of each prompt."""
        where = task.label_by_prompt
        slots = masked_slots(self.model.tokenizer, where, [*where.values()])
        return dict(zip(where, slots, strict=True))
