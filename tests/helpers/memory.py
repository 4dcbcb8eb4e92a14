"""A model in memory ranks as that of its folder does."""

from pathlib import Path
from typing import Any

import pandas as pd
import transformers

import medprobe
from helpers import probing


def check_model_in_memory(folder: Path, auto: Any, method: str) -> None:
    """Fail unless it has the same methods and ranking, and its own folder goes with it."""
    network = auto.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = medprobe.load(model=network, tokenizer=tokenizer)
    model_folder = model.folder
    assert model.methods == medprobe.load(folder).methods
    models = (model, medprobe.load(folder))
    prompt, names = probing.PROMPTS[0], probing.NAMES[:-2]
    pd.testing.assert_frame_equal(*[each.rank(prompt, names, method) for each in models])
    del model, models
    assert not model_folder.exists()
