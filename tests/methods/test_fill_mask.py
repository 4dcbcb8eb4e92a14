import pandas as pd
import pytest
import transformers

from helpers import probing
from medprobe.core.answers import biolama, exact
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.methods.fill_mask import FillMask

ANSWERS = ("pain", "gene", "acute renal failure")


def method(folder, budget=8192):
    return FillMask(folder, FillMask.Settings(), EngineParams(token_budget=budget), 0)


def slow(folder, queries, k):
    """One query at a time, head over all positions, the whole vocabulary sorted."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    rows = []
    for query in queries.itertuples():
        ids = probing.masked_ids(tokenizer, query.prompt, 1)
        logs = probing.log_probs(model, ids)[ids.index(tokenizer.mask_token_id)]
        best = {}
        for token in set(range(len(tokenizer))) - set(tokenizer.all_special_ids):
            name = tokenizer.decode([token]).strip()
            if name:
                best[name] = max(best.get(name, float("-inf")), logs[token].item())
        pieces = [probing.piece_ids(tokenizer, query.prompt, name) for name in query.answers]
        hits = {tokenizer.decode(ids).strip() for ids in pieces if len(ids) == 1}
        ranked = sorted(best, key=lambda name: (-best[name], name))[:k]
        for rank, name in enumerate(ranked, start=1):
            rows.append(("", "", query.query_id, rank, name, best[name], name in hits))
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score", "hit"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize("arch", probing.MASKED)
@pytest.mark.parametrize("budget", [1, 8192])
def test_equals_the_slow_implementation(arch, budget, tiny_model):
    queries = probing.queries(answers=ANSWERS)
    predictions = method(tiny_model(arch), budget).predict(
        probing.task(queries, probing.candidates(), 10), ""
    )
    probing.same(predictions, slow(tiny_model(arch), queries, 10))


def test_only_an_answer_of_one_token_is_a_hit(tiny_model):
    queries = probing.queries(["Velotrine treats [Y] ."], ANSWERS)
    everything = method(tiny_model("bert")).predict(
        probing.task(queries, probing.candidates(), 10_000), ""
    )
    assert set(everything.loc[everything["hit"], "prediction"]) == {"pain", "gene"}
    assert not everything["prediction"].str.contains(r"\[MASK\]|\[CLS\]").any()


@pytest.mark.parametrize(("rule", "answer"), [(exact, "Pain"), (biolama, "the pain.")])
def test_a_token_that_reads_as_an_answer_is_a_hit(rule, answer, tiny_model):
    queries = probing.queries(["Velotrine treats [Y] ."], [answer])
    task = probing.task(queries, probing.candidates(), 10_000, rule)
    everything = method(tiny_model("bert-cased")).predict(task, "")
    assert everything.loc[everything["hit"], "prediction"].tolist() == ["pain"]


def test_a_prompt_longer_than_the_window_is_refused(tiny_model):
    with pytest.raises(BadInput, match=r"query q0: .*the model reads 128"):
        method(tiny_model("bert")).predict(
            probing.task(probing.queries(["pain " * 130 + "[Y]"]), probing.candidates(), 3), ""
        )
