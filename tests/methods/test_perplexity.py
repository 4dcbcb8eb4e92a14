"""Perplexity of filled prompts against a slow, obvious implementation."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import transformers

from helpers import FolderOf, probing, tiny
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.methods.perplexity import Perplexity, perplexity
from medprobe.metrics.perplexity import values

TEXTS = [
    "Velotrine treats Karsten syndrome .",
    "Aspirin has physiologic effect : decreased platelet aggregation , anti-inflammatory .",
    "Gene BRX2",
    "The disease was mapped to gene BRX7 in patients with type 2 diabetes mellitus , unlike pain .",
]


def queries(texts: list[str] | None = None) -> pd.DataFrame:
    texts = TEXTS if texts is None else texts
    rows = []
    for number, text in enumerate(texts):
        first, *rest = text.split(" ", 1)
        rows.append(("q" + str(number), f"[Y] {' '.join(rest)}".strip(), [first, "other"]))
    return pd.DataFrame(rows, columns=["query_id", "prompt", "answers"])


def probed(folder: Path, budget: int, table: pd.DataFrame | None = None) -> pd.DataFrame:
    engine = EngineParams(device="cpu", token_budget=budget)
    method = Perplexity(folder, Perplexity.Settings(), engine, 0)
    table = queries() if table is None else table
    return method.predict(probing.task(table, pd.DataFrame(), 10), "")


def slow(folder: Path, arch: str, text: str, *, answer_first: bool = True) -> float:
    """One forward pass a token, no batches, all logits."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    causal = arch in tiny.CAUSAL
    kind = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForMaskedLM
    model = kind.from_pretrained(folder).eval()
    if causal:
        ids = probing.causal_ids(tokenizer, text, answer_first=answer_first)
        places = range(1, len(ids))
    else:
        ids = tokenizer(text)["input_ids"]
        places = range(1, len(ids) - 1)
    total = 0.0
    for place in places:
        row = torch.tensor([ids[:place] if causal else ids])
        if not causal:
            row[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(row).logits[0, -1 if causal else place]
        total += math.log(float(torch.softmax(logits.double(), 0)[ids[place]]))
    return math.exp(-total / len(places))


@pytest.mark.parametrize("arch", [*probing.MASKED, *probing.CAUSAL, "gpt_neox"])
def test_it_equals_the_slow_way_at_any_batch_size(tiny_model: FolderOf, arch: str) -> None:
    texts = TEXTS if arch in ("bert", "gpt2") else TEXTS[::2]
    expected = [slow(tiny_model(arch), arch, text) for text in texts]
    for budget in (1, 50, 8192):
        predictions = probed(tiny_model(arch), budget, queries(texts))
        assert predictions["perplexity"].tolist() == pytest.approx(expected, rel=1e-4)
        assert predictions["query_id"].tolist() == queries(texts)["query_id"].tolist()


@pytest.mark.parametrize("arch", ["gpt2", "qwen3", "gpt_neox", "llama"])
def test_a_text_has_the_start_of_its_tokenizer(tiny_model: FolderOf, arch: str) -> None:
    texts = TEXTS[:2]
    table = queries(texts)
    table["prompt"] = [text.rsplit(" ", 2)[0] + " [Y] ." for text in texts]
    table["answers"] = [[text.split(" ")[-2]] for text in texts]
    expected = [slow(tiny_model(arch), arch, text, answer_first=False) for text in texts]
    predictions = probed(tiny_model(arch), 8192, table)
    assert predictions["perplexity"].tolist() == pytest.approx(expected, rel=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(arch))
    scored = [len(tokenizer(text)["input_ids"]) - 1 for text in texts]
    assert predictions["tokens"].tolist() == scored


def test_the_columns_agree(tiny_model: FolderOf) -> None:
    predictions = probed(tiny_model("bert"), 8192)
    assert predictions["perplexity"].tolist() == pytest.approx(
        [math.exp(-s) for s in predictions["score"]]
    )
    assert predictions["prediction"].tolist() == ["Velotrine", "Aspirin", "Gene", "The"]
    assert (predictions["rank"] == 1).all() and (predictions["tokens"] > 1).all()


def test_the_sentence_of_the_source_goes_before_the_filled_prompt(tiny_model: FolderOf) -> None:
    table = queries().assign(sentence=TEXTS[::-1])
    predictions = probed(tiny_model("bert-cased"), 8192, table)
    plain = probed(tiny_model("bert-cased"), 8192)
    assert predictions["perplexity"].tolist() == pytest.approx(plain["perplexity"].tolist()[::-1])


@pytest.mark.parametrize("arch", ["bert", "gpt2"])
def test_a_sentence_beyond_the_window_is_named(tiny_model: FolderOf, arch: str) -> None:
    with pytest.raises(BadInput, match=r"query q1: the filled prompt has .* the model reads 128"):
        probed(tiny_model(arch), 8192, queries(["short text", "gene " * 200]))


@pytest.mark.parametrize("arch", ["bert", "gpt2"])
def test_a_sentence_of_nothing_is_named(tiny_model: FolderOf, arch: str) -> None:
    table = queries(["short"]).assign(sentence="")
    with pytest.raises(BadInput, match="query q0: the filled prompt has no token"):
        probed(tiny_model(arch), 8192, table)


def test_values_carry_each_query_to_its_place() -> None:
    table = pd.DataFrame(
        {
            "variant": "",
            "replicate": "",
            "query_id": ["b", "a"],
            "rank": 1,
            "perplexity": [8.0, 2.0],
        }
    )
    queries = pd.DataFrame(
        {"query_id": ["a", "b", "c"], "subset": ["s", "t", "s"], "relation": ["r", "r", "r"]}
    )
    by_query = values(
        table, queries.assign(cluster=queries["query_id"], answer=queries["query_id"])
    )
    assert list(by_query.columns) == [
        "variant",
        "replicate",
        "query_id",
        "perplexity",
        "subset",
        "relation",
        "cluster",
        "answer",
    ]
    assert by_query[["query_id", "subset", "perplexity"]].to_numpy().tolist() == [
        ["b", "t", 8.0],
        ["a", "s", 2.0],
    ]
    assert perplexity([math.log(0.25)] * 3) == pytest.approx(4)
