"""Pseudo-log-likelihoods that minicons gives two tiny models, token by token."""

from pathlib import Path

import pandas as pd

from helpers import FIXTURES, parity
from medprobe.core.params import EngineParams

SCORES = pd.read_json(FIXTURES / "minicons" / "scores.jsonl", lines=True).set_index(
    ["model", "sentence"]
)
MODELS = ["bert", "roberta"]
PROMPT = "Velotrine treats [Y] ."
NAMES = ["pain", "influenza", "hepatitis B", "pneumonia"]


def checkpoint(model: str) -> Path:
    return parity.OWN_FOLDER / "models" / model


def engine(budget: int = 8192) -> EngineParams:
    return EngineParams(device="cpu", token_budget=budget)


def total(model: str, name: str, metric: str) -> float:
    """The score of PROMPT with a name in it."""
    return sum(SCORES.loc[(model, PROMPT.replace("[Y]", name)), metric])
