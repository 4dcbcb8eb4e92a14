import json
import shutil

import pytest
import torch
import transformers
from tokenizers import processors

from helpers import probing, tiny
from medprobe.core.errors import BadInput
from medprobe.engine import causal, heads, texts
from medprobe.engine.load import load

PREFIX = "Velotrine treats"
RESTS = (" hepatitis B .", " pain", " Karsten syndrome and acute renal failure .", " x")
TEXTS = [PREFIX + rest for rest in RESTS]


def ids_of(folder, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


@pytest.mark.parametrize("budget", [1, 8192])
@pytest.mark.parametrize("arch", [*tiny.CAUSAL, *tiny.RECURRENT])
def test_log_likelihood_reads_each_text_alone(arch, budget, tiny_model, monkeypatch):
    monkeypatch.setattr(heads, "LOGITS_AT_ONCE", 10_000)
    model = load(tiny_model(arch), "causal")
    rows = [[*causal.start_ids(model), *ids] for ids in ids_of(tiny_model(arch), TEXTS)]
    log_probs = causal.log_likelihood(model, rows, budget)
    for row, scores in zip(rows, log_probs, strict=True):
        logs = probing.log_probs(model.model, row)
        expected = [logs[i, token].item() for i, token in enumerate(row[1:])]
        assert scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("arch", ["gpt2", "llama", "mamba"])
def test_a_text_in_batches_of_one_shape_has_its_score_in_any_company(arch, tiny_model):
    model = load(tiny_model(arch), "causal")
    rows = [[*causal.start_ids(model), *ids] for ids in ids_of(tiny_model(arch), TEXTS)] * 6
    scores = causal._in_one_shape(model, rows, 32)
    assert scores[:4] == scores[20:]  # of a batch of 16 and one of 8
    alone = causal.log_likelihood_alone(model, rows)
    for row, expected in zip(scores, alone, strict=True):
        assert row == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("arch", ["gpt2", "llama"])
def test_where_company_moves_a_score_each_text_is_read_alone(arch, tiny_model, monkeypatch):
    model = load(tiny_model(arch), "causal")
    rows = [[*causal.start_ids(model), *ids] for ids in ids_of(tiny_model(arch), TEXTS)]
    alone = causal.log_likelihood_alone(model, rows)
    calls = []

    def nudge(module, inputs, output):
        calls.append(output.logits.shape)
        output.logits[:] *= 1 + 1e-4 * (len(calls) < 3) * len(calls)
        return output

    hook = model.model.register_forward_hook(nudge)
    assert causal._in_one_shape(model, rows, 32) == alone
    hook.remove()
    assert len(calls) == 2 + len(rows)


@pytest.mark.parametrize("arch", tiny.CAUSAL)
def test_a_prompt_begins_as_calling_the_tokenizer_begins_it(arch, tiny_model):
    model = load(tiny_model(arch), "causal")
    prompts = [f"{PREFIX} [Y] .", "[Y] is treated by velotrine ."]
    inside, first = causal.prompt_slots(model, prompts, prompts)
    assert list(inside.before) == model.tokenizer(PREFIX)["input_ids"]
    start = model.tokenizer("")["input_ids"]
    assert bool(start) == arch.startswith(("llama", "mistral", "gemma"))
    # an answer with nothing before it: lm-evaluation-harness' token for an empty context
    begin = model.tokenizer.bos_token_id
    assert list(first.before) == [model.tokenizer.eos_token_id if begin is None else begin]


def test_no_token_can_be_before_an_answer_that_begins_its_prompt(tiny_model):
    model = load(tiny_model("gpt2"), "causal")
    model.tokenizer.bos_token = model.tokenizer.eos_token = None
    assert causal.prompt_slots(model, [f"{PREFIX} [Y]"], ["q0"])
    with pytest.raises(BadInput, match=r"q1: nothing is before the answer.*begin the prompt with"):
        causal.prompt_slots(model, [f"{PREFIX} [Y]", "[Y] treats"], ["q0", "q1"])


def with_two_start_tokens(folder, copy):
    """A checkpoint whose tokenizer begins a text with two tokens, as ChatGLM's does."""
    shutil.copytree(folder, copy)
    path = copy / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    template = processors.TemplateProcessing(
        single="<s> </s> $A", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    content["post_processor"] = json.loads(template.__getstate__())
    path.write_text(json.dumps(content), encoding="utf-8")
    config = copy / "tokenizer_config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings = {name: value for name, value in settings.items() if name != "add_bos_token"}
    config.write_text(json.dumps(settings), encoding="utf-8")
    return copy


@pytest.mark.parametrize("arch", ["gpt2", "qwen3", "llama", "two starts"])
def test_the_tokens_of_a_text_are_scored_that_something_precedes(arch, tiny_model, tmp_path):
    folder = tiny_model(arch.replace("two starts", "llama"))
    if arch == "two starts":
        folder = with_two_start_tokens(folder, tmp_path / "copy")
    model = load(folder, "causal")
    tokenizer = model.tokenizer
    sentence, answer_first, one_token = TEXTS[0], TEXTS[2], tokenizer.decode([40])
    scores = texts.causal_log_probs(
        model, [sentence, answer_first, one_token], "abc", [False, True, False]
    )
    for text, log_probs in zip((sentence, answer_first, one_token), scores, strict=True):
        needs_prefix = text != sentence
        ids = probing.causal_ids(tokenizer, text, answer_first=needs_prefix)
        starts = max(len(tokenizer("")["input_ids"]), int(needs_prefix), 1)
        logs = probing.log_probs(model.model, ids)
        expected = [logs[i - 1, ids[i]].item() for i in range(starts, len(ids))]
        assert log_probs == pytest.approx(expected, abs=1e-4)


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
@pytest.mark.parametrize("arch", ["gpt2", *tiny.RECURRENT])
def test_a_shared_prefix_changes_nothing(arch, budget, tiny_model):
    model = load(tiny_model(arch), "causal")
    assert model.keeps_states == (arch == "gpt2")
    prefix = [*causal.start_ids(model), *ids_of(tiny_model(arch), [PREFIX])[0]]
    rests = ids_of(tiny_model(arch), RESTS)
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
