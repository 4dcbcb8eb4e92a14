import pytest
import torch
import transformers

import probing
from medprobe.engine import causal, heads
from medprobe.engine.load import load
from medprobe.testing import tiny

PREFIX = "Velotrine treats"
RESTS = (" hepatitis B .", " pain", " Karsten syndrome and acute renal failure .", " x")
TEXTS = [PREFIX + rest for rest in RESTS]


def ids_of(folder, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


@pytest.mark.parametrize("budget", [1, 8192])
@pytest.mark.parametrize("arch", tiny.CAUSAL)
def test_log_likelihood_reads_each_text_alone(arch, budget, tiny_model, monkeypatch):
    monkeypatch.setattr(heads, "LOGITS_AT_ONCE", 10_000)
    model = load(tiny_model(arch), "causal")
    rows = [[*causal.start_ids(model), *ids] for ids in ids_of(tiny_model(arch), TEXTS)]
    log_probs = causal.log_likelihood(model, rows, budget)
    for row, scores in zip(rows, log_probs, strict=True):
        logs = probing.log_probs(model.model, row)
        expected = [logs[i, token].item() for i, token in enumerate(row[1:])]
        assert scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("budget", [1, 8192])
def test_endings_are_what_whole_texts_say_and_are_read_once(budget, tiny_model, monkeypatch):
    model = load(tiny_model("gpt2"), "causal")
    texts = [[5, 6, 7], [5, 6]]
    possible = [[[8], [9], [8, 3]], [[7], [7, 4]]]  # [7, 4] is told from what the first text is
    read = []
    whole = causal.pad_rows
    monkeypatch.setattr(
        causal, "pad_rows", lambda rows, *more: read.extend(rows) or whole(rows, *more)
    )
    log_probs = causal.endings(model, texts, possible, budget)
    assert sorted(map(list, read)) == [[5, 6], [5, 6, 7], [5, 6, 7, 8]]
    for text, ends, scores in zip(texts, possible, log_probs, strict=True):
        rows = [[*text, *end] for end in ends]
        slow = causal.log_likelihood(model, rows, 8192)
        expected = [sum(row[-len(end) :]) for row, end in zip(slow, ends, strict=True)]
        assert scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("budget", [1, 60, 8192])
def test_a_shared_prefix_changes_nothing(budget, tiny_model):
    model = load(tiny_model("gpt2"), "causal")
    prefix = [*causal.start_ids(model), *ids_of(tiny_model("gpt2"), [PREFIX])[0]]
    rests = ids_of(tiny_model("gpt2"), RESTS)
    before, after = causal.continuations(model, prefix, rests, budget)
    for rest, scores in zip(rests, after, strict=True):
        row = [*prefix, *rest]
        logs = probing.log_probs(model.model, row)
        expected = [logs[i, token].item() for i, token in enumerate(row[1:])]
        assert [*before, *scores] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("arch", ["t5", "bart"])
@pytest.mark.parametrize("budget", [1, 8192])
def test_a_decoder_reads_source_and_prefix_once(arch, budget, tiny_model):
    model = load(tiny_model(arch), "seq2seq")
    (source, prefix), rests = (
        ids_of(tiny_model(arch), [RESTS[2], PREFIX]),
        ids_of(tiny_model(arch), RESTS),
    )
    before, after = causal.continuations(model, prefix, rests, budget, source)
    for rest, scores in zip(rests, after, strict=True):
        row = [*prefix, *rest]
        with torch.no_grad():
            out = model.model(
                input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([row])
            )
        logs = out.logits[0].log_softmax(-1)
        expected = [logs[i, token].item() for i, token in enumerate(row[1:])]
        assert [*before, *scores] == pytest.approx(expected, abs=1e-4)
