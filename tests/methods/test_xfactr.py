import pandas as pd
import pytest
import torch
import transformers

from helpers import probing
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.settings import parse_section
from medprobe.engine import masked
from medprobe.methods.xfactr import DECODINGS, Xfactr

ANSWERS = ("pain", "acute renal failure")


def method(folder, budget=8192, **settings):
    chosen = Xfactr.Settings(**settings)
    return Xfactr(folder, chosen, EngineParams(token_budget=budget), 0)


BEAM = 5


def slow_options(initial, best, open_places):
    """The ways to extend a beam, each a list of (place, how manieth best token comes there)."""
    if initial == "independent":
        return [[(place, b) for place in open_places] for b in range(BEAM)]
    if initial == "order":
        return [[(open_places[0], b)] for b in range(BEAM)]
    pairs = [(place, b) for place in open_places for b in range(BEAM)]
    pairs.sort(key=lambda pair: -best[pair[0]].values[pair[1]].item())
    return [[pair] for pair in pairs[:BEAM]]


def slow_input(ids, logs, refinement, mask, turn):
    """What the model reads to refine a complete beam."""
    slot = list(logs)
    least = min(slot, key=lambda place: logs[place])
    place = least if refinement == "confidence" else slot[turn % len(slot)]
    return [mask if i == place else token for i, token in enumerate(ids)]


def slow_beams(network, query, count, decoding, steps):
    """The final beams of one prompt with `count` masks: (tokens, log-probabilities) lists.

    One input at a time, head over all positions, loops as the paper's figure has them.
    """
    tokenizer, model = network
    initial, _, refinement = decoding.partition("+")
    mask = tokenizer.mask_token_id
    empty = probing.masked_ids(tokenizer, query.prompt, count)
    start = empty.index(mask)
    slot = range(start, start + count)
    beams = [(empty, {place: 0.0 for place in slot})]
    turn, modified = 0, False
    for _ in range(steps):
        complete = mask not in beams[0][0]
        if complete and not refinement:
            break
        if complete and refinement == "order" and turn % count == 0:
            modified = False
        grown = []
        for ids, logs in beams:
            read = slow_input(ids, logs, refinement, mask, turn) if complete else ids
            predicted = probing.log_probs(model, read)
            predicted[:, tokenizer.all_special_ids] = float("-inf")
            open_places = [place for place in slot if read[place] == mask]
            best = {place: predicted[place].topk(BEAM) for place in open_places}
            for option in slow_options(initial, best, open_places):
                new_ids, new_logs = list(ids), dict(logs)
                for place, b in option:
                    token = best[place].indices[b].item()
                    if token != new_ids[place]:
                        new_ids[place] = token
                        new_logs[place] = best[place].values[b].item()
                if new_ids not in [other for other, _ in grown]:
                    grown.append((new_ids, new_logs))
        grown.sort(key=lambda item: -sum(item[1].values()))
        same = [ids for ids, _ in grown[:BEAM]] == [ids for ids, _ in beams]
        beams = grown[:BEAM]
        if complete and refinement == "order":
            turn += 1
            modified = modified or not same
            if not modified and turn % count == 0:
                break
        elif same:
            break
    return [([ids[place] for place in slot], list(logs.values())) for ids, logs in beams]


def slow(folder, queries, decoding, *, normalised=True, masks=5, k=10):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    rows = []
    for query in queries.itertuples():
        answers = [probing.piece_ids(tokenizer, query.prompt, name) for name in query.answers]
        best, right = {}, {}  # the best score of a text, and of a right filling that reads so
        for count in range(1, masks + 1):
            for ids, logs in slow_beams((tokenizer, model), query, count, decoding, 10):
                text = tokenizer.decode(ids).strip()
                score = sum(logs) / (count if normalised else 1)
                best[text] = max(score, best.get(text, score))
                if ids in answers or text in query.answers:
                    right[text] = max(score, right.get(text, score))
        ranked = sorted(best, key=lambda t: (-best[t], t))[:k]
        for rank, text in enumerate(ranked, start=1):
            hit = right.get(text, float("-inf")) >= best[ranked[-1]]
            rows.append((decoding, "", query.query_id, rank, text, best[text], hit))
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score", "hit"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    ("arch", "decoding"),
    [*(("bert", decoding) for decoding in DECODINGS), *((a, "confidence") for a in probing.MASKED)],
)
def test_equals_the_slow_implementation(arch, decoding, tiny_model):
    queries = probing.queries(probing.PROMPTS[:2], ANSWERS)
    prober = method(tiny_model(arch), decodings=(decoding,), masks=4)
    predictions = prober.predict(probing.task(queries, probing.candidates(), 10), decoding)
    probing.same(predictions, slow(tiny_model(arch), queries, decoding, masks=4))


def test_lengths_can_compete_by_sum(tiny_model):
    queries = probing.queries(probing.PROMPTS, ANSWERS)
    prober = method(tiny_model("bert"), length_normalisation=False)
    predictions = prober.predict(probing.task(queries, probing.candidates(), 10), "confidence")
    expected = slow(tiny_model("bert"), queries, "confidence", normalised=False)
    probing.same(predictions, expected)


def test_as_biolama_texts_are_equal_by_the_rule_alone(tiny_model):
    plain = {"masks": 2, "length_normalisation": False}
    queries = probing.queries(probing.PROMPTS[:1], ["no such answer"])
    first = method(tiny_model("bert"), **plain).predict(
        probing.task(queries, probing.candidates(), 10), "confidence"
    )
    text = first["prediction"][0]

    def rule(name):
        return "same" if name in first["prediction"][:3].tolist() else name

    task = probing.task(queries, probing.candidates(), 3, rule)
    predictions = method(tiny_model("bert"), equal="text", **plain).predict(task, "confidence")
    assert predictions["prediction"].tolist()[0] == text.removeprefix("##")
    assert predictions["prediction"].nunique() == 3


def test_as_biolama_the_tokens_of_an_answer_alone_are_no_hit(tiny_model):
    queries = probing.queries(probing.PROMPTS[:1], ["no such answer"])
    task = probing.task(queries, probing.candidates(), 10)
    names_written = method(tiny_model("bert"), masks=1).predict(task, "confidence")["prediction"]
    text = next(text for text in names_written if "a" in text and not text.startswith("##"))
    accented = probing.queries(probing.PROMPTS[:1], [text.replace("a", "á")])  # the same tokens
    task = probing.task(accented, probing.candidates(), 10)
    for equal, hits in (("tokens", [text]), ("text", [])):
        rows = method(tiny_model("bert"), masks=1, beam=10, equal=equal).predict(task, "confidence")
        assert rows.loc[rows["hit"], "prediction"].tolist() == hits


@pytest.mark.parametrize("arch", probing.MASKED)
def test_the_bias_of_the_head_is_subtracted_while_it_decodes(arch, tiny_model):
    task = probing.task(probing.queries(probing.PROMPTS[:1]), probing.candidates(), 3)
    plain, biased_prober, subtracted = (
        method(tiny_model(arch), bias=bias) for bias in ("kept", "kept", "subtracted")
    )
    drawn = torch.randn(len(head(plain).bias), generator=torch.manual_seed(0))
    with torch.no_grad():
        head(plain).bias.zero_()
        head(biased_prober).bias.copy_(drawn)
        head(subtracted).bias.copy_(drawn)
    subtracted_predictions, biased, expected = (
        xfactr.predict(task, "confidence") for xfactr in (subtracted, biased_prober, plain)
    )
    pd.testing.assert_frame_equal(subtracted_predictions, expected)
    assert subtracted_predictions["prediction"].tolist() != biased["prediction"].tolist()
    assert torch.equal(head(subtracted).bias, drawn)


def head(prober):
    return prober.model.model.get_output_embeddings()


@pytest.mark.parametrize("decoding", ["confidence", "order", "independent"])
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_dropping_beams_that_cannot_win_changes_nothing(decoding, normalised, k, tiny_model):
    queries = probing.queries(probing.PROMPTS[:2], ANSWERS)
    prober = method(tiny_model("bert"), length_normalisation=normalised)
    predictions = prober.predict(probing.task(queries, probing.candidates(), k), decoding)
    probing.same(
        predictions, slow(tiny_model("bert"), queries, decoding, normalised=normalised, k=k)
    )


def test_beams_that_cannot_win_are_not_read(tiny_model, monkeypatch):
    read = []
    run = masked.log_probs
    monkeypatch.setattr(
        masked,
        "log_probs",
        lambda model, rows, *rest: read.append(len(rows)) or run(model, rows, *rest),
    )
    queries = probing.queries(probing.PROMPTS[:1], ANSWERS)
    for k in (25, 1):  # 25: all five beams of five lengths
        prober = method(tiny_model("bert"), length_normalisation=False)
        prober.predict(probing.task(queries, probing.candidates(), k), "confidence")
    every, few = sum(read[:5]), sum(read[5:])
    assert few < every / 2


def test_decoded_texts_can_be_matched_with_the_nearest_candidates(tiny_model):
    queries = probing.queries(probing.PROMPTS[:2], ["influenza"])
    candidates = probing.candidates()
    plain = method(tiny_model("bert")).predict(probing.task(queries, candidates, 25), "confidence")
    predictions = method(tiny_model("bert"), match="nearest").predict(
        probing.task(queries, candidates, 5), "confidence"
    )
    encoder = transformers.AutoModel.from_pretrained(tiny_model("bert")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("bert"))

    def vector(text):
        return encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0].detach()

    vectors = {name: vector(name) for name in probing.NAMES}
    for query, rows in plain.groupby("query_id"):
        best = {}
        for row in rows.itertuples():
            at = vector(row.prediction)
            apart = {name: (vectors[name] - at).norm().item() for name in vectors}
            best.setdefault(min(vectors, key=lambda name: (round(apart[name], 5), name)), row.score)
        of_query = predictions[predictions["query_id"] == query]
        assert of_query["prediction"].tolist() == list(best)[:5]
        assert of_query["score"].tolist() == pytest.approx(list(best.values())[:5])
        assert of_query["hit"].tolist() == [name == "influenza" for name in list(best)[:5]]


@pytest.mark.parametrize("decoding", ["confidence", "order+order", "independent+confidence"])
def test_batch_size_and_neighbours_do_not_matter(decoding, tiny_model):
    queries = probing.queries(probing.PROMPTS, ANSWERS)
    together = method(tiny_model("bert"), decodings=(decoding,))
    alone = method(tiny_model("bert"), budget=1, decodings=(decoding,))
    predictions = together.predict(probing.task(queries, probing.candidates(), 10), decoding)
    parts = [
        alone.predict(probing.task(queries.iloc[[i]], probing.candidates(), 10), decoding)
        for i in range(4)
    ]
    probing.same(predictions, pd.concat(parts, ignore_index=True))


def test_a_prompt_of_two_subsets_is_decoded_once(tiny_model, monkeypatch):
    prober = method(tiny_model("bert"))
    full, hard = probing.queries(probing.PROMPTS), probing.queries(probing.PROMPTS[1:3])
    first = prober.predict(probing.task(full, probing.candidates(), 10), "confidence")
    monkeypatch.setattr(masked, "log_probs", lambda model, rows, *rest: [] if not rows else 1 / 0)
    again = prober.predict(probing.task(hard, probing.candidates(), 10), "confidence")
    expected = first[first["query_id"].isin(["q1", "q2"])]["prediction"]
    assert again["prediction"].tolist() == expected.tolist()


def test_an_answer_with_exactly_these_tokens_is_a_hit(tiny_model):
    queries = probing.queries(probing.PROMPTS[:1], ANSWERS)
    first = method(tiny_model("bert")).predict(
        probing.task(queries, probing.candidates(), 1), "confidence"
    )
    answer = first["prediction"][0].upper()  # an uncased tokenizer reads it as the prediction
    queries = probing.queries(probing.PROMPTS[:1], [answer])
    predictions = method(tiny_model("bert")).predict(
        probing.task(queries, probing.candidates(), 5), "confidence"
    )
    assert predictions["hit"].tolist() == [True, False, False, False, False]


def test_a_pass_is_a_decoding_and_a_variant(tiny_model):
    prober = method(tiny_model("bert"))
    assert prober.passes() == ["confidence", "order+order"]
    queries = probing.queries(probing.PROMPTS[:1], ANSWERS)
    variants = [
        prober.predict(probing.task(queries, probing.candidates(), 1), which)["variant"][0]
        for which in prober.passes()
    ]
    assert variants == prober.passes()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"decodings": ["best"]}, "no decoding best"), ({"masks": 11}, "at least as many as masks")],
)
def test_settings_that_cannot_work_are_refused(settings, problem):
    with pytest.raises(BadInput, match=problem):
        parse_section(Xfactr.Settings, settings, "params.yaml: methods.xfactr")
