"""A sentence longer than a model's window is read around its gap, by every method."""

import random
from dataclasses import replace

import pandas as pd
import pytest

import medprobe
from helpers import FolderOf, nightly, probing
from helpers.tiny import TEXT
from medprobe.core.tables import BenchmarkTables
from medprobe.engine.load import load
from medprobe.engine.windows import shorten_prompts

WORDS = TEXT.split()
NAMES = ("hepatitis B", "acute renal failure " * 5, "SNCA")
KINDS = {"bert": "masked", "roberta": "masked", "albert": "masked", "gpt2": "causal"}
KINDS |= {"llama": "causal", "t5": "seq2seq", "bart": "seq2seq"}


def sentence(before: int, after: int) -> str:
    draw = random.Random(f"{before} {after}")
    words = [draw.choice(WORDS) for _ in range(before + after)]
    return " ".join([*words[:before], "[Y]", *words[before:]])


def made(prompts: list[str]) -> BenchmarkTables:
    queries = probing.queries(prompts, [NAMES[0]])
    filled = [prompt.replace("[Y]", NAMES[0]) for prompt in prompts]
    return BenchmarkTables(
        queries.assign(sentence=filled), probing.candidates(NAMES).assign(subset="all")
    )


LENGTHS = (0, 1, 3, 30, 90, 300)
PROMPTS = [sentence(before, after) for before in LENGTHS for after in LENGTHS]


@pytest.mark.parametrize("arch", KINDS)
def test_what_is_left_fits_is_part_of_the_sentence_and_as_long_as_can_be(
    tiny_model: FolderOf, arch: str
) -> None:
    folder = tiny_model(arch)
    model = load(folder, KINDS[arch])
    tables, ids = shorten_prompts(folder, made(PROMPTS))

    def tokens(prompt: str) -> int:
        return len(model.tokenizer(prompt.replace("[Y]", NAMES[1].strip()))["input_ids"])

    assert ids, "some are too long"
    for query, old in zip(tables.queries.itertuples(), PROMPTS, strict=True):
        assert tokens(query.prompt) <= model.max_length
        assert query.sentence == query.prompt.replace("[Y]", NAMES[0])
        if query.query_id not in ids:
            assert query.prompt == old
            continue
        assert f" {query.prompt} " in f" {old} ", "whole words around the gap"
        assert tokens(query.prompt) >= model.max_length - 40, "not much room is left"
        before, after = (len(part.split()) for part in query.prompt.split("[Y]"))
        all_before, all_after = (len(part.split()) for part in old.split("[Y]"))
        assert before == all_before or after == all_after or abs(before - after) < 60


def test_a_benchmark_that_fits_is_left_as_it_is(tiny_model: FolderOf) -> None:
    tables = made([sentence(3, 3), sentence(0, 1)])
    assert shorten_prompts(tiny_model("bert"), tables) == (tables, [])
    empty = replace(tables, queries=tables.queries.head(0))
    assert shorten_prompts(tiny_model("bert"), empty) == (empty, [])


@pytest.mark.parametrize("arch", ["bert", "gpt2", *nightly("t5")])
def test_every_method_that_reads_the_sentence_itself_reads_long_ones(
    tiny_model: FolderOf, arch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = medprobe.load(tiny_model(arch))
    facts = pd.DataFrame(
        {
            "subject": ["Velotrine", "Aspirin"],
            "relation": "treats",
            "object": NAMES[:2],
            "prompt": [f"[X] {sentence(600, 0)}", f"[X] {sentence(2, 600)}"],
        }
    )
    # These need other tables, and those put the sentence into words of their own.
    free = {"optiprompt", "rank_change", "classifier", "answering", "judgment"}
    for method in sorted({*model.methods} - free):
        medprobe.probe(model, facts, method, bootstrap=1)
        assert "2 prompts are longer than the model reads" in capsys.readouterr().err, method
