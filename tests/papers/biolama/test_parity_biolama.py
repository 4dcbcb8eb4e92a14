"""BioLAMA's manual prompts: its decoder and its evaluator, against the released code."""

import json
import math
import shutil
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from helpers import parity
from medprobe import benchmarks
from medprobe.core.answers import biolama
from medprobe.engine.decoding import merge_by_rule, merge_by_text
from medprobe.methods.xfactr import Xfactr

OUTPUTS = parity.read("biolama", "outputs")
MODELS = [name for name in OUTPUTS if name != "evaluator"]
RELEASED = {"length_normalisation": False, "equal": "text"}
KINDS = {"as_released": {**RELEASED, "bias": "subtracted"}, "bias_kept": RELEASED, "ours": {}}
TOLERANCE = 5e-4  # of a probability


@pytest.fixture(scope="session")
def released_data(tmp_path_factory):
    """A project's data folder with the released files as one of BioLAMA's sources."""
    data = tmp_path_factory.mktemp("data")
    shutil.copytree(parity.FOLDER / "biolama" / "data", data / "biolama" / "wikidata")
    return data


@cache
def predicted(data: Path, model: str, kind: str) -> dict[str, pd.DataFrame]:
    """All predictions of each query, by its id in the file."""
    builder = benchmarks.find("biolama")
    tables = builder.build(data, builder.settings(sources=("wikidata",)), 0)
    settings = Xfactr.Settings(decodings=("confidence",), masks=10, **KINDS[kind])
    prober = Xfactr(parity.folder(model), settings, parity.ENGINE, 0)
    parts = [prober.predict(task, "confidence") for task in prober.tasks(tables, 50)]
    rows = pd.concat(parts)
    return {query.rpartition(":")[2]: part for query, part in rows.groupby("query_id")}


def released(model: str, kind: str = "as_released") -> dict[str, dict]:
    """Their stable queries."""
    relations = OUTPUTS[model][kind]["relations"].values()
    every = {name: query for of in relations for name, query in of["queries"].items()}
    return {name: query for name, query in every.items() if query["stable"]}


def same_five(ranked: pd.DataFrame, query: dict) -> bool:
    return ranked["prediction"].tolist()[:5] == [top["text"] for top in query["top"]]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["as_released", "bias_kept"])
def test_the_five_best_texts_and_their_probabilities_are_the_same(released_data, model, kind):
    predictions = predicted(released_data, model, kind)
    for name, query in released(model, kind).items():
        assert same_five(predictions[name], query), name
        scores = [math.exp(score) for score in predictions[name]["score"][:5]]
        assert scores == pytest.approx([top["prob"] for top in query["top"]], abs=TOLERANCE)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["as_released", "bias_kept"])
def test_the_right_texts_stand_at_the_same_places_among_the_first_five(released_data, model, kind):
    predictions = predicted(released_data, model, kind)
    for name, query in released(model, kind).items():
        places = [rank - 1 for rank in predictions[name].loc[predictions[name]["hit"], "rank"]]
        same = [place for place in query["hits"] if place < 5]
        assert [place for place in places if place < 5] == same, name


@pytest.mark.parametrize("model", MODELS)
def test_macro_accuracy_is_the_printed_one(released_data, model):
    for kind in ("as_released", "bias_kept"):
        theirs = OUTPUTS[model][kind]
        every = [query for of in theirs["relations"].values() for query in of["queries"].values()]
        if not all(query["stable"] for query in every):
            continue
        for k in (1, 5):
            accuracies = []
            for relation in theirs["relations"].values():
                hits = [
                    bool(predicted(released_data, model, kind)[name]["hit"][:k].any())
                    for name in relation["queries"]
                ]
                accuracies.append(sum(hits) / len(hits))
                assert accuracies[-1] == pytest.approx(relation[f"acc_at_{k}"], abs=1e-5)
            macro = 100 * sum(accuracies) / len(accuracies)
            assert macro == pytest.approx(theirs[f"macro_acc_at_{k}_percent"], abs=0.006)


def test_prompts_and_answers_are_those_that_the_released_code_reads(released_data):
    builder = benchmarks.find("biolama")
    tables = builder.build(released_data, builder.settings(sources=("wikidata",)), 0)
    queries = tables.queries.set_index(tables.queries["query_id"].str.rpartition(":")[2])
    for model in MODELS:
        for relation in OUTPUTS[model]["as_released"]["relations"].values():
            for name, query in relation["queries"].items():
                row = queries.loc[name]
                assert row["prompt"] == query["prompt"]
                assert {answer.lower() for answer in row["answers"]} == set(query["golds"])


def test_a_name_is_known_in_every_form_of_it_and_another_one_is_not():
    """Hyphens are taken out and leave no blank, so that one in place of a blank makes another."""
    forms = parity.read("biolama", "variants")
    for path in sorted((parity.FOLDER / "biolama/data").glob("triples_processed/*/test.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            for number, label in enumerate(row["obj_labels"]):
                form = forms[f"{row['uuid']}-{number}"]
                changed = form["variant"] in ("other word", "other end", "hyphen")
                same = not changed or label == form["name"]
                assert (biolama(label) == biolama(form["name"])) == same, (label, form)


CASES = parity.read("biolama", "evaluator_inputs")


def hits(case: dict, ours: bool) -> list[int]:
    """The places from 0 of what is right in one written case."""
    right = {biolama(gold) for gold in case["golds"]}
    named = [(text, score, biolama(text) in right) for text, score in case["predictions"]]
    hit_ranks = (
        merge_by_text(named, len(named))
        if ours
        else merge_by_rule(case["predictions"], case["golds"], biolama)
    )
    return [i for i, (*_, hit) in enumerate(hit_ranks) if hit]


def test_the_evaluator_gives_the_same_hits_and_accuracies():
    theirs = OUTPUTS["evaluator"]
    ours = {case["id"]: hits(case, ours=False) for case in CASES}
    assert ours == {name: case["hits"] for name, case in theirs["cases"].items()}
    for k, accuracy in enumerate(theirs["acc_at_k"], start=1):
        our_accuracy = sum(min(places, default=k) < k for places in ours.values()) / len(CASES)
        assert our_accuracy == pytest.approx(accuracy, abs=1e-5)
