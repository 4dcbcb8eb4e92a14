import json
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from helpers import probing
from medprobe.engine import heads, masked
from medprobe.engine.load import load
from medprobe.engine.slots import answer_ids, masked_slots, text_slots

TEXTS = (
    "Velotrine treats Karsten syndrome .",
    "Pneumonia occurs after influenza virus infection ; fracture of bone occurs after trauma .",
    "Chronic pain",
)


def rows_of(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text)["input_ids"] for text in TEXTS]


@pytest.mark.parametrize("arch", [*probing.ARCHITECTURES, "ibert"])
@pytest.mark.parametrize("budget", [1, 40, 8192])
def test_log_probs_are_those_of_the_whole_head(arch, budget, tiny_model, monkeypatch):
    monkeypatch.setattr(heads, "LOGITS_AT_ONCE", 2000)
    rows = rows_of(tiny_model(arch))
    positions = [[1, 3], [0, 2, len(rows[1]) - 1], [1]]
    model = load(tiny_model(arch), "masked")
    log_probs = masked.log_probs(
        model, rows, positions, budget, lambda row, log_probs: log_probs.clone()
    )
    for ids, at, scores in zip(rows, positions, log_probs, strict=True):
        torch.testing.assert_close(
            scores, probing.log_probs(model.model, ids)[at], atol=1e-4, rtol=0
        )


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Longformer", {"attention_window": 4}),
        ("MobileBert", {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16}),
        ("BigBird", {"block_size": 4, "num_random_blocks": 1}),
    ],
)
def test_what_only_looks_like_bert_is_read_as_it_is(name, changes):
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 50}
    config = getattr(transformers, f"{name}Config")(intermediate_size=32, **sizes, **changes)
    torch.manual_seed(1)
    network = getattr(transformers, f"{name}ForMaskedLM")(config).eval()
    ids, masked_positions = torch.arange(5, 23).reshape(2, 9), [1, 8, 12]
    with torch.inference_mode():
        whole = network(ids).logits.flatten(0, 1)[masked_positions]
        with heads.narrow_head(network.base_model, masked_positions):
            torch.testing.assert_close(network(ids).logits[0], whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize("arch", ["bert", "roberta", "electra"])
def test_the_last_layer_works_at_the_asked_positions_alone(arch, tiny_model):
    model, seen = load(tiny_model(arch), "masked"), []
    last = model.model.base_model.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[-2]))
    masked.logits_at(model, rows_of(tiny_model(arch)), [[1], [0, 2], [1]])
    assert seen == [4]


@pytest.mark.parametrize("arch", [*probing.ARCHITECTURES, "ibert"])
@pytest.mark.parametrize("size", [1, 2])  # tokens masked together
def test_pseudo_log_likelihood_masks_one_group_at_a_time(arch, size, tiny_model, monkeypatch):
    monkeypatch.setattr(masked, "CHUNK", 5)
    rows = rows_of(tiny_model(arch))
    groups = [
        [tuple(range(i, min(i + size, len(row) - 1))) for i in range(1, len(row) - 1, size)]
        for row in rows
    ]
    model = load(tiny_model(arch), "masked")
    actual = masked.pseudo_log_likelihood(model, rows, groups, 8192)
    for row, of_row, scores in zip(rows, groups, actual, strict=True):
        expected = []
        for group in of_row:
            copy = list(row)
            for position in group:
                copy[position] = model.tokenizer.mask_token_id
            logs = probing.log_probs(model.model, copy)
            expected += [logs[position, row[position]].item() for position in group]
        assert scores == pytest.approx(expected, abs=1e-4)


def test_texts_of_the_same_tokens_are_read_once_and_score_the_same(tiny_model, monkeypatch):
    """In batches of their own they would differ in their last bits: a tie would be none."""
    model, read = load(tiny_model("bert"), "masked"), []
    tokenizer = model.tokenizer
    rows = tokenizer(["Chronic pain .", "SNCA", "chronic Pain ."])["input_ids"]
    assert rows[0] == rows[2]
    groups = [[(i,) for i in range(1, len(row) - 1)] for row in rows]
    counted = masked.log_probs

    def count(model, masked_rows, *rest, **named):
        read.extend(masked_rows)
        return counted(model, masked_rows, *rest, **named)

    monkeypatch.setattr(masked, "log_probs", count)
    first, _, last = masked.pseudo_log_likelihood(model, rows, groups, 1)
    assert first == last
    assert len(read) == len(groups[0]) + len(groups[1])


@pytest.mark.parametrize("arch", [*probing.ARCHITECTURES, "ibert"])
def test_a_slot_takes_any_number_of_masks(arch, tiny_model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(arch))
    slots = masked_slots(tokenizer, probing.PROMPTS, probing.PROMPTS)
    for prompt, slot in zip(probing.PROMPTS, slots, strict=True):
        ids = slot.fill([tokenizer.mask_token_id] * 3)
        assert ids == probing.masked_ids(tokenizer, prompt, 3)
        assert [ids[p] for p in slot.positions(3)] == [tokenizer.mask_token_id] * 3


@pytest.mark.parametrize("arch", ["bert", "bert-cased", "roberta", "gpt2", "t5", "bart"])
def test_an_answer_has_the_tokens_it_has_in_the_sentence(arch, tiny_model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(arch))
    for prompt in probing.PROMPTS:
        (slot,) = text_slots(tokenizer, [prompt], [prompt])
        for name, ids in zip(
            probing.NAMES, answer_ids(tokenizer, probing.NAMES, slot.preceding), strict=True
        ):
            text = prompt.replace("[Y]", name)
            if "))" in text:
                continue  # brackets of the name and of the sentence may share a token
            whole = tokenizer(text, add_special_tokens=False)["input_ids"]
            assert slot.fill(ids) == whole, (prompt, name)


def with_pieces(tokenizer: Any, *pieces: str) -> Any:
    """The tokenizer with further pieces, and a blank before each text."""
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content["normalizer"] = None
    content["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "first",
        "split": False,
    }
    vocabulary = content["model"]["vocab"]
    for piece in pieces:
        vocabulary[piece] = len(vocabulary)
        content["model"]["merges"].append([piece[:-1], piece[-1]])
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(content))
    return tokenizer


@pytest.mark.parametrize("arch", ["llama", "gemma3"])
def test_no_piece_straddles_the_border_of_prompt_and_answer(arch, tiny_model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(arch))
    tokenizer = with_pieces(tokenizer, "▁a,", "▁a.", "▁as")
    for after in (", pain", ". Pain", "s and pain", ",, x"):
        for name in ("pain", "SNCA"):
            prompt = f"velotrine treats [Y]{after}"
            (slot,) = text_slots(tokenizer, [prompt], [prompt])
            [ids] = answer_ids(tokenizer, [name], slot.preceding)
            whole = tokenizer(prompt.replace("[Y]", name), add_special_tokens=False)["input_ids"]
            assert slot.fill(ids) == whole


def test_a_name_depends_on_what_stands_before_it(tiny_model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("gpt2"))
    spelled = {
        prefix: tokenizer.convert_ids_to_tokens(answer_ids(tokenizer, ["pain"], prefix)[0])
        for prefix in ("", " ", "(")
    }
    assert spelled[" "] == ["Ġpain"]
    assert spelled[""] == spelled["("] == list("pain")
