import pandas as pd
import pytest
import torch
import transformers

from helpers import minicons, probing, tiny
from helpers.memory import check_model_in_memory
from helpers.special_tokens import check_refusal
from medprobe.cli.ask import ask
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Params
from medprobe.core.tables import BenchmarkTables
from medprobe.extensions.likelihood.methods.likelihood import Likelihood
from medprobe.methods.mask_average import MaskAverage
from medprobe.metrics.clusters import subject_clusters
from medprobe.metrics.shuffled import draw_others

NAMES = [name for name in probing.NAMES if not name.endswith(")")]


def method(folder, **settings):
    chosen = Likelihood.Settings(**{"shortlist": 0, "per_token": True, "lists": True, **settings})
    return Likelihood(folder, chosen, EngineParams(), 0)


def table(scores, k):
    """Prediction rows from {(query, variant): {name: score}}."""
    rows = []
    for (query, variant), of_names in scores.items():
        ranked = sorted(of_names, key=lambda name: (-of_names[name], name))[:k]
        for rank, name in enumerate(ranked, start=1):
            rows.append((variant, "", query, rank, name, of_names[name]))
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score"]
    return pd.DataFrame(rows, columns=columns)


def both(scores_by_name, key, total, count, variant=""):
    query, name = key
    scores_by_name.setdefault((query, variant), {})[name] = total
    per_token = f"{variant}_per_token".lstrip("_")
    scores_by_name.setdefault((query, per_token), {})[name] = total / count


def slow_causal(folder, queries):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    scores_by_name = {}
    for query in queries.itertuples():
        for name in NAMES:
            text = query.prompt.replace("[Y]", name)
            answer_first = query.prompt.startswith("[Y]")
            ids = probing.causal_ids(tokenizer, text, answer_first=answer_first)
            logs = probing.log_probs(model, ids)
            total = sum(logs[i, token].item() for i, token in enumerate(ids[1:]))
            both(scores_by_name, (query.query_id, name), total, len(ids) - 1)
    return scores_by_name


def slow_seq2seq(folder, queries):
    """The loss of the model on the target that its family writes."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    scores_by_name = {}
    for query in queries.itertuples():
        for name in NAMES:
            if "<extra_id_0>" in tokenizer.get_vocab():
                source = tokenizer(query.prompt.replace("[Y]", "<extra_id_0>"))["input_ids"]
                target = tokenizer(f"<extra_id_0> {name} <extra_id_1>")["input_ids"][:-1]
                forced = 1  # the sentinel that opens the answer
            else:
                prompt = query.prompt.replace(" [Y]", "[Y]")
                source = tokenizer(prompt.replace("[Y]", tokenizer.mask_token))["input_ids"]
                target = tokenizer(query.prompt.replace("[Y]", name))["input_ids"]
                forced = 0
            with torch.no_grad():
                logits = model(torch.tensor([source]), labels=torch.tensor([target])).logits[0]
            log_probs = logits.log_softmax(-1)[range(len(target)), target][forced:]
            key = (query.query_id, name)
            both(scores_by_name, key, log_probs.sum().item(), len(log_probs))
    return scores_by_name


def slow_masked(folder, queries, scope):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    scores_by_name = {}
    for query in queries.itertuples():
        for name in NAMES:
            text = query.prompt.replace("[Y]", name)
            encoded = tokenizer(text)
            ids, words = encoded["input_ids"], encoded.word_ids()
            places = [i for i, word in enumerate(words) if word is not None]
            if scope == "answer":
                start = query.prompt.index("[Y]")
                low, high = len(text[:start].rstrip()), start + len(name)
                spans = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
                places = [i for i in places if spans[i][1] > low and spans[i][0] < high]
            for variant in ("", "whole_word", "within_word_l2r"):
                total = 0.0
                for place in places:
                    copy = list(ids)
                    for i in places:
                        together = variant == "whole_word" or (variant and i > place)
                        if i == place or (together and words[i] == words[place]):
                            copy[i] = tokenizer.mask_token_id
                    total += probing.log_probs(model, copy)[place, ids[place]].item()
                both(scores_by_name, (query.query_id, name), total, len(places), variant)
    return scores_by_name


def test_causal_equals_reading_every_filled_prompt(tiny_model):
    queries = probing.queries()
    predictions = method(tiny_model("gpt2")).predict(
        probing.task(queries, probing.candidates(NAMES), 5), ""
    )
    probing.same(predictions, table(slow_causal(tiny_model("gpt2"), queries), 5))


@pytest.mark.parametrize("arch", tiny.SEQ2SEQ)
def test_seq2seq_equals_the_loss_on_every_target(arch, tiny_model):
    queries = probing.queries()
    predictions = method(tiny_model(arch)).predict(
        probing.task(queries, probing.candidates(NAMES), 5), ""
    )
    probing.same(predictions, table(slow_seq2seq(tiny_model(arch), queries), 5))


@pytest.mark.parametrize(
    ("arch", "scope"),
    [("bert", "prompt"), *((a, "answer") for a in probing.MASKED)],
)
def test_masked_equals_masking_every_token_alone(arch, scope, tiny_model):
    queries = probing.queries(probing.PROMPTS[:2])
    predictions = method(tiny_model(arch), masked=scope, within_word_l2r=True).predict(
        probing.task(queries, probing.candidates(NAMES), 5), ""
    )
    ranked = predictions[predictions["rank"] <= 5].reset_index(
        drop=True
    )  # behind them what equals the last
    probing.same(ranked, table(slow_masked(tiny_model(arch), queries, scope), 5))


@pytest.mark.parametrize("arch", ["gpt2", "t5"])
def test_a_prompt_among_others_of_all_lengths_ranks_as_alone(arch, tiny_model):
    more = "a long time ago, as everyone knew, "
    prompts = [more + probing.PROMPTS[0], probing.PROMPTS[1], more * 2 + probing.PROMPTS[1]]
    prober = method(tiny_model(arch))
    tasks = [
        probing.task(probing.queries(texts), probing.candidates(NAMES), 5)
        for texts in (prompts, *([text] for text in prompts))
    ]
    together, *alone = (prober.predict(task, "") for task in tasks)
    names = [task.queries["query_id"] for task in tasks]
    renamed = [table.assign(query_id=names[0][place]) for place, table in enumerate(alone)]
    probing.same(together, pd.concat(renamed, ignore_index=True))


def test_the_whole_word_variants_can_be_left_out(tiny_model):
    queries = probing.queries(probing.PROMPTS[:1])
    candidates = probing.candidates(NAMES)
    predictions = method(tiny_model("bert"), whole_word=False).predict(
        probing.task(queries, candidates, 2), ""
    )
    assert predictions["variant"].unique().tolist() == ["", "per_token"]


def test_a_shortlist_holds_the_names_that_mask_average_ranks_best(tiny_model):
    queries, folder = probing.queries(probing.PROMPTS[:2]), tiny_model("bert")
    everything = method(folder).predict(probing.task(queries, probing.candidates(NAMES), 10), "")
    predictions = method(folder, shortlist=4).predict(
        probing.task(queries, probing.candidates(NAMES), 10), ""
    )
    average = MaskAverage(folder, MaskAverage.Settings(), EngineParams(), 0)
    best = average.predict(probing.task(queries, probing.candidates(NAMES), 4), "")
    best = best[best["variant"] == ""].groupby("query_id")["prediction"].agg(set)
    shortlisted = [
        p in best[q] for q, p in zip(everything["query_id"], everything["prediction"], strict=True)
    ]
    expected = everything[shortlisted].reset_index(drop=True)
    expected["rank"] = expected.groupby(["query_id", "variant"]).cumcount() + 1
    probing.same(predictions, expected)


@pytest.mark.parametrize("arch", ["bert", "gpt2", "t5"])
def test_neither_the_size_of_batches_nor_the_device_moves_a_rank(arch, tiny_model):
    probing.check_ranks_stay("likelihood", tiny_model(arch))


@pytest.mark.parametrize("arch", ["gpt2", "t5", "bart", "bert"])
def test_bad_candidates_are_refused(arch, tiny_model):
    ranker = method(tiny_model(arch))
    with pytest.raises(BadInput, match="tokenises to nothing"):
        ranker.predict(probing.task(probing.queries(), probing.candidates([" "]), 3), "")
    with pytest.raises(BadInput, match=r"query q0: with 'pain pain .*the model reads"):
        ranker.predict(probing.task(probing.queries(), probing.candidates(["pain " * 600]), 3), "")


@pytest.mark.parametrize("arch", ["gpt2", "llama", "t5", "bart"])
def test_a_special_token_in_a_prompt_or_name_is_refused(tiny_model, arch):
    check_refusal(tiny_model(arch), "likelihood")


@pytest.mark.parametrize("arch", ["gpt2", "t5"])
def test_a_proof_asks_each_prompt_about_the_answers_of_another_query(tiny_model, arch):
    """Against the lists of the best names."""
    prompts = [f"S{number} may treat [Y] ." for number in range(5)]
    queries = probing.queries(prompts, ["pain"]).assign(subject=[f"S{n}" for n in range(5)])
    queries["subject_id"] = queries["subject"]
    queries["answers"] = [[name] for name in (*NAMES, NAMES[0])[:5]]
    tables = BenchmarkTables(queries, probing.candidates(NAMES))
    found = {}
    for lists in (False, True):
        settings = Likelihood.Settings(lists=lists)
        prober = Likelihood(tiny_model(arch), settings, EngineParams(), 7)
        [task] = prober.tasks(tables, 2)
        found[lists] = prober.predict(task, "")
    donors = draw_others(subject_clusters(queries), 4, 7)
    listed = found[True].groupby("query_id")["prediction"].agg(list)
    proved = found[False][found[False]["rank"] <= 2]
    hits = proved.groupby(["variant", "replicate", "query_id"])["hit"].any()
    for place, query in enumerate(queries["query_id"]):
        asked = {("", ""): place}
        asked |= {("shuffled", str(draw)): donors[draw][place] for draw in range(4)}
        for draw, whose in asked.items():
            answers = queries["answers"][whose]
            expected = any(name in answers for name in listed[query][:2])
            assert hits[*draw, query] == expected


def test_it_is_asked_of_a_causal_model_where_no_method_is_named(tiny_model, working_folder, capsys):
    names = probing.candidates(NAMES)
    BenchmarkTables(probing.queries(), names).write(places.BENCHMARKS / "drugs")
    ask(str(tiny_model("gpt2")), "velotrine may treat [Y] .", None, "drugs", Params())
    assert "(likelihood)" in " ".join(capsys.readouterr().out.split())


def test_a_model_in_memory_is_that_of_its_folder(tiny_model):
    check_model_in_memory(tiny_model("gpt2"), transformers.AutoModelForCausalLM, "likelihood")


@pytest.mark.parametrize("model", minicons.MODELS)
def test_it_ranks_by_the_totals_of_minicons(model):
    names = minicons.NAMES
    settings = Likelihood.Settings(shortlist=0, whole_word=False, within_word_l2r=True)
    prober = Likelihood(minicons.checkpoint(model), settings, minicons.engine(), 0)
    task = probing.task(probing.queries([minicons.PROMPT]), probing.candidates(names), len(names))
    predictions = prober.predict(task, "")
    for variant, metric in (("", "original"), ("within_word_l2r", "within_word_l2r")):
        totals = {name: minicons.total(model, name, metric) for name in names}
        rows = predictions[predictions["variant"] == variant]
        assert rows["prediction"].tolist() == sorted(names, key=lambda name: -totals[name])
        assert rows["score"].tolist() == pytest.approx(
            sorted(totals.values(), reverse=True), abs=1e-3
        )
