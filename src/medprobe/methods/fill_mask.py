"""Fill-mask (Petroni et al., EMNLP 2019): one mask in the slot, the vocabulary's best tokens.

Answers of several tokens cannot be found; nothing is cut to make them fit.
"""

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import torch

from medprobe.core import answers
from medprobe.core.params import EngineParams
from medprobe.core.settings import Section
from medprobe.engine import masked, ranking
from medprobe.engine.load import load
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots
from medprobe.methods import Method, Task


class FillMask(Method):
    """Ranks the vocabulary, without special tokens, at one mask.

    A token is a hit if an answer consists of it alone, or if it equals an answer by the benchmark's
    rule, ignoring case.
    """

    KINDS = ("masked",)
    ASK_PRIORITY = MappingProxyType({"write": 2})
    WRITES_WITH = MappingProxyType({})

    class Settings(Section):
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
        """Return the k best tokens of each query; candidates are not used.

        A text that two tokens share, with and without a blank before it, counts once.
        """
        slots = self._slots(task)
        for slot, query in zip(slots.values(), task.label_by_prompt.values(), strict=True):
            check_window(slot, [[0]], self.model.max_length, query, ["one token"])

        def keep(item: int, log_prob: torch.Tensor) -> list[tuple[str, float]]:
            scores = log_prob[0].cpu().numpy()[self.by_name]
            predictions_by_slot: dict[str, float] = {}
            for i in ranking.best_indices(scores, 2 * task.k):
                predictions_by_slot.setdefault(self.names[self.by_name[i]], float(scores[i]))
            return list(predictions_by_slot.items())[: task.k]

        mask = self.model.tokenizer.mask_token_id
        rows = [slot.fill([mask]) for slot in slots.values()]
        positions = [slot.positions(1) for slot in slots.values()]
        predictions_by_slot = masked.log_probs(
            self.model, rows, positions, self.model.token_budget, keep
        )
        predictions_by_prompt = dict(zip(slots, predictions_by_slot, strict=True))
        same, table = answers.uncased(task.normalise), []
        for query in task.queries.itertuples():
            slot, predictions = slots[query.prompt], predictions_by_prompt[query.prompt]
            ids = answer_ids(self.model.tokenizer, list(query.answers), slot.preceding)
            tokens = {self.names[token_ids[0]] for token_ids in ids if len(token_ids) == 1}
            right_answers = {same(answer) for answer in query.answers}
            for row in ranking.prediction_rows(str(query.query_id), predictions):
                text = row["prediction"]
                table.append({**row, "hit": text in tokens or same(text) in right_answers})
        return pd.DataFrame(table)

    def _slots(self, task: Task) -> dict[str, Slot]:
        """The slot of each prompt."""
        labels = task.label_by_prompt
        slots = masked_slots(self.model.tokenizer, labels, [*labels.values()])
        return dict(zip(labels, slots, strict=True))
