"""Probing while a model trains: a callback for the Trainer of transformers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.library.model import load
from medprobe.library.probing import probe

if TYPE_CHECKING:
    from transformers import TrainerCallback


def callback(
    facts: pd.DataFrame | str | Path,
    method: str,
    *,
    every: int,
    metrics: Sequence[str] = ("acc_at_1", "acc_at_10"),
    **options: Any,
) -> "TrainerCallback":
    """Make a callback of transformers' Trainer that probes the model while it trains.

    Each time it adds a line to the trainer's log history, with the keys `step` and
    `probe_<metric>`. It probes a copy of the model, so that training goes on as without it.

    Args:
        facts: what to probe, as for `probe`.
        method: name of the method.
        every: number of training steps from one time to the next; the last step is probed too.
        metrics: names of the metrics to log, each the mean over relations.
        options: further arguments of `probe`, such as `prompts`, `limit` or `settings`.

    Returns:
        The callback. Its attribute `history` is the list of logged lines.

    Raises:
        BadInput: before training, if the trainer has no tokenizer; when it probes, as `probe` does.

    Example:
        >>> probing = callback(
        ...     "facts.csv", "mask_average", every=100, prompts="prompts.csv"
        ... )  # doctest: +SKIP
        >>> trainer = Trainer(
        ...     model, arguments, processing_class=tokenizer, callbacks=[probing]
        ... )  # doctest: +SKIP
    """
    from transformers import TrainerCallback

    class ProbeCallback(TrainerCallback):
        def __init__(self) -> None:
            self.history: list[dict[str, float]] = []

        def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
            if objects.get("processing_class") is None:
                remedy = "give it processing_class=tokenizer"
                raise BadInput("callback", "the trainer has no tokenizer", remedy)

        def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
            if state.global_step % every == 0 or state.global_step == state.max_steps:
                model = load(model=objects["model"], tokenizer=objects["processing_class"])
                scores = probe(model, facts, method, bootstrap=1, **options).scores
                line = {"step": state.global_step, **_means(scores, metrics)}
                self.history.append(line)
                state.log_history.append(line)

    return ProbeCallback()


def _means(scores: pd.DataFrame, metrics: Sequence[str]) -> Mapping[str, float]:
    """The means over relations of the main variant, as `probe_<metric>`."""
    means = scores[(scores["relation"] == "macro") & scores["metric"].isin(metrics)]
    main = means[means["method"] == means["method"].min()]  # names of variants are longer
    return {f"probe_{row.metric}": float(row.value) for row in main.itertuples()}
