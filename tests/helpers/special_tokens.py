"""Special tokens of the tiny models, and what a method that ranks names does about them."""

from pathlib import Path

import pytest

import medprobe
from medprobe.core.errors import BadInput

SPECIAL = {
    "bert": ["[SEP]", "[PAD]", "[MASK]", "[CLS]", "[UNK]"],
    "roberta": ["</s>", "<pad>", "<mask>"],
    "gpt2": ["<|endoftext|>"],
    "llama": ["<s>", "</s>"],
    "t5": ["<extra_id_0>", "</s>"],
    "bart": ["<mask>", "<s>"],
}


def check_refusal(folder: Path, method: str) -> None:
    """Fail unless a method refuses each special token of a model, in a prompt and in a name."""
    model = medprobe.load(folder)
    for token in SPECIAL[folder.name]:
        with pytest.raises(BadInput) as error:
            model.rank(f"aspirin {token} treats [Y] .", ["pain"], method)
        assert f"query ask: the text contains {token}, a special" in str(error.value)
        with pytest.raises(BadInput) as error:
            model.rank("aspirin treats [Y] .", ["pain", f"a {token}"], method)
        assert f"candidate 'a {token}': the text contains {token}" in str(error.value)
    assert len(model.rank("aspirin treats [Y] .", ["pain", "[ SEP ]", "s>"], method)) == 3
