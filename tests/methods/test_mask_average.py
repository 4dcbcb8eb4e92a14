from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from helpers import probing
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.engine import masked
from medprobe.engine.ranking import best_indices
from medprobe.engine.slots import answer_ids
from medprobe.methods.mask_average import MaskAverage


def method(folder: Path, budget: int = 8192, **settings: Any) -> MaskAverage:
    chosen = MaskAverage.Settings(**settings)
    return MaskAverage(folder, chosen, EngineParams(token_budget=budget), 0)


def slow(folder: Path, queries: pd.DataFrame, names: list[str], k: int) -> pd.DataFrame:
    """One candidate at a time, head over all positions."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    rows = []
    for query in queries.itertuples():
        scores = {}
        for name in names:
            pieces = probing.piece_ids(tokenizer, query.prompt, name)
            ids = probing.masked_ids(tokenizer, query.prompt, len(pieces))
            log_probs = probing.log_probs(model, ids)
            at = [i for i, token in enumerate(ids) if token == tokenizer.mask_token_id]
            scores[name] = sum(
                log_probs[p, t].item() for p, t in zip(at, pieces, strict=True)
            ) / len(pieces)
        for variant, among in (("", names), ("relation", query.answers)):
            ranked = sorted(among, key=lambda name: (-scores[name], name))[:k]
            for rank, name in enumerate(ranked, start=1):
                row = (variant, "", query.query_id, rank, name, scores[name])
                rows.append(row)
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize("arch", probing.MASKED)
def test_equals_the_slow_implementation(arch, tiny_model):
    queries = probing.queries()
    predictions = method(tiny_model(arch)).predict(
        probing.task(queries, probing.candidates(), 5), ""
    )
    ranked = predictions[predictions["rank"] <= 5].reset_index(
        drop=True
    )  # behind them what equals the last
    probing.same(ranked, slow(tiny_model(arch), queries, list(probing.NAMES), 5))


def test_as_released_it_is_the_mean_over_padding_of_raw_scores_at_one_mask(tiny_model):
    folder, queries = tiny_model("bert"), probing.queries()
    released = method(folder, script="released")
    task = probing.task(queries, probing.candidates([*probing.NAMES, "Velotrine"]), 20)
    predictions = released.predict(task, "")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    names = sorted([*probing.NAMES, "Velotrine"])
    padded = tokenizer(names, add_special_tokens=False, padding=True, return_tensors="pt")
    for query in queries.itertuples():
        read = tokenizer(query.prompt.replace("[Y]", tokenizer.mask_token), return_tensors="pt")
        place = read["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            logits = model(**read).logits[0, place]
        scores = (logits[padded["input_ids"]] * padded["attention_mask"]).mean(dim=1)
        expected = pd.Series(scores.tolist(), index=names).sort_values(ascending=False)
        rows = predictions[
            (predictions["query_id"] == query.query_id) & (predictions["variant"] == "")
        ]
        assert rows["prediction"].map(expected).is_monotonic_decreasing
        assert np.allclose(rows["score"], rows["prediction"].map(expected), atol=1e-5)
        own_rows = predictions[
            (predictions["query_id"] == query.query_id) & (predictions["variant"] == "relation")
        ]
        assert set(own_rows["prediction"]) == {*query.answers, query.subject}


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_batch_size_and_order_do_not_matter(arch, tiny_model):
    folder = tiny_model(arch)
    once = method(folder).predict(probing.task(probing.queries(), probing.candidates(), 10), "")
    other = method(folder, budget=1).predict(
        probing.task(probing.queries(), probing.candidates(probing.NAMES[::-1]), 10), ""
    )
    probing.same(other, once, 1e-5)


def test_names_are_tokenised_once_for_all_relations(tiny_model, monkeypatch):
    tasks = [
        probing.task(probing.queries(["Velotrine treats [Y] .", prompt]), offered, 5)
        for offered in (probing.candidates(), probing.candidates(probing.NAMES[:4]))
        for prompt in ("Velotrine prevents [Y] .", "Velotrine causes [Y] .")
    ]
    alone = [method(tiny_model("bert")).predict(task, "") for task in tasks]
    tokenised: list[int] = []
    monkeypatch.setattr(
        masked, "answer_ids", lambda *args: tokenised.append(len(args[1])) or answer_ids(*args)
    )
    probed = method(tiny_model("bert"))
    for task, expected in zip(tasks, alone, strict=True):
        pd.testing.assert_frame_equal(probed.predict(task, ""), expected)
    assert tokenised == [len(probing.NAMES), 4]  # once for each set of names


def test_names_that_an_uncased_model_reads_alike_tie_and_go_by_name(tiny_model):
    names = ["Karsten Syndrome", "KARSTEN SYNDROME", "Karsten syndrome"]
    predictions = method(tiny_model("bert")).predict(
        probing.task(probing.queries(), probing.candidates(names), 3), ""
    )
    first = predictions[(predictions["query_id"] == "q0") & (predictions["variant"] == "")]
    assert first["prediction"].tolist() == sorted(names)
    assert first["score"].nunique() == 1


def test_a_candidate_too_long_for_the_window_is_named(tiny_model):
    long = "hepatitis " * 80
    with pytest.raises(BadInput, match=r"query q0: with .hepatitis .* the model reads 128"):
        method(tiny_model("bert")).predict(
            probing.task(probing.queries(), probing.candidates([long]), 3), ""
        )


@pytest.mark.parametrize("name", ["", " ", "\u00ad"])
def test_a_candidate_without_tokens_is_refused(name, tiny_model):
    with pytest.raises(BadInput, match="tokenises to nothing"):
        method(tiny_model("bert")).predict(
            probing.task(probing.queries(), probing.candidates([name]), 3), ""
        )


@pytest.mark.parametrize("prompt", ["no slot", "[Y] and [Y]", "[MASK] and [Y]"])
def test_a_prompt_needs_exactly_one_slot(prompt, tiny_model):
    with pytest.raises(BadInput, match=r"query q0: the prompt"):
        method(tiny_model("bert")).predict(
            probing.task(probing.queries([prompt]), probing.candidates(), 3), ""
        )


def test_a_model_without_head_is_refused(tiny_model):
    with pytest.raises(BadInput, match="missing"):
        method(tiny_model("encoder"))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 12))
def test_best_is_a_stable_sort(scores, k):
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    assert best_indices(np.array(scores, dtype=float), k).tolist() == expected
