"""What a tokenizer does not read as it is written: special tokens, unknown and equal names."""

from dataclasses import replace

import pandas as pd
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

import medprobe
from helpers import FolderOf
from helpers.special_tokens import SPECIAL, check_refusal
from medprobe import methods
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables, check_texts
from medprobe.engine.slots import NameCounts, count_names
from medprobe.engine.tokenizer import special_tokens


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_a_special_token_in_a_prompt_or_name_is_refused(tiny_model: FolderOf, arch: str) -> None:
    check_refusal(tiny_model(arch), "mask_average")


@pytest.mark.parametrize("method", methods.find_by_kind(["masked"]))
def test_all_methods_refuse_it(tiny_model: FolderOf, method: str) -> None:
    """Those that need more than facts would refuse these facts later, for another reason."""
    facts = pd.DataFrame({"subject": ["aspirin [SEP]"], "relation": ["treats"], "object": ["pain"]})
    model = medprobe.load(tiny_model("bert"))
    with pytest.raises(BadInput, match=r"query treats/.*: the text contains \[SEP\]"):
        medprobe.probe(model, facts, method, prompts={"treats": "[X] treats [Y] ."})


@pytest.mark.parametrize("column", ["premise", "hypothesis", "full_hypothesis"])
def test_premises_and_hypotheses_are_read_too(column: str) -> None:
    examples = pd.DataFrame({"example_id": ["e1", "e2"], column: ["pain", "a [SEP] b"]})
    names = pd.DataFrame({"name": ["pain"], "id": "", "type": "", "subset": ""})
    tables = BenchmarkTables(pd.DataFrame(), names, others={"examples": examples})
    with pytest.raises(BadInput, match=r"example e2: the text contains \[SEP\]"):
        check_texts(tables, ["[CLS]", "[SEP]"])
    check_texts(tables, ["[CLS]"])


def test_special_tokens_are_those_that_a_tokenizer_does_not_divide(tiny_model: FolderOf) -> None:
    for arch in SPECIAL:
        tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(arch))
        for token in special_tokens(tokenizer):
            ids = tokenizer(f"a{token}a", add_special_tokens=False)["input_ids"]
            assert tokenizer.convert_tokens_to_ids(token) in ids


def test_names_of_the_same_tokens_are_counted(tiny_model: FolderOf) -> None:
    names = [
        "Gout",
        "gout",
        "GOUT",
        "acute pain",
        "acute\N{NO-BREAK SPACE}pain",
        "αβγ",
        "δεζ",
        "x α",
    ]
    counts = {
        "bert": NameCounts(8, 7, 3),  # it is uncased
        "bert-cased": NameCounts(8, 5, 4),  # it does not know all letters of GOUT
        "roberta": NameCounts(8, 0, 0),
        "llama": NameCounts(8, 0, 0),
    }
    for arch, expected in counts.items():
        tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(arch))
        longest = max(len(tokenizer(f"a {name}")["input_ids"]) for name in names)
        longest -= len(tokenizer("a")["input_ids"])
        assert count_names(tokenizer, [*names, "gout"]) == replace(expected, longest=longest)


@given(st.lists(st.sampled_from(["gout", "Gout", "pain", "αβ", "γ", "fever α"])))
def test_counts_are_those_by_hand(tiny_model: FolderOf, names: list[str]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("bert"))
    ids = {name: tokenizer(name)["input_ids"] for name in names}
    counts = count_names(tokenizer, names)
    assert counts.same == sum([*ids.values()].count(row) > 1 for row in ids.values())
    assert counts.unknown == sum(tokenizer.unk_token_id in row for row in ids.values())
    assert counts.names == len(ids)


def test_the_counts_are_printed(tiny_model: FolderOf, capsys: pytest.CaptureFixture[str]) -> None:
    model = medprobe.load(tiny_model("bert"))
    model.rank("aspirin treats [Y] .", ["gout", "Gout", "pain", "αβγ"], "mask_average")
    line = "of 4 names 2 are the same text as another one and 1 have characters"
    assert line in capsys.readouterr().err
    model.rank("aspirin treats [Y] .", ["gout", "pain"], "mask_average")
    assert not capsys.readouterr().err
