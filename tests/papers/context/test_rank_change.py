"""Rank change: ranks as slow, obvious code finds them, whatever the batch; the copy control."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import FolderOf, probing, tiny
from helpers.typos import check_typo, edited, own_params
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.progress import listener
from medprobe.core.tables import DISTRACTOR, BenchmarkTables
from medprobe.engine import masked
from medprobe.engine.load import load
from medprobe.methods.xfactr import Xfactr
from medprobe.papers.context.methods.rank_change import COPY, RankChange, rank_of

PROMPTS = (
    "Velotrine may treat [Y] .",
    "pain, influenza. Velotrine may treat [Y] .",
    "influenza. Velotrine may treat [Y] .",
    "Velotrine may treat [Y] .",
    "acute renal failure and chronic pain in adults, influenza. Velotrine may treat [Y] .",
)
SHOWN_NAMES: list[list[str]] = [
    [],
    ["influenza", "Chronic pain"],
    ["influenza"],
    [],
    ["influenza", "Chronic pain", "acute renal failure"],
]


def steps() -> pd.DataFrame:
    tracked = [["influenza", "Chronic pain"], ["SNCA"], ["SNCA", "Naïve fever"]]
    return probing.queries(PROMPTS).assign(
        tracked=[tracked[i % 3] for i in range(len(PROMPTS))], shown=SHOWN_NAMES
    )


def method(folder: Path, budget: int = 8192, seed: int = 1) -> RankChange:
    engine = EngineParams(device="cpu", token_budget=budget)
    return RankChange(folder, RankChange.Settings(), engine, seed)


def ask(
    prober: RankChange, queries: pd.DataFrame, names: pd.DataFrame | None = None, pass_: str = ""
) -> pd.DataFrame:
    names = probing.candidates() if names is None else names
    [task] = prober.tasks(BenchmarkTables(queries, names), 10)
    return prober.predict(task, pass_)


def ranked(scores: dict[str, float]) -> dict[str, int]:
    """Ranks by sorting everything, equal scores by name."""
    order = sorted(scores, key=lambda name: (-scores[name], name))
    return {name: rank for rank, name in enumerate(order, start=1)}


def masked_score(model: Any, prompt: str, name: str) -> float:
    pieces = probing.piece_ids(model.tokenizer, prompt, name)
    ids = probing.masked_ids(model.tokenizer, prompt, len(pieces))
    log_probs = probing.log_probs(model.model, ids)
    places = [at for at, token in enumerate(ids) if token == model.tokenizer.mask_token_id]
    return float(np.mean([log_probs[at, piece] for at, piece in zip(places, pieces, strict=True)]))


def causal_score(model: Any, prompt: str, name: str) -> float:
    before, after = prompt.split(" [Y]")
    texts = [before, before + " " + name + after]
    context, whole = (probing.causal_ids(model.tokenizer, text) for text in texts)
    log_probs = probing.log_probs(model.model, whole)
    rest = range(len(context), len(whole))
    return float(np.mean([log_probs[at - 1, whole[at]] for at in rest]))


@pytest.mark.parametrize("arch", ["bert", *probing.MASKED, *probing.CAUSAL])
def test_ranks_are_those_of_sorting_all_candidates(tiny_model: FolderOf, arch: str) -> None:
    queries, folder = steps().head(5 if arch in ("bert", "gpt2") else 1), tiny_model(arch)
    answers = ask(method(folder), queries)
    probing.same(ask(method(folder, budget=40), queries), answers)
    written = arch in tiny.CAUSAL
    model = load(folder, "causal" if written else "masked", EngineParams(device="cpu"))
    score = causal_score if written else masked_score
    for query, part in answers.groupby("query_id"):
        row = queries.set_index("query_id").loc[query]
        scores = {name: score(model, row["prompt"], name) for name in probing.NAMES}
        expected = ranked(scores)
        assert set(part["prediction"]) == set(row["tracked"])
        for table_row in part.itertuples():
            assert table_row.rank == expected[table_row.prediction]
            assert table_row.score == pytest.approx(scores[table_row.prediction], abs=1e-4)


def test_equal_prompts_are_scored_once(
    tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = masked.mean_log_probs

    def spy(model: Any, prompts: list[str], *rest: Any) -> np.ndarray:
        seen.extend(prompts)
        return real(model, prompts, *rest)

    monkeypatch.setattr(masked, "mean_log_probs", spy)
    ask(method(tiny_model("bert")), steps())
    assert sorted(seen) == sorted(set(PROMPTS))


def test_the_progress_line_counts_the_queries_of_each_part(
    tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medprobe.papers.context.methods.rank_change.PROMPTS_AT_ONCE", 3)
    chosen = RankChange.Settings(rankings=("candidates", "decoding"), masks=2)
    prober = RankChange(tiny_model("bert"), chosen, EngineParams(device="cpu"), 1)
    seen: list[tuple[int, str]] = []
    token = listener.set(lambda count, unit: seen.append((count, unit)))
    for pass_ in prober.passes():
        seen.clear()
        ask(prober, steps(), pass_=pass_)
        counts = [count for count, unit in seen if unit == "queries"]
        assert len(counts) == 2
        assert sum(counts) == len(PROMPTS)
    listener.reset(token)


def test_candidates_of_the_relation_are_ranked_where_there_are_any(tiny_model: FolderOf) -> None:
    candidates = probing.candidates()
    few = candidates["name"].isin(["influenza", "Chronic pain", "SNCA", "Naïve fever"])
    typed = candidates.assign(type=np.where(few, "r", "other"))
    assert ask(method(tiny_model("bert")), steps(), typed)["rank"].max() <= 4


def test_distractors_are_not_ranked(tiny_model: FolderOf) -> None:
    candidates = probing.candidates()
    added = candidates.assign(name="a " + candidates["name"], type=DISTRACTOR)
    answers = ask(method(tiny_model("bert")), steps(), pd.concat([candidates, added]))
    pd.testing.assert_frame_equal(answers, ask(method(tiny_model("bert")), steps()))


def test_each_relation_of_a_subset_is_a_task(tmp_path: Path) -> None:
    queries = pd.concat([steps(), steps().assign(relation="s")], ignore_index=True)
    candidates = probing.candidates().assign(type=["r"] * 4 + ["s"] * 6)
    tasks = method(tmp_path).tasks(BenchmarkTables(queries, candidates), 10)
    assert [task.candidates["type"].unique().tolist() for task in tasks] == [["r"], ["s"]]
    assert [task.queries["relation"].unique().tolist() for task in tasks] == [["r"], ["s"]]


def test_a_prompt_beyond_the_window_is_refused(tiny_model: FolderOf) -> None:
    prompts = [f"{'pain ' * 200} Velotrine may treat [Y] ."]
    for arch in ("bert", "gpt2"):
        with pytest.raises(BadInput, match=r"query q0: .*the model reads 128"):
            ask(method(tiny_model(arch)), probing.queries(prompts).assign(shown=[[]]))


def test_the_control_ranks_what_the_prompt_holds_first(tmp_path: Path) -> None:
    queries = steps().assign(tracked=[list(probing.NAMES)] * len(PROMPTS))
    answers = ask(method(tmp_path), queries, pass_=COPY)
    assert set(answers["variant"]) == {COPY}
    for query, part in answers.groupby("query_id"):
        shown_names = SHOWN_NAMES[int(query[1:])]
        ordered = part.sort_values("rank")
        assert ordered["rank"].tolist() == list(range(1, 11))
        assert set(ordered["prediction"].head(len(shown_names))) == set(shown_names)


def test_the_control_draws_by_seed_and_prompt_alone(tmp_path: Path) -> None:
    first = ask(method(tmp_path, seed=1), steps(), pass_=COPY)
    again = ask(method(tmp_path, seed=1), steps().iloc[::-1], pass_=COPY)
    assert method(tmp_path).inputs(COPY) == []
    pd.testing.assert_frame_equal(
        first.sort_values(["query_id", "prediction"], ignore_index=True),
        again.sort_values(["query_id", "prediction"], ignore_index=True),
    )
    other = ask(method(tmp_path, seed=2), steps(), pass_=COPY)
    assert first["rank"].tolist() != other["rank"].tolist()


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5]), min_size=1, max_size=12))
def test_counting_gives_the_ranks_of_sorting(scores: list[float]) -> None:
    names = [f"{number:02d}" for number in range(len(scores))]
    expected = ranked(dict(zip(names, scores, strict=True)))
    ranks = rank_of(np.array(scores), np.arange(len(scores)))
    assert ranks.tolist() == [expected[name] for name in names]


def decode(folder: Path, queries: pd.DataFrame, **settings: Any) -> pd.DataFrame:
    chosen = RankChange.Settings(rankings=("decoding",), copy_control=False, **settings)
    prober = RankChange(folder, chosen, EngineParams(device="cpu"), 1)
    assert prober.passes() == ["decoding"]
    return ask(prober, queries, pass_="decoding")


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_by_decoding_a_rank_is_the_place_among_biolamas_texts(
    tiny_model: FolderOf, arch: str
) -> None:
    """As the method of BioLAMA's manual prompts, X-FACTR's `confidence` with its decoder's
    settings, lists them; what it does not list comes after the last place that there can be."""
    folder, masks, beam = tiny_model(arch), 3, 4
    shared = {"masks": masks, "beam": beam, "length_normalisation": False, "bias": "subtracted"}
    chosen = Xfactr.Settings(decodings=("confidence",), equal="text", **shared)  # type: ignore[arg-type]
    xfactr = Xfactr(folder, chosen, EngineParams(device="cpu"), 1)
    queries = steps()
    [task] = xfactr.tasks(BenchmarkTables(queries, probing.candidates()), masks * beam)
    listed = xfactr.predict(task, "confidence")
    texts = listed.groupby("query_id")["prediction"].agg(list)
    queries["tracked"] = [
        [texts[query][0], texts[query][-1].upper(), "not among them"]
        for query in queries["query_id"]
    ]
    table = decode(folder, queries, masks=masks, beam=beam).set_index(["query_id", "prediction"])
    for query, names in texts.items():
        assert len(names) > 3
        scores = listed[listed["query_id"] == query]["score"].tolist()
        first, last = table.loc[(query, names[0])], table.loc[(query, names[-1].upper())]
        assert (first["rank"], last["rank"]) == (1, len(names))
        assert (first["score"], last["score"]) == pytest.approx((scores[0], scores[-1]))
        assert table.loc[(query, "not among them"), "rank"] == masks * beam + 1


def test_a_model_that_fills_no_masks_is_not_ranked_by_decoding(tiny_model: FolderOf) -> None:
    with pytest.raises(BadInput, match=r"fills masks.*; set rankings: \[candidates\]"):
        decode(tiny_model("gpt2"), steps())


def test_a_prompt_without_room_for_the_masks_is_refused(tiny_model: FolderOf) -> None:
    queries = probing.queries([f"{'pain ' * 122} [Y] ."])
    with pytest.raises(BadInput, match=r"query q0: .*the model reads 128"):
        decode(tiny_model("bert"), queries)


def test_the_control_is_refused_where_no_context_is_shown(tiny_model: Callable[..., Path]) -> None:
    queries = steps().drop(columns="shown")
    with pytest.raises(BadInput, match=r"no column shown.*; set copy_control: false"):
        ask(method(tiny_model("bert")), queries)


def test_models_that_write_the_name_alone_are_refused(tmp_path: Path) -> None:
    content = edited(own_params(), "methods/seq2seq/rank_change", {})
    check_typo(tmp_path, content, "T5's family writes the name alone")
