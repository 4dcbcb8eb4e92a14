from types import SimpleNamespace

import pandas as pd
import pytest
import torch
import transformers

from helpers import probing, tiny
from helpers.generation import with_settings
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.engine import seq2seq
from medprobe.engine.load import load
from medprobe.methods.generative import Generative

ANSWERS = ("acute renal failure", "pain")
PROMPTS = probing.PROMPTS[:3]


def method(folder, budget=8192, **settings):
    chosen = Generative.Settings(**settings)
    return Generative(folder, chosen, EngineParams(token_budget=budget), 0)


def slow_beam_search(network, source, start, ends, size):
    """Beam search by its book: no cache, one beam at a time; finished ones by mean log-probability
    compete with those that still run until these can no longer win."""

    def logs_after(written):
        with torch.no_grad():
            out = network(torch.tensor([source]), decoder_input_ids=torch.tensor([start + written]))
        return out.logits[0, -1].log_softmax(-1)

    beams, cap = size
    running, finished = [([], 0.0)], []
    for length in range(1, cap + 1):
        grown = []
        for written, score in running:
            logs = logs_after(written)
            best = logs.topk(2 * beams + 2)
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            grown += [([*written, token], score + log) for token, log in pairs]
        grown.sort(key=lambda item: -item[1])
        top = grown[: 2 * beams]
        ended = [item for item in top[:beams] if item[0][-1] in ends or length == cap]
        finished += [(written, score / length) for written, score in ended]
        finished = sorted(finished, key=lambda item: -item[1])[:beams]
        running = [item for item in top if item[0][-1] not in ends][:beams]
        if len(finished) == beams and running[0][1] / length <= finished[-1][1]:
            break
    return finished


def slow(folder, queries, cap, beams):
    """(query, text, score) of every sequence, one query at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    rows = []
    for query in queries.itertuples():
        before, after = query.prompt.split("[Y]")
        if "<extra_id_0>" in tokenizer.get_vocab():
            source = tokenizer(query.prompt.replace("[Y]", "<extra_id_0>"))["input_ids"]
            opening, closing = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
            start, ends = [tokenizer.pad_token_id, opening], [tokenizer.eos_token_id, closing]
            before = after = ""
        else:
            source = tokenizer(before.rstrip() + tokenizer.mask_token + after)["input_ids"]
            start, ends = [network.config.decoder_start_token_id], [tokenizer.eos_token_id]
            start += [tokenizer.bos_token_id] if tokenizer.bos_token else []
        best = {}
        for ids, score in slow_beam_search(network, source, start, ends, (beams, cap)):
            text = " ".join(tokenizer.decode(ids, skip_special_tokens=True).split())
            text = text.removeprefix(before.strip()).removesuffix(after.strip()).strip()
            best[text] = max(score, best.get(text, score))
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        rows += [(query.query_id, i, *item) for i, item in enumerate(ranked, start=1)]
    return pd.DataFrame(rows, columns=["query_id", "rank", "prediction", "score"])


@pytest.mark.parametrize("arch", tiny.SEQ2SEQ)
def test_equals_beam_search_by_the_book(arch, tiny_model, monkeypatch):
    monkeypatch.setattr(Generative, "_length_limit", lambda *args: 6)
    queries = probing.queries(PROMPTS, ANSWERS)
    predictions = method(tiny_model(arch), beams=3).predict(
        probing.task(queries, probing.candidates(), 10), ""
    )
    probing.same(predictions, slow(tiny_model(arch), queries, 6, 3))


@pytest.mark.parametrize("script", ["ours", "released"])
@pytest.mark.parametrize("arch", ["t5", "bart"])
def test_batch_size_does_not_matter(arch, script, tiny_model):
    """As released, only prompts that are equally long are read together."""
    orders = (
        ("virus infection", "infection virus"),
        ("adults and children", "children and adults"),
    )
    prompts = [prompt.replace(*words) for words in orders for prompt in probing.PROMPTS]
    queries = probing.queries([*dict.fromkeys(prompts)], ANSWERS)
    task = probing.task(queries, probing.candidates(), 10)
    prober = method(tiny_model(arch), script=script)
    lengths = {len(seq2seq.source_ids(prober.model, prompt)) for prompt in queries["prompt"]}
    assert 1 < len(lengths) < len(queries)
    together = prober.predict(task, "")
    alone = method(tiny_model(arch), budget=1, script=script).predict(task, "")
    probing.same(together, alone)


def test_the_prompts_own_text_is_taken_off(tiny_model):
    prober = method(tiny_model("bart"))
    ids = prober.model.tokenizer("Velotrine treats Karsten syndrome .")["input_ids"]
    assert prober._read_answer(ids, "Velotrine treats [Y] .") == "Karsten syndrome"
    assert prober._read_answer(ids, "Aspirin treats [Y] .") == "Velotrine treats Karsten syndrome"


def test_the_longest_answer_bounds_what_is_written(tiny_model):
    prober = method(tiny_model("t5"), spare=0)
    (frame,) = seq2seq.frames(prober.model, [PROMPTS[0]], ["q0"])
    count = len(
        prober.model.tokenizer("acute renal failure", add_special_tokens=False)["input_ids"]
    )
    assert prober._length_limit([frame], ["pain", "acute renal failure"]) == count


@pytest.mark.parametrize(("arch", "mark"), [("t5", "<extra_id_0>"), ("bart", "<mask>")])
def test_the_slot_is_marked_as_the_family_has_it(arch, mark, tiny_model):
    model = load(tiny_model(arch), "seq2seq")
    (frame,) = seq2seq.frames(model, ["Velotrine treats [Y] ."], ["q0"])
    assert model.tokenizer.convert_ids_to_tokens(list(frame.source)).count(mark) == 1


@pytest.mark.parametrize("script", ["ours", "released"])
def test_letter_case_decides_no_hit(script, tiny_model, monkeypatch):
    prober = method(tiny_model("t5"), script=script, beams=2)
    written = [("HEPATITIS b", -0.1), ("pain", -0.2)]
    name = "_write_as_released" if script == "released" else "_write_texts"
    monkeypatch.setattr(prober, name, lambda task: [written] * len(task.queries))
    queries = probing.queries(PROMPTS[:1], ["Hepatitis B"])
    predictions = prober.predict(probing.task(queries, probing.candidates(), 10), "")
    assert predictions["hit"].tolist() == [True, False]


def test_a_checkpoints_own_settings_hold_if_asked_for(tiny_model, tmp_path):
    folders = [
        tiny_model("t5"),
        with_settings(
            tiny_model("t5"), tmp_path / "t5", "generation_config.json", "suppress_tokens"
        ),
    ]
    queries = probing.queries(PROMPTS[:1], ANSWERS)

    def scores(folder, **settings):
        prober = method(folder, beams=2, **settings)
        return prober.predict(probing.task(queries, probing.candidates(), 10), "")["score"].tolist()

    plain, others = (scores(folder) for folder in folders)
    assert plain == others
    for settings in ({"own_settings": True}, {"script": "released"}):
        plain, others = (scores(folder, **settings) for folder in folders)
        assert plain != others


def test_as_released_a_prompt_longer_than_the_window_is_refused(tiny_model):
    queries = probing.queries(["Velotrine " * 200 + "treats [Y] ."], ANSWERS)
    prober = method(tiny_model("bart"), script="released")
    with pytest.raises(BadInput, match=r"query q0: .*the model reads"):
        prober.predict(probing.task(queries, probing.candidates(), 10), "")


def test_as_released_a_model_that_writes_padding_alone_has_written_nothing(tiny_model, monkeypatch):
    model = method(tiny_model("t5"), script="released").model
    pad = model.tokenizer.pad_token_id

    def generate(ids, **settings):
        sequences = torch.full((len(ids), 4), pad)
        return SimpleNamespace(sequences=sequences, sequences_scores=torch.zeros(len(ids)))

    monkeypatch.setattr(model.model, "generate", generate)
    assert seq2seq.texts(model, PROMPTS[:2], ["q0", "q1"], 1) == [[("", 0.0)]] * 2


def test_rouge_l_is_that_of_the_nearest_answer(tiny_model):
    queries = probing.queries(PROMPTS, ANSWERS)
    predictions = method(tiny_model("t5"), beams=2).predict(
        probing.task(queries, probing.candidates(), 10), ""
    )
    assert predictions["rouge_l"].between(0, 1).all()


def test_a_prompt_without_slot_is_refused(tiny_model):
    with pytest.raises(BadInput, match=r"query q0: the prompt needs exactly one \[Y\], and has 0"):
        method(tiny_model("t5")).predict(
            probing.task(probing.queries(["none"]), probing.candidates(), 3), ""
        )
