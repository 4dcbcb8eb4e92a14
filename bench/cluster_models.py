"""What `bench.cluster` probes and fine-tunes: a small BERT with random weights, made-up texts."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers

from bench import made
from medprobe.core import places
from medprobe.core.params import EngineParams
from medprobe.core.tables import BenchmarkTables
from medprobe.methods import find
from medprobe.stages.probe import Probing


def small_bert(folder: Path) -> Path:
    """Four layers of 256 units, with the tokenizer of `made.bert`."""
    torch.manual_seed(0)
    made.bert(folder)
    config = transformers.BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


def ranked() -> BenchmarkTables:
    """Eight relations of four queries, and 400 candidates."""
    queries = made.queries(32)
    queries["relation"] = [f"r{i % 8}" for i in range(32)]
    extra = {"answer_ids": queries["answers"], "subset": "all"}
    names = made.candidates(400).assign(id="C", subset="all")
    return BenchmarkTables(queries.assign(**extra), names)


def classified() -> BenchmarkTables:
    """Eight diseases, and 96 examples, of which 64 train each of them."""
    texts, names = made.names(96, 5), made.names(8, 6)
    examples = pd.DataFrame(
        {
            "example_id": [f"e{i}" for i in range(96)],
            "category": "c",
            "kind": ["positive" if i % 2 else "similar" for i in range(96)],
            "label": [i % 2 for i in range(96)],
            "cui": [f"C{i % 8}" for i in range(96)],
            "disease": [names[i % 8] for i in range(96)],
            "premise": [" ".join(texts[i:] + texts[:i])[:400] for i in range(96)],
            "hypothesis": [names[i % 8] for i in range(96)],
            "full_hypothesis": [names[i % 8] for i in range(96)],
        }
    )
    splits = [
        (f"C{d}", "test" if i % 8 == d else "validation" if i > 75 else "train", f"e{i}")
        for d in range(8)
        for i in range(96)
        if i % 8 == d or i % 2 == d % 2 or i % 3 == 0
    ]
    queries = ranked().queries.head(8).assign(relation=[f"C{d}" for d in range(8)])
    split = pd.DataFrame(splits, columns=["target", "split", "example_id"])
    return BenchmarkTables(
        queries, ranked().candidates, {}, {"examples": examples, "splits": split}
    )


def probing(method: str, tables: BenchmarkTables, engine: EngineParams, **chosen: Any) -> Probing:
    settings = find(method).Settings(**chosen)
    return Probing("bench", method, places.MODELS / "bert", settings, engine, 0, tables, {})


def work(what: str, engine: EngineParams) -> Probing:
    """Eight parts of about a second: relations to probe, or diseases to fine-tune for."""
    if what == "probing":
        return probing("mask_average", ranked(), engine)
    chosen = {"variants": [""], "seeds": [0], "epochs": 1, "batch": 8}
    return probing("classifier", classified(), engine, **chosen)
