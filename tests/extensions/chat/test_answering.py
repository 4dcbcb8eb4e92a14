"""Answering: every candidate as it would be written, free answers, chats, shots, and refusals."""

import json
import random
import shutil

import pandas as pd
import pytest
import torch
import transformers
from click.testing import CliRunner

from helpers import generation, probing, tiny
from helpers.typos import check_typo, edited, own_params
from medprobe.cli import main
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import causal
from medprobe.engine.inspection import inspect
from medprobe.engine.load import load
from medprobe.extensions.chat import prompt_texts, writing
from medprobe.extensions.chat.methods.answering import Answering
from medprobe.extensions.chat.prompt_texts import text_of

NAMES = probing.NAMES[:8]  # those that all tokenizers have letters for
ANSWERS = ("acute renal failure", "pain")
TEMPLATES = {  # behind which an answer stands: a blank, a line's end, a mark of its own
    "llama": "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}The {{ m.content }}"
    " ;{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}",
    "gpt2": "{% for m in messages %}{{ eos_token }}{{ m.role }}\n{{ m.content }}{{ eos_token }}\n"
    "{% endfor %}",
    "qwen3": "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
}


@pytest.fixture(scope="module")
def chat_model(tiny_model, tmp_path_factory):
    def folder(arch, template=None):
        copy = tmp_path_factory.mktemp("chat") / arch
        return tiny.with_template(tiny_model(arch), copy, template or TEMPLATES[arch])

    return folder


def method(folder, budget=8192, seed=0, **settings):
    chosen = Answering.Settings(**settings)
    return Answering(folder, chosen, EngineParams(token_budget=budget), seed)


def tables(train=(), prompts=probing.PROMPTS, subjects=("C8", "C9")):
    facts = probing.queries(train, ["pain", "SNCA"])
    facts["subject_id"] = [subjects[i % len(subjects)] for i in range(len(facts))]
    queries = probing.queries(prompts, ANSWERS)
    return BenchmarkTables(queries, probing.candidates(NAMES), others={"train": facts})


def predict_pass(prober, benchmark, pass_, k=10):
    (task,) = prober.tasks(benchmark, k)
    return prober.predict(task, pass_)


def question(prompt):
    text = prompt.replace("[Y]", "____")
    return f"Fill in the blank with a name and nothing else: {text}"


def slow(folder, texts, begin=()):
    """Each name in each text's last slot: the log-probability of all up to the token behind it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    rows = []
    for i, text in enumerate(texts):
        start = text.rindex("[Y]")
        scores = {}
        for name in NAMES:
            answered = text[:start] + name
            whole, prefix = (
                tokenizer(part, add_special_tokens=False)["input_ids"]
                for part in (answered + text[start + 3 :], answered)
            )
            ids = [*begin, *whole[: len(prefix) + 1]]
            logs = probing.log_probs(model, ids)
            scores[name] = sum(logs[j, token].item() for j, token in enumerate(ids[1:]))
        ranked = sorted(scores, key=lambda name: (-scores[name], name))
        rows += [(f"q{i}", rank, name, scores[name]) for rank, name in enumerate(ranked, start=1)]
    return pd.DataFrame(rows, columns=["query_id", "rank", "prediction", "score"])


@pytest.mark.parametrize("arch", TEMPLATES)
def test_a_chat_ranks_every_candidate_as_it_would_be_written(arch, chat_model):
    folder = chat_model(arch)
    prober = method(folder)
    predictions = predict_pass(prober, tables(), "chat-0-shot-constrained")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    chats = [
        [{"role": "user", "content": question(prompt)}, {"role": "assistant", "content": "[Y]"}]
        for prompt in probing.PROMPTS
    ]
    texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in chats]
    probing.same(predictions, slow(folder, texts))


@pytest.mark.parametrize("arch", [*probing.CAUSAL, "gpt_neox"])
def test_a_text_is_gone_on_with_behind_facts_that_are_never_asked(arch, tiny_model):
    folder = tiny_model(arch)
    prompts = ("Aspirin treats [Y] .", "Entecavir may prevent [Y] .")
    prober = method(folder, shots=[2], separator=" ; ")
    benchmark = tables(prompts, ["Velotrine treats [Y] ."])
    predictions = predict_pass(prober, benchmark, "none-2-shot-constrained")
    (task,) = prober.tasks(benchmark, 10)
    order = random.Random("0 Velotrine treats [Y] .").sample(range(2), 2)
    shown_prompts = [prompts[i].replace("[Y]", "pain") for i in order]
    assert set(task.tables["train"]["prompt"]) == set(prompts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    begin = tokenizer("")["input_ids"]
    text = " ; ".join([*shown_prompts, "Velotrine treats [Y] ."])
    probing.same(predictions, slow(folder, [text], begin), 2e-4)


@pytest.mark.parametrize("arch", probing.SEQ2SEQ)
def test_encoder_decoder_models_are_put_a_question_without_sentinels(arch, tiny_model):
    folder = tiny_model(arch)
    predictions = predict_pass(method(folder), tables(), "none-0-shot-constrained")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    rows = []
    for i, prompt in enumerate(probing.PROMPTS):
        source = tokenizer(question(prompt), return_tensors="pt")["input_ids"]
        scores = {}
        for name in NAMES:
            labels = tokenizer(name, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                loss = model(input_ids=source, labels=labels).loss
            scores[name] = -loss.item() * labels.shape[1]
        ranked = sorted(scores, key=lambda name: (-scores[name], name))
        rows += [(f"q{i}", rank, name, scores[name]) for rank, name in enumerate(ranked, start=1)]
    expected = pd.DataFrame(rows, columns=["query_id", "rank", "prediction", "score"])
    probing.same(predictions, expected, 2e-4)


def test_what_is_written_first_is_likeliest(tiny_model):
    """One token: the texts that beam search finds are those of the best tokens."""
    model = load(tiny_model("gpt2"), "causal")
    slots = prompt_texts.slots(model, ["Velotrine treats [Y] ."], ["q0"], "\n", has_start=False)
    way = writing.WritingSettings(5, 0, None, cap=1, own_settings=False, seed=0)
    (written,) = writing.write(model, [(slot, ()) for slot in slots], ["q0"], way)
    logs = probing.log_probs(model.model, slots[0].before)[-1]
    best = logs.topk(5)
    texts = {}
    for token, score in zip(best.indices.tolist(), best.values.tolist(), strict=True):
        ended = token in (*slots[0].after, model.tokenizer.eos_token_id)
        text = "" if ended else model.tokenizer.decode([token]).strip()
        texts.setdefault(text, score)
    assert [text for text, *_ in written] == list(texts)
    assert [score for _, score, _ in written] == pytest.approx([*texts.values()], abs=1e-4)


@pytest.mark.parametrize(
    ("arch", "samples"),
    [("llama", 4), ("t5", 4), *((arch, 0) for arch in (*probing.CAUSAL, *probing.SEQ2SEQ))],
)
def test_free_answers_do_not_depend_on_batches(arch, samples, tiny_model):
    pass_ = "none-0-shot-free"
    settings = {"beams": 3, "samples": samples, "spare": 0}
    prompts, slow = probing.PROMPTS[1:3], method(tiny_model(arch), budget=1, **settings)
    together = predict_pass(method(tiny_model(arch), **settings), tables(prompts=prompts), pass_)
    alone = pd.concat(predict_pass(slow, tables(prompts=[prompt]), pass_) for prompt in prompts)
    columns = ["rank", "prediction"]
    assert together[columns].to_numpy().tolist() == alone[columns].to_numpy().tolist()
    assert together["score"].to_numpy() == pytest.approx(alone["score"].to_numpy(), abs=1e-4)


@pytest.mark.parametrize("arch", [*tiny.CAUSAL, *tiny.RECURRENT])
def test_the_score_of_a_text_is_its_likelihood(arch, tiny_model):
    model = load(tiny_model(arch), "causal")
    (slot,) = prompt_texts.slots(model, ["Aspirin treats [Y]"], ["q0"], "\n", has_start=False)
    way = writing.WritingSettings(3, 0, None, cap=3, own_settings=False, seed=0, one_line=False)
    texts = []
    write_text = writing._text

    def note(tokenizer, ids, ends, **more):
        count = next((i + 1 for i, token in enumerate(ids) if token in ends), len(ids))
        texts.append([*ids[:count]])
        return write_text(tokenizer, ids, ends, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_text", note)
        (written,) = writing.write(model, [(slot, ())], ["q0"], way)
    slow = causal.log_likelihood(model, [[*slot.before, *ids] for ids in texts], 1)
    scores = [sum(row[len(slot.before) - 1 :]) for row in slow]
    assert [score for _, score, _ in written] == pytest.approx(sorted(scores)[::-1], abs=1e-4)


@pytest.mark.parametrize("samples", [0, 4])
@pytest.mark.parametrize("arch", tiny.CAUSAL)
def test_a_prompt_is_read_once_for_all_texts_behind_it(arch, samples, tiny_model, monkeypatch):
    model = load(tiny_model(arch), "causal")
    prompt_slots = prompt_texts.slots(
        model, probing.PROMPTS[1:3], ["q0", "q1"], "\n", has_start=False
    )
    way = writing.WritingSettings(3, samples, None, cap=4, own_settings=False, seed=0)
    read = []

    def note(_, inputs):
        read.append(inputs[0].numel())

    with model.model.get_input_embeddings().register_forward_pre_hook(note):
        fast, once = (
            writing.write(
                model, [(prompt_slot, ()) for prompt_slot in prompt_slots], ["q0", "q1"], way
            ),
            [*read],
        )
        read.clear()
        monkeypatch.setattr(writing, "_read_prompts", lambda *_: {})
        slow = writing.write(
            model, [(prompt_slot, ()) for prompt_slot in prompt_slots], ["q0", "q1"], way
        )
    for fast_texts, expected in zip(fast, slow, strict=True):
        assert [text for text, *_ in fast_texts] == [text for text, *_ in expected]
        assert [score for _, score, _ in fast_texts] == pytest.approx(
            [score for _, score, _ in expected], abs=1e-4
        )
    prompts = sum(len(prompt_slot.before) for prompt_slot in prompt_slots)
    assert sum(once) == sum(read) - (way.texts - 1) * (prompts - len(prompt_slots))


def test_draws_are_the_seeds_and_their_shares_the_scores(tiny_model):
    first_draw, same, other = (
        predict_pass(method(tiny_model("gpt2"), seed=seed, samples=5), tables(), "none-0-shot-free")
        for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first_draw, same)
    assert first_draw["prediction"].tolist() != other["prediction"].tolist()
    assert first_draw.groupby("query_id")["score"].sum().tolist() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
@pytest.mark.parametrize("first", range(10))
def test_a_checkpoints_generation_settings_change_nothing(first, file, tiny_model, tmp_path):
    """Every tenth of all settings."""

    def texts(folder):
        model = load(folder, "causal")
        (slot,) = prompt_texts.slots(model, ["Aspirin treats [Y]"], ["q0"], "\n", has_start=False)
        for samples in (0, 3):
            way = writing.WritingSettings(2, samples, None, cap=4, own_settings=False, seed=0)
            yield writing.write(model, [(slot, ())], ["q0"], way)

    fields = {*generation.FIELDS[first::10]}
    if file == "config.json":
        fields -= {"compile_config"}  # transformers makes no network of it
    changed = generation.with_settings(tiny_model("llama"), tmp_path / "model", file, *fields)
    assert [*texts(changed)] == [*texts(tiny_model("llama"))]


def test_every_generation_setting_is_tried():
    assert set(generation.FIELDS) == set(generation.VALUES)


def test_own_settings_hold_if_asked_for_and_a_checkpoints_ends_always(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model("gpt2"), tmp_path / "gpt2")
    settings = {"repetition_penalty": 1.5, "eos_token_id": [3, 4]}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    model = load(folder, "causal")
    slots = prompt_texts.slots(model, ["Velotrine treats [Y] ."], ["q0"], "\n", has_start=False)
    for uses_own in (False, True):
        way = writing.WritingSettings(3, 2, 0.5, cap=4, own_settings=uses_own, seed=0)
        config = writing._generation_config(model, way, slots[0])
        assert config.repetition_penalty == (1.5 if uses_own else None)
        assert config.temperature == 0.5
        assert {3, 4, *slots[0].after, model.tokenizer.eos_token_id} == {*config.eos_token_id}


@pytest.mark.parametrize(
    "setting",
    [
        *({"bad_words_ids": []}, {"top_k": -1}, {"temperature": "hot"}, {"stop_strings": ["a"]}),
        *({"dola_layers": "low"}, {"cache_implementation": "quantized"}, {"token_healing": True}),
    ],
    ids=str,
)
def test_own_settings_that_cannot_be_used_are_one_line(setting, tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model("llama"), tmp_path / "llama")
    (folder / "generation_config.json").write_text(json.dumps(setting))
    model = load(folder, "causal")
    slots = prompt_texts.slots(model, ["Velotrine treats [Y] ."], ["q0"], "\n", has_start=False)
    way = writing.WritingSettings(1, 1, None, cap=2, own_settings=True, seed=0)
    with pytest.raises(BadInput, match=r"settings cannot be used: .*; set own_settings: false$"):
        writing.write(model, [(slots[0], ())], ["q0"], way)


def test_a_text_ends_with_its_line_or_before_what_ends_it(tiny_model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("gpt2"))
    ids = tokenizer("chronic  pain\nor fever .")["input_ids"]
    dot = ids[-1]
    assert writing._text(tokenizer, ids, [dot], one_line=True) == ("chronic pain", False)
    assert writing._text(tokenizer, ids[: ids.index(dot)], [], one_line=True)[0] == "chronic pain"
    assert writing._text(tokenizer, [dot, *ids], [dot], one_line=True) == ("", False)


def test_free_answers_are_compared_without_case_punctuation_and_articles(tiny_model, monkeypatch):
    prober = method(tiny_model("gpt2"))
    texts = [("The Pain.", -0.1), ("painful", -0.2)]
    monkeypatch.setattr(
        writing, "write", lambda model, all_queries, *more: [texts] * len(all_queries)
    )
    predictions = predict_pass(prober, tables(), "none-0-shot-free", k=2)
    assert predictions["hit"].tolist() == [True, False] * 4


def test_all_combinations_are_passes_and_a_template_is_used_where_there_is_one(
    tiny_model, chat_model
):
    assert inspect(chat_model("llama")).kinds == ("chat", "causal")
    assert method(tiny_model("llama")).passes() == ["none-0-shot-constrained", "none-0-shot-free"]
    prober = method(chat_model("llama"), shots=[0, 2], forms=["free"])
    assert prober.passes() == [
        *("chat-0-shot-free", "chat-2-shot-free"),
        *("none-0-shot-free", "none-2-shot-free"),
    ]


def test_a_template_with_names_alone_is_refused(chat_model):
    named = chat_model("gpt2", {"rag": TEMPLATES["gpt2"], "tool_use": TEMPLATES["gpt2"]})
    with pytest.raises(BadInput, match="templates for chats with names, and no default"):
        predict_pass(method(named), tables(), "chat-0-shot-free")


def test_shots_are_turns_of_the_chat(chat_model):
    prober = method(chat_model("gpt2"), shots=[1])
    benchmark = tables(["Aspirin treats [Y] ."], ["Velotrine treats [Y] ."])
    (task,) = prober.tasks(benchmark, 10)
    (query,) = task.queries.itertuples()
    end = "<|endoftext|>"
    assert text_of(prober.backend.model, prober._prompt(query, task, True, 1)) == "".join(
        f"{end}{role}\n{text}{end}\n"
        for role, text in [
            ("user", question("Aspirin treats [Y] .")),
            ("assistant", "pain"),
            ("user", question("Velotrine treats [Y] .")),
            ("assistant", "[Y]"),
        ]
    )


CLOCKS = [  # how templates ask for the date
    "{{ strftime_now('%d %b %Y') }}",
    "{% if strftime_now is defined %}{% set d = strftime_now('%d %b %Y') %}{{ d }}{% endif %}",
    "{% macro day() %}{{ strftime_now(format='%d %b %Y') }}{% endmacro %}{{ day() }}",
]


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_template_reads_a_date_of_the_settings_and_no_clock(clock, chat_model):
    chat = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    checkpoint = chat_model("gpt2", clock + chat)
    for settings, day in (({}, "26 Jul 2024"), ({"today": "2026-01-02"}, "02 Jan 2026")):
        prober = method(checkpoint, **settings)
        (task,) = prober.tasks(tables(), 10)
        query = next(task.queries.itertuples())
        text = text_of(prober.backend.model, prober._prompt(query, task, True, 0))
        assert text == f"{day}{question(query.prompt)}[Y]"


@pytest.mark.parametrize(
    "draw", ["{{ [1, 2] | random }}", "{{ lipsum() }}", "{{ [[1, 2]] | map('random') | first }}"]
)
def test_a_template_that_draws_by_chance_is_refused(draw, chat_model):
    prober = method(chat_model("gpt2", draw + "{{ messages[-1]['content'] }}"))
    with pytest.raises(BadInput, match=r"its template draws by chance.*; correct chat_template"):
        predict_pass(prober, tables(), "chat-0-shot-free")


def test_no_text_of_a_chat_is_in_the_error_of_a_template(chat_model):
    raising = chat_model("gpt2", "{{ raise_exception('bad turn: ' + messages[0].content) }}")
    with pytest.raises(BadInput, match="refuses the chat") as caught:
        predict_pass(method(raising), tables(["Aspirin treats [Y] ."]), "chat-0-shot-free")
    assert "spirin" not in str(caught.value)


def test_what_cannot_be_asked_is_one_clear_line(tiny_model, chat_model):
    prober = method(tiny_model("gpt2"), templates=["chat"])
    with pytest.raises(BadInput, match="no template for chats; leave chat out"):
        predict_pass(prober, tables(), "chat-0-shot-free")
    raising = chat_model("llama", "{{ raise_exception('only one turn') }}")
    with pytest.raises(BadInput, match=r"template refuses the chat \(TemplateError\); correct"):
        predict_pass(method(raising), tables(), "chat-0-shot-free")
    failing = chat_model("llama", "{% for i in range(10 ** 9) %}{% endfor %}")
    with pytest.raises(BadInput, match=r"template refuses the chat \(OverflowError\)"):
        predict_pass(method(failing), tables(), "chat-0-shot-free")
    slow = chat_model(
        "llama", "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}"
    )
    with pytest.raises(BadInput, match=r"template refuses the chat \(StepsError\)"):
        predict_pass(method(slow), tables(), "chat-0-shot-free")
    endless = chat_model("llama", "{{ 'a' * 2000000 }}")
    with pytest.raises(BadInput, match="2,000,000 characters of a chat"):
        predict_pass(method(endless), tables(), "chat-0-shot-free")
    silent = chat_model("llama", "{{ messages[0]['content'] }}")
    with pytest.raises(BadInput, match="does not keep answers"):
        predict_pass(method(silent), tables(), "chat-0-shot-free")
    bare = BenchmarkTables(probing.queries(), probing.candidates(NAMES))
    own_facts = tables(["Aspirin treats [Y] ."], subjects=["C1"])  # the subject that is asked about
    marked = tables(prompts=["Aspirin & gout : it treats [Y] ."])
    for change in ("upper", "e", "truncate(10)"):
        changing = "{{ messages[0].content | " + change + " }} {{ messages[-1].content }}"
        with pytest.raises(BadInput, match="does not keep what is asked"):
            predict_pass(method(chat_model("llama", changing)), marked, "chat-0-shot-free")
    for benchmark, problem in (
        (bare, "no table train, so no facts"),
        (own_facts, "0 facts that are"),
    ):
        with pytest.raises(BadInput, match=f"toy: r/all: {problem}"):
            predict_pass(method(tiny_model("gpt2"), shots=[1]), benchmark, "none-1-shot-free")
    long = tables(prompts=["Velotrine " * 60 + "treats [Y] ."])
    for form in ("free", "constrained"):
        with pytest.raises(BadInput, match=r"query q0: .*the model reads 128"):
            predict_pass(method(tiny_model("gpt2")), long, f"none-0-shot-{form}")


THINKING = (  # a template that begins the turn, and knows of thoughts
    "{% for m in messages %}{{ m.role }} {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}{# </think> #}"
)


def test_thoughts_get_room_and_the_likeliest_token_each_time(chat_model, monkeypatch):
    seen = []
    write = writing.write

    def note(model, prompts, where, settings):
        seen.append((prompts, settings))
        return write(model, prompts, where, settings)

    monkeypatch.setattr(writing, "write", note)
    prober = method(chat_model("gpt2", THINKING), thinking={"budget": 7}, spare=1, forms=["free"])
    assert prober.writer.thinks
    table = predict_pass(prober, tables(), "chat-0-shot-free")
    prompts, settings = seen[-1]
    tokenizer = prober.backend.model.tokenizer
    assert settings.beams == 1 and settings.cap == prober.writer.answer_length(NAMES) + 1 + 7
    assert all(slot.after == () for slot, _ in prompts)
    assert tokenizer.decode(prompts[0][0].before).endswith("assistant")
    assert table["query_id"].is_unique and set(table["score"]) == {1.0}
    other = method(chat_model("gpt2"), forms=["free"])
    assert not other.writer.thinks


@pytest.mark.parametrize("mark", ["<think>", "[THINK]"])
def test_thoughts_that_the_template_begins_end_or_are_no_answer(chat_model, monkeypatch, mark):
    name = NAMES[0]
    template = THINKING.replace("assistant {%", f"assistant {mark}\n{{%")
    prober = method(chat_model("gpt2", template), thinking={"budget": 7}, forms=["free"])
    for text, answer in ((name, ""), (f"{NAMES[1]}{mark[0]}/{mark[1:]} {name}", name)):
        written = [writing.Text(text, 1.0)]
        monkeypatch.setattr(writing, "write", lambda *given, w=written: [w] * len(given[1]))
        table = predict_pass(prober, tables(), "chat-0-shot-free")
        assert set(table["prediction"]) == {answer}
        assert set(table["unanswered"]) == {"" if answer else "no text"}


def test_a_model_that_fills_no_mask_is_asked_by_it(tiny_model, working_folder):
    arguments = ["ask", str(tiny_model("gpt2")), "aspirin treats [Y] .", "--json"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    answer = json.loads(result.stdout)
    assert answer["method"] == "answering"
    assert [row["rank"] for row in answer["answers"]] == [*range(1, 1 + len(answer["answers"]))]
    assert {row["right"] for row in answer["answers"]} == {None}


def test_shots_need_facts_to_tell(tmp_path):
    content = edited(own_params(), "methods/chat/answering/lipid", {"shots": [0, 3]})
    check_typo(tmp_path, content, "needs a table train, which the builder")
