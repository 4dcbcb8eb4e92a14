"""What T5 and BART read and write, against the code that MedLAMA released."""

from functools import cache

import pandas as pd
import pytest

from helpers import parity, probing
from medprobe.engine import seq2seq
from medprobe.methods.generative import Generative

INPUTS, OUTPUTS = parity.read("generative", "inputs"), parity.read("generative", "outputs")
PROMPTS = INPUTS["prompts"]
UNTAUGHT = 3  # prompts of a random model: it writes as long as it may


def prompts_for(model: str) -> list[dict]:
    return PROMPTS if model.endswith("-taught") else PROMPTS[:UNTAUGHT]


def prober(model: str, script: str) -> Generative:
    settings = Generative.Settings(script=script)
    return Generative(parity.folder(model), settings, parity.ENGINE, 0)


@cache
def predicted(model: str, script: str) -> dict[str, pd.DataFrame]:
    """The predictions of each prompt."""
    rows = [(p["id"], p["prompt"], p["answers"], p["answers"]) for p in prompts_for(model)]
    queries = pd.DataFrame(rows, columns=["query_id", "prompt", "answers", "answer_ids"])
    table = prober(model, script).predict(probing.task(queries, probing.candidates(), 10), "")
    return dict(list(table.groupby("query_id")))


@pytest.mark.parametrize("model", OUTPUTS)
def test_the_models_read_the_same(model):
    loaded = parity.model(model, "seq2seq")
    for prompt in PROMPTS:
        theirs = OUTPUTS[model][prompt["id"]]
        assert seq2seq.source_ids(loaded, prompt["prompt"]) == theirs["source_ids"]
        assert seq2seq.prompts_front(prompt["prompt"]) == theirs["front_text"]


@pytest.mark.parametrize("model", OUTPUTS)
def test_what_is_written_reads_the_same(model):
    loaded = parity.model(model, "seq2seq")
    for theirs in OUTPUTS[model].values():
        for ids, text in zip(theirs["sequences"], theirs["texts"], strict=True):
            assert seq2seq.text_of(loaded, ids, theirs["front_text"]) == text


@pytest.mark.parametrize("model", OUTPUTS)
def test_the_search_writes_the_same_as_far_as_its_library_does(model):
    for name, filling in predicted(model, "released").items():
        theirs = OUTPUTS[model][name]
        if theirs["transformers_5"]["same_first"]:
            assert filling["prediction"].iloc[0] == theirs["texts"][0]
        if theirs["transformers_5"]["same_ten"]:
            assert filling["prediction"].tolist() == theirs["texts"]


def test_a_front_that_is_no_regular_expression_stays():
    loaded = parity.model("bart-taught", "seq2seq")
    ids = loaded.tokenizer("pain (acute) and more")["input_ids"]
    assert seq2seq.text_of(loaded, ids, "pain (acute") == "pain (acute) and more"
