"""Contrastive-Probe against a search by hand, and known answers on real data."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from helpers import FolderOf, probing, tiny
from medprobe.cli.ask import answers, ask
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Params
from medprobe.core.settings import parse_section
from medprobe.core.tables import BenchmarkTables
from medprobe.core.variants import swept_settings
from medprobe.engine.load import load
from medprobe.papers.medlama.methods.contrastive import Contrastive
from medprobe.papers.medlama.rewired import REWIRED, Pass

NAMES = [
    "Aspirin",
    "aspirin",
    "hepatitis B infection",
    "SNCA gene",
    "BRX2",
    "chronic pain",
    "type 2 diabetes mellitus",
    "Karsten syndrome",
    "platelet aggregation",
    "fracture of bone",
]
CANDIDATES = pd.DataFrame(
    {
        "name": NAMES,
        "id": [f"C{i}" for i in range(len(NAMES))],
        "type": ["answer" if i % 2 else "" for i in range(len(NAMES))],
        "subset": "full",
    }
)
QUERIES = pd.DataFrame(
    {
        "query_id": ["q1", "q2", "q3"],
        "benchmark": "medlama",
        "relation": "may_treat",
        "subject": ["Aspirin", "BRX2", "chronic pain"],
        "subject_id": ["C0", "C4", "C5"],
        "prompt": ["Aspirin may treat [Y] .", "BRX2 is in [Y] .", "[Y] treats chronic pain ."],
        "answers": [["chronic pain", "fracture of bone"], ["BRX2"], ["aspirin"]],
        "answer_ids": [["C5", "C9"], ["C4"], ["C1"]],
        "subset": "full",
    }
)


SETS = [Pass("set-0"), Pass("set-1")]
FIRST_STEP = [replace(pass_, step=50) for pass_ in SETS]


def rewired(folder: Path, seed: int) -> None:
    """Stands for a checkpoint that rewiring wrote."""
    tiny.model("encoder", folder, seed)


@pytest.fixture
def prober(tiny_model: FolderOf, working_folder: Path) -> Any:
    """`prober(settings…)`: a method over a tiny model with two sets of two checkpoints each."""
    for place in range(4):
        folder = REWIRED / "bert" / f"set-{place // 2}" / f"step-{50 + place % 2 * 50}"
        rewired(folder, place + 1)

    def make(arch: str = "bert", **settings: Any) -> Contrastive:
        chosen = Contrastive.Settings(**{"sets": ("set-0", "set-1"), "step": 100, **settings})
        link = places.MODELS / arch
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(tiny_model(arch))
        return Contrastive(link, chosen, EngineParams(), 0)

    return make


@torch.no_grad()
def slow(folder: Path, names: list[str], query: str, k: int, layer: int = -1) -> list[str]:
    """One text at a time, padded as released; every distance; ties by name."""
    model = load(folder, "encoder")

    def vector(text: str, length: int) -> Any:
        tokens = model.tokenizer(
            text, padding="max_length", truncation=True, max_length=length, return_tensors="pt"
        )
        return model.model(**tokens, output_hidden_states=True).hidden_states[layer][0, 0].numpy()

    query_vector = vector(query.replace("[Y]", model.tokenizer.mask_token), 50)
    apart = {name: np.linalg.norm(query_vector - vector(name, 25)) for name in names}
    return sorted(names, key=lambda name: (apart[name].round(4), name))[:k]


def predictions(
    table: pd.DataFrame, query: str, variant: str = "original", k: int = 100
) -> list[str]:
    """The first k; behind the last one stands what equals it."""
    rows = table[(table["query_id"] == query) & (table["variant"] == variant)]
    assert list(rows["rank"]) == list(range(1, len(rows) + 1))
    assert rows["score"].iloc[k - 1 :].nunique() < 2
    return list(rows["prediction"].head(k))


@pytest.mark.parametrize("arch", [*probing.MASKED, "encoder"])
def test_ranks_equal_a_search_by_hand(prober: Any, arch: str) -> None:
    method = prober(arch)
    table = method.predict(probing.task(QUERIES, CANDIDATES, 4), Pass())
    assert len(table) >= 12
    assert set(table["replicate"]) == {""}
    for row in QUERIES.itertuples():
        expected = slow(method.checkpoint, NAMES, row.prompt, 4)
        assert predictions(table, row.query_id, k=4) == expected


LONG = " ".join(["gene"] * 60)


@pytest.mark.parametrize(
    ("prompt", "lost"),
    [
        (f"{LONG} . Aspirin may treat [Y] .", "slot and subject"),
        (f"Aspirin {LONG} may treat [Y] .", "slot"),
        (f"[Y] is treated , {LONG} , with Aspirin .", "subject"),
    ],
)
@pytest.mark.parametrize("arch", probing.MASKED)
def test_a_prompt_is_not_cut_before_its_slot_and_subject(
    prober: Any, arch: str, prompt: str, lost: str
) -> None:
    queries = QUERIES.assign(prompt=[*QUERIES["prompt"][:2], prompt], subject="Aspirin")
    task = probing.task(queries, CANDIDATES, 3)
    line = (
        rf"query q3: the prompt has \d+ tokens, of which contrastive reads 50: without its {lost}; "
    )
    with pytest.raises(BadInput, match=line + "raise query_length in params"):
        prober(arch, query_length=50).predict(task, Pass())
    with pytest.raises(BadInput, match=r"reads 1\d\d: without its .*; shorten the prompt"):
        longer = queries.assign(prompt=[prompt.replace(LONG, f"{LONG} {LONG} {LONG}")] * 3)
        prober(arch, query_length=512).predict(probing.task(longer, CANDIDATES, 3), Pass())
    table = prober(arch, query_length=100).predict(task, Pass())
    assert set(table["query_id"]) == {"q1", "q2", "q3"}


def test_what_follows_slot_and_subject_can_be_cut(prober: Any) -> None:
    queries = QUERIES.assign(prompt=[f"{prompt} {LONG}" for prompt in QUERIES["prompt"]])
    shorter = prober(query_length=50)
    table = shorter.predict(probing.task(queries, CANDIDATES, 4), Pass())
    expected = slow(shorter.checkpoint, NAMES, queries["prompt"][0], 4)
    assert predictions(table, "q1", k=4) == expected


def test_names_that_are_cut_are_counted(prober: Any, capsys: pytest.CaptureFixture[str]) -> None:
    names = pd.concat([CANDIDATES, CANDIDATES.head(2).assign(name=[LONG, f"{LONG} pain"])])
    task = probing.task(QUERIES, names, 3)
    prober().predict(task, Pass("set-0"))
    assert "bert, contrastive: 2 of 12 names are longer than candidate_length: 25" in (
        capsys.readouterr().err
    )
    prober(candidate_length=100).predict(task, Pass("set-0"))
    assert not capsys.readouterr().err


def test_sweeps_are_variants_by_their_values(prober: Any) -> None:
    """Those that are named, of sets and models that were swept; a set not meant for the model is
    left out."""
    for number, cell in enumerate(("set-0+mask_ratio-0.1", "set-0+learning_rate-1e-05"), 7):
        for step in (50, 100):
            rewired(REWIRED / "bert" / cell / f"step-{step}", number + step)
    swept = {"mask_ratio": {"0.1": None, "0.3": None}, "learning_rate": {"1e-05": None}}
    method = prober(sets=("set-0", "wiki-0", "set-1"), sweeps=swept)
    passes = [*method.passes()]
    cells = [Pass("set-0", "mask_ratio", "0.1"), Pass("set-0", "learning_rate", "1e-05")]
    points = [pass_ for cell in cells for pass_ in (cell, replace(cell, step=50))]
    first, second = FIRST_STEP
    assert passes == [*SETS, first, *points, second, Pass()]
    folder = REWIRED / "bert/set-0+mask_ratio-0.1"
    assert method.inputs(cells[0]) == [folder]  # whose steps decide which one is the main one
    assert method.inputs(replace(cells[0], step=50)) == [folder / "step-50"]
    query = QUERIES.iloc[0]
    for pass_, step, variants in (
        (cells[0], 100, ["mask_ratio-0.1", "mask_ratio-0.1-step-100"]),
        (replace(cells[0], step=50), 50, ["mask_ratio-0.1-step-50"]),
    ):
        table = method.predict(probing.task(QUERIES, CANDIDATES, 3), pass_)
        assert [*table["variant"].unique()] == variants
        assert set(table["replicate"]) == {"set-0"}
        expected = slow(folder / f"step-{step}", NAMES, query["prompt"], 3)
        for variant in variants:
            assert predictions(table, query["query_id"], variant) == expected
    rate = method.predict(probing.task(QUERIES, CANDIDATES, 3), cells[1])["variant"].iloc[0]
    assert swept_settings(rate) == {"learning_rate": 0.00001}
    assert prober(sets=("wiki-0",)).passes() == [Pass()]


def test_the_base_settings_are_a_value_of_each_sweep(prober: Any) -> None:
    """Of each set that was swept, at each step, unless the sweep names the value itself."""
    base = {"mask_ratio": 0.5, "temperature": 0.04, "layers": tiny.LAYERS}
    settings = {
        "set-0": base,
        "set-1": base | {"mask_ratio": 0.3},
        "set-0+mask_ratio-0.3": base | {"mask_ratio": 0.3},
        "set-1+mask_ratio-0.3": base | {"mask_ratio": 0.3},
        "set-0+temperature-0.1": base | {"temperature": 0.1},
    }
    for seed, (name, content) in enumerate(settings.items()):
        folder = REWIRED / "bert" / name
        for step in (50, 100) if "+" in name else ():
            rewired(folder / f"step-{step}", seed + step)
        (folder / "settings.json").write_text(json.dumps(content))
    swept = {"mask_ratio": {"0.3": None}, "temperature": {"0.1": None}}
    method = prober(sweeps=swept, read_layers=(1,))
    task = probing.task(QUERIES, CANDIDATES, 3)
    passes = [*SETS, *FIRST_STEP]
    table = pd.concat([method.predict(task, pass_) for pass_ in passes], ignore_index=True)
    steps = ("", "step-50", "step-100")
    names = {
        "set-0": [*steps, *(f"mask_ratio-0.5-{step}".rstrip("-") for step in steps)],
        "set-1": [*steps],
    }
    names["set-0"] += [f"temperature-0.04-{step}".rstrip("-") for step in steps]
    for name, variants in names.items():
        rows = table[table["replicate"] == name]
        layers = ["read_layers-1", f"read_layers-{tiny.LAYERS}"]
        assert sorted(rows["variant"].unique()) == sorted([*variants, *layers])
    rows = table[table["replicate"] == "set-0"]
    for query in QUERIES["query_id"]:
        for step in steps:
            point = f"mask_ratio-0.5-{step}".rstrip("-")
            assert predictions(rows, query, step, 3) == predictions(rows, query, point, 3)


def test_a_further_value_of_a_sweep_concerns_the_finished_parts_of_the_base_alone(
    prober: Any,
) -> None:
    """Whose points in its curve depend on the values; a worker has the same files."""
    for name in ("set-0", "set-0+mask_ratio-0.3", "set-0+mask_ratio-0.1"):
        folder = REWIRED / "bert" / name
        for step in (50, 100) if "+" in name else ():
            rewired(folder / f"step-{step}", step)
        (folder / "settings.json").write_text(json.dumps({"mask_ratio": 0.5, "layers": 2}))
    sweeps = ({"mask_ratio": {"0.3": None}}, {"mask_ratio": {"0.3": None, "0.1": None}})
    before, after = (prober(sets=("set-0",), sweeps=swept) for swept in sweeps)
    records = [f"set-0+mask_ratio-{ratio}/settings.json" for ratio in ("0.3", "0.1")]
    for pass_, paths in {
        SETS[0]: ["set-0"],
        FIRST_STEP[0]: ["set-0/step-50", "set-0/settings.json"],
    }.items():
        for method, more in ((before, records[:1]), (after, records)):
            assert method.inputs(pass_) == [REWIRED / "bert" / x for x in [*paths, *more]]
    swept = Pass("set-0", "mask_ratio", "0.3")
    for pass_ in (swept, replace(swept, step=50), Pass()):
        assert before.inputs(pass_) == after.inputs(pass_)
    task = probing.task(QUERIES, CANDIDATES, 3)
    expected = after.predict(task, FIRST_STEP[0])
    for folder in (REWIRED / "bert").glob("*/step-*"):
        if folder != REWIRED / "bert/set-0/step-50":
            shutil.rmtree(folder)
    pd.testing.assert_frame_equal(
        prober(sets=("set-0",), sweeps=sweeps[1]).predict(task, FIRST_STEP[0]), expected
    )


def test_a_model_is_left_out_of_layers_that_it_lacks(
    prober: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    task = probing.task(QUERIES, CANDIDATES, 3)
    for layers, read in (((1, 9, 12), {"read_layers-1"}), ((9, 12), set())):
        method = prober(read_layers=layers)
        tables = [method.predict(task, pass_) for pass_ in method.passes()]
        assert capsys.readouterr().out == "bert has 2 layers: left out of read_layers 9, 12\n"
        variants = {"", "step-50", "step-100", "original", "read_layers-2"}  # the last is its own
        assert set(pd.concat(tables)["variant"]) == variants | read


def test_the_old_name_of_read_layers_is_refused_in_one_line() -> None:
    choices = {"sets": ["set-0"], "layers": [3, 5]}
    with pytest.raises(BadInput) as error:
        parse_section(Contrastive.Settings, choices, "params.yaml: contrastive.medlama")
    assert str(error.value) == (
        "params.yaml: contrastive.medlama: layers can mean two things: write read_layers to read "
        "layers of the whole rewired encoder, or sweeps: {layers: ...} to rewire the first layers "
        "alone"
    )
    with pytest.raises(
        BadInput, match=r"read_layers\.0: Input should be greater than or equal to 0"
    ):
        parse_section(Contrastive.Settings, {"sets": ["set-0"], "read_layers": [-1]}, "here")


def test_passes_go_over_sets_and_checkpoints_the_chosen_step_first(prober: Any) -> None:
    method = prober(read_layers=(1,))
    assert method.passes() == [*SETS, *FIRST_STEP, Pass()]
    assert method.inputs(SETS[1]) == [REWIRED / "bert/set-1"]  # whose steps tell its own
    assert method.inputs(FIRST_STEP[1]) == [REWIRED / "bert/set-1/step-50"]
    assert method.inputs(Pass()) == [method.checkpoint]
    at_step = method.predict(probing.task(QUERIES, CANDIDATES, 3), SETS[1])
    assert set(at_step["variant"]) == {"", "step-100", "read_layers-1", "read_layers-2"}
    assert set(at_step["replicate"]) == {"set-1"}
    other = method.predict(probing.task(QUERIES, CANDIDATES, 3), FIRST_STEP[1])
    assert set(other["variant"]) == {"step-50"}
    folder = REWIRED / "bert/set-1"
    for row in QUERIES.itertuples():
        deepest = slow(folder / "step-100", NAMES, row.prompt, 3)
        for variant in ("", "step-100"):  # the step in use is a point of its curve
            assert predictions(at_step, row.query_id, variant, 3) == deepest
        first = slow(folder / "step-100", NAMES, row.prompt, 3, layer=1)
        assert predictions(at_step, row.query_id, "read_layers-1", 3) == first
        assert predictions(other, row.query_id, "step-50", 3) == slow(
            folder / "step-50", NAMES, row.prompt, 3
        )


def test_without_a_step_the_last_checkpoint_is_probed(prober: Any) -> None:
    method = prober(step=None)
    assert method.passes()[:3] == [*SETS, FIRST_STEP[0]]
    table = method.predict(probing.task(QUERIES, CANDIDATES, 3), SETS[0])
    assert "step-100" in set(table["variant"])


def test_a_set_that_is_not_named_is_not_probed(prober: Any) -> None:
    rewired(REWIRED / "bert/stale/step-7", 9)  # without the chosen step
    method = prober(sets=("set-1",))
    assert method.passes() == [SETS[1], FIRST_STEP[1], Pass()]


def test_a_step_without_checkpoint_is_refused(prober: Any) -> None:
    with pytest.raises(BadInput, match=r"no checkpoint of step 200; set step .*one of: 50, 100"):
        prober(step=200).passes()


def test_a_model_that_was_not_rewired_is_refused_where_sets_are_named(prober: Any) -> None:
    with pytest.raises(
        BadInput, match=r"rewired/roberta: the model was not rewired; run `medprobe"
    ):
        prober("roberta").passes()
    assert prober("roberta", sets=()).passes() == [Pass()]


def test_all_sets_that_the_model_is_rewired_on_are_probed_unless_some_are_named(
    prober: Any,
) -> None:
    main = [Pass("set-0"), Pass("set-1")]
    assert prober(sets=None).passes() == prober(sets=("set-0", "set-1")).passes()
    assert prober(sets=None).passes()[:2] == main
    assert prober("roberta", sets=None).passes() == [Pass()]


def test_without_sets_the_model_is_probed_as_it_came(prober: Any) -> None:
    as_it_came = prober(sets=(), step=None)
    assert as_it_came.passes() == [Pass()]
    task = probing.task(QUERIES, CANDIDATES, 3)
    tables = [method.predict(task, Pass()) for method in (as_it_came, prober())]
    pd.testing.assert_frame_equal(*tables)


def test_a_checkpoint_from_elsewhere_is_asked_as_it_came(prober: Any, tiny_model: FolderOf) -> None:
    settings = prober().settings
    method = Contrastive(tiny_model("bert"), settings, EngineParams(), 0)
    assert method.passes() == [Pass()]


def test_ranks_do_not_depend_on_the_order_of_names_and_equal_vectors_go_by_name(
    prober: Any,
) -> None:
    table = prober().predict(probing.task(QUERIES, CANDIDATES, 10), Pass())
    again = prober().predict(probing.task(QUERIES, CANDIDATES[::-1], 10), Pass())
    pd.testing.assert_frame_equal(table, again)
    for query in QUERIES["query_id"]:
        ranked = predictions(table, query)
        assert ranked.index("aspirin") == ranked.index("Aspirin") + 1


def test_candidate_sets_are_chosen_by_name(prober: Any) -> None:
    def first(choice: str, query: str) -> list[str]:
        method = prober(candidates=choice)
        return predictions(method.predict(probing.task(QUERIES, CANDIDATES, 9), Pass()), query)

    everything = first("all", "q1")
    assert "Aspirin" in everything
    names = slow(prober().checkpoint, NAMES, QUERIES["prompt"][0], 10)
    assert first("without_subject", "q1") == [name for name in names if name != "Aspirin"]
    assert "BRX2" in first("without_subject", "q2")  # the subject is an answer
    assert set(first("answers", "q1")) == set(NAMES[1::2])
    assert set(first("relation", "q1")) == {"chronic pain", "fracture of bone", "BRX2", "aspirin"}
    with pytest.raises(BadInput, match="marked as answer"):
        prober(candidates="answers").predict(
            probing.task(QUERIES, CANDIDATES.assign(type=""), 9), Pass()
        )


def test_each_text_is_encoded_once_a_pass(prober: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from medprobe.papers.medlama.methods import contrastive

    encoded_texts: list[str] = []
    run = contrastive.encode

    def encode_and_record(model: Any, texts: list[str], *more: Any) -> Any:
        encoded_texts.extend(texts)
        return run(model, texts, *more)

    monkeypatch.setattr(contrastive, "encode", encode_and_record)
    method = prober()
    twice = pd.concat([QUERIES, QUERIES.assign(query_id=["q4", "q5", "q6"])], ignore_index=True)
    method.predict(probing.task(twice, CANDIDATES, 3), Pass())
    method.predict(probing.task(QUERIES, CANDIDATES[:5], 3), Pass())
    assert len(encoded_texts) == len(QUERIES) + len(NAMES)
    method.predict(probing.task(QUERIES, CANDIDATES, 3), FIRST_STEP[0])
    assert len(encoded_texts) == 2 * (len(QUERIES) + len(NAMES))


@pytest.mark.parametrize("choice", ["all", "answers", "relation", "without_subject"])
def test_relations_and_subsets_share_the_names_of_a_checkpoint(prober: Any, choice: str) -> None:
    """One index a layer for all of them, with the predictions of one made anew for each."""
    tasks = [
        probing.task(QUERIES[:2], CANDIDATES, 3),
        probing.task(QUERIES[:2], CANDIDATES[:6], 3),
        probing.task(QUERIES[2:].reset_index(drop=True), CANDIDATES[3:], 3),
    ]
    shared = prober(candidates=choice, read_layers=(1,))
    for task in tasks:
        predictions = shared.predict(task, SETS[1])
        alone = prober(candidates=choice, read_layers=(1,)).predict(task, SETS[1])
        pd.testing.assert_frame_equal(predictions, alone)
    for index in shared.indexes:
        assert len(index.names) == len(set(index.names)) <= len(NAMES)
    assert len(shared.indexes) == 2


def test_cosine_and_mean_pooling_are_parameters(prober: Any) -> None:
    table = prober(distance="cosine", pooling="mean").predict(
        probing.task(QUERIES, CANDIDATES, 3), Pass()
    )
    assert table["score"].between(-1, 1).all()


def test_as_released_vectors_are_compared_in_half_precision(prober: Any) -> None:
    task = probing.task(QUERIES, CANDIDATES, 10)
    single, half = (prober(vectors=kind).predict(task, Pass()) for kind in ("single", "half"))
    keys = ["query_id", "prediction"]
    both = single.merge(half, on=keys)
    apart = (both["score_x"] - both["score_y"]).abs()
    assert 0 < apart.max() < 0.01 * both["score_x"].abs().max()


# acc@1, 5, 10 of all-MiniLM-L6-v2, not rewired, over the 11,799 names of seven full files
EXPECTED = {"disease_mapped_to_gene": (0, 0.003, 0.003), "may_prevent": (0.001, 0.051, 0.088)}


def test_neither_the_size_of_batches_nor_the_device_moves_a_rank(tiny_model: FolderOf) -> None:
    settings = {"sets": ("set-0",)}
    probing.check_ranks_stay("contrastive", tiny_model("encoder"), settings, Pass())


def test_a_real_encoder_gives_the_known_answers(released_data: FolderOf) -> None:
    folder, files = released_data("all-MiniLM-L6-v2"), released_data("medlama")
    tables = [pd.read_csv(path, keep_default_na=False) for path in files.glob("*_1000.csv")]
    released = pd.concat(tables, ignore_index=True)
    released["answers"] = released["tail_names"].str.split(" || ", regex=False)
    names = sorted({*released["head_name"], *released["answers"].explode()})
    assert len(names) == 11_799
    with (files / "prompts.csv").open(encoding="utf-8") as stream:
        prompts = {row["pid"]: row["human_prompt"] for row in csv.DictReader(stream)}
    engine = EngineParams(token_budget=512)
    method = Contrastive(folder, Contrastive.Settings(sets=("none",)), engine, 0)
    for relation, accuracies in EXPECTED.items():
        part = released[released["rel"] == relation].reset_index(drop=True)
        queries = pd.DataFrame(
            {
                "query_id": [str(i) for i in range(len(part))],
                "prompt": [prompts[relation].replace("[X]", head) for head in part["head_name"]],
            }
        )
        candidates = pd.DataFrame({"name": names, "type": ""})
        predictions = method.predict(probing.task(queries, candidates, 10), Pass())
        predictions["hit"] = [
            name in part["answers"][int(query)]
            for query, name in zip(predictions["query_id"], predictions["prediction"], strict=True)
        ]
        for k, share in zip((1, 5, 10), accuracies, strict=True):
            hits = predictions[predictions["rank"] <= k].groupby("query_id")["hit"].any()
            assert hits.mean() == pytest.approx(share, abs=0.003), (relation, k)


PROMPT = "velotrine may treat [Y] ."


def params(*sets: str) -> Params:
    settings = {"medlama": {"sets": sets, "step": 100}}
    content = {"models": {"masked": {"bert": {}}}, "methods": {"masked": {"contrastive": settings}}}
    return Params.model_validate(content)


@pytest.fixture
def project(tiny_model: FolderOf, working_folder: Path) -> None:
    """A benchmark, and a model that was rewired on two sets."""
    BenchmarkTables(QUERIES, CANDIDATES).write(places.BENCHMARKS / "medlama")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "bert").symlink_to(tiny_model("bert"))
    for seed in (1, 2):
        tiny.model("encoder", REWIRED / f"bert/set-{seed}/step-100", seed)


@pytest.mark.usefixtures("project")
def test_ask_shows_the_answers_of_the_rewired_model(
    tiny_model: FolderOf, capsys: pytest.CaptureFixture[str]
) -> None:
    for sets in (["set-1", "set-2"], ["set-2"]):
        best = answers("bert", PROMPT, "contrastive", "medlama", params(*sets), k=3)
        rewired = REWIRED / "bert" / sets[0] / "step-100"
        assert list(best["prediction"]) == slow(rewired, NAMES, PROMPT, 3)
    ask("bert", PROMPT, "contrastive", "medlama", params("set-1"))
    printed = capsys.readouterr().out
    assert all(name in printed for name in NAMES)
    ask("bert", PROMPT, None, "medlama", params("set-1"))
    assert "(mask_average)" in capsys.readouterr().out  # says something before rewiring, too
    folder = str(tiny_model("encoder"))
    best = answers(folder, PROMPT, "contrastive", "medlama", params("set-1"), k=3)
    assert list(best["prediction"]) == slow(tiny_model("encoder"), NAMES, PROMPT, 3)
