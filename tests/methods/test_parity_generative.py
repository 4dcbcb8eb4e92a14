"""What T5 and BART read and write, against the code that MedLAMA released."""

from functools import cache

import pandas as pd
import pytest

from helpers import parity, probing
from medprobe.engine import seq2seq_released
from medprobe.methods.generative import Generative

INPUTS, OUTPUTS = parity.read("generative", "inputs"), parity.read("generative", "outputs")
PROMPTS = INPUTS["prompts"]
UNTAUGHT = 3  # prompts of a random model: it writes as long as it may
SCORE = 1e-4


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
        assert seq2seq_released.source_ids(loaded, prompt["prompt"]) == theirs["source_ids"]
        assert seq2seq_released.prompts_front(prompt["prompt"]) == theirs["front_text"]


@pytest.mark.parametrize("model", OUTPUTS)
def test_what_is_written_reads_the_same(model):
    loaded = parity.model(model, "seq2seq")
    for theirs in OUTPUTS[model].values():
        for ids, text in zip(theirs["sequences"], theirs["texts"], strict=True):
            assert seq2seq_released.text_of(loaded, ids, theirs["front_text"]) == text


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
    assert seq2seq_released.text_of(loaded, ids, "pain (acute") == "pain (acute) and more"


def without_sentinels(text: str) -> str:
    for i in range(100):
        text = text.replace(f"<extra_id_{i}>", " ")
    return " ".join(text.split())


def test_the_document_says_so():
    models = {model: parity.model(model, "seq2seq") for model in OUTPUTS}
    pairs = [
        (model, prompt, OUTPUTS[model][prompt["id"]]) for model in OUTPUTS for prompt in PROMPTS
    ]
    read = sum(
        seq2seq_released.source_ids(models[model], prompt["prompt"]) == theirs["source_ids"]
        for model, prompt, theirs in pairs
    )
    texts = [
        seq2seq_released.text_of(models[model], ids, theirs["front_text"]) == text
        for model, _, theirs in pairs
        for ids, text in zip(theirs["sequences"], theirs["texts"], strict=True)
    ]
    firsts = {
        script: [
            (predicted(model, script)[prompt["id"]]["prediction"].iloc[0], theirs["texts"][0])
            for model, prompt, theirs in pairs
            if prompt in prompts_for(model) and theirs["transformers_5"]["same_first"]
        ]
        for script in ("ours", "released")
    }
    name, n = "Generation", len(firsts["ours"])
    parity.check_document(
        [
            parity.Row(name, "tokens that are read", len(pairs), None, read),
            parity.Row(name, "text of a written sequence", len(texts), None, sum(texts)),
            parity.Row(
                name,
                "first text of a prompt",
                n,
                sum(a == b for a, b in firsts["ours"]),
                sum(a == b for a, b in firsts["released"]),
            ),
            parity.Row(
                name,
                "first text of a prompt, sentinels aside",
                n,
                sum(a == without_sentinels(b) for a, b in firsts["ours"]),
                None,
            ),
        ]
    )
