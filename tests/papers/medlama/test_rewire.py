"""The pair rule, the loss, and a training that can be stopped: against slow, obvious ones."""

import contextlib
import random
import shutil
import tempfile
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from helpers import ROOT, FolderOf, probing, tiny
from helpers.disk import small_files
from helpers.project import record_persistent
from medprobe.cli import main
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import size
from medprobe.core.params import EngineParams, Params
from medprobe.engine import training_state
from medprobe.engine.encode import encode, tokenize
from medprobe.engine.load import Model, load
from medprobe.papers.medlama import rewiring
from medprobe.papers.medlama.rewired import LOSSES, REWIRED, checkpoints, read_settings
from medprobe.papers.medlama.rewiring import (
    Rewiring,
    add_gradients,
    batch_order,
    free_bytes,
    info_nce,
)
from medprobe.papers.medlama.sentences import SENTENCES as SETS
from medprobe.papers.medlama.sentences import cut_tail, make_pairs, read_sentences
from medprobe.papers.medlama.settings.rewire import REWIRE, RewireSettings
from medprobe.papers.medlama.settings.sentence_sets import SENTENCE_SETS
from medprobe.papers.medlama.settings.sweeps import SWEEPS
from medprobe.papers.medlama.stages.rewire import rewire
from medprobe.pipeline.init import params_text

WORDS = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=12)
SENTENCES = [
    "entecavir may be able to prevent hepatitis b infection in adults ",
    "velotrine treats karsten syndrome ",
    "the disease was mapped to gene brx2 in patients with diabetes ",
    "gene product alpha synuclein protein is encoded by the snca gene ",
    "aspirin has physiologic effect decreased platelet aggregation ",
    "fracture of bone occurs after trauma ",
]
SETTINGS = RewireSettings(batch=4, steps=6, checkpoint_every=2, learning_rate=1e-3)


def check(params: Params) -> None:
    """Check the sections of rewiring."""
    for section in (REWIRE, SENTENCE_SETS, SWEEPS):
        assert section.check
        section.check(params)


def train(
    model: Model, pairs: list[tuple[str, str]], settings: RewireSettings, folder: Path
) -> list[float]:
    """Rewire a model in place, all steps; return the losses."""
    return Rewiring(model, pairs, settings, seed="0", folder=folder).train_until(settings.steps)


@given(WORDS, st.floats(0, 1), st.integers(0, 99), st.sampled_from(["released", "tail"]))
def test_a_cut_takes_words_at_the_end_and_loses_none(
    words: list[str], ratio: float, seed: int, rule: str
) -> None:
    sentence = " ".join(words) + " "
    pair = cut_tail(sentence, "[MASK]", ratio, random.Random(seed), rule)  # type: ignore[arg-type]
    if pair is None:
        assert len(words) < 3 or ratio > 0.5
        return
    query, answer = pair
    assert query.replace("[MASK]", answer).split() == words
    assert query.split()[-1] == "[MASK]"  # lines end in a blank: both rules cut the last word
    assert 1 <= len(answer.split()) <= 1 + ratio * (len(words) + 1)


def test_the_released_cut_starts_one_word_early() -> None:
    draws = [random.Random(seed) for seed in range(20)]
    cuts = {cut_tail("a b c d e f", "[MASK]", 0.5, draw) for draw in draws}
    assert cuts == {
        ("a b c d [MASK] f", "e"),
        ("a b c [MASK] f", "d e"),
        ("a b [MASK] f", "c d e"),
        ("a [MASK] f", "b c d e"),
    }


def test_sentences_too_short_for_their_cut_give_no_pair() -> None:
    assert cut_tail("a", "[MASK]", 0, random.Random(0)) is None
    assert cut_tail("a b  ", "[MASK]", 0, random.Random(0)) is None  # only a blank would be cut
    assert cut_tail("a", "[MASK]", 0, random.Random(0), "tail") is None


def test_pairs_depend_on_the_seed_alone() -> None:
    settings = RewireSettings(max_sentences=4)
    assert make_pairs(SENTENCES, "[MASK]", settings, "1") == make_pairs(
        SENTENCES[:4], "[MASK]", settings, "1"
    )
    pairs_by_seed = [make_pairs(SENTENCES, "[MASK]", settings, str(seed)) for seed in range(5)]
    assert any(pairs != pairs_by_seed[0] for pairs in pairs_by_seed)


def test_each_epoch_has_every_pair_once_in_an_order_of_its_own() -> None:
    order = list(batch_order(10, 4, 7, "seed"))
    assert [len(batch) for batch in order] == [4, 4, 2, 4, 4, 2, 4]
    assert sorted(chain(*order[:3])) == sorted(chain(*order[3:6])) == list(range(10))
    assert order[:3] != order[3:6]
    assert order == list(batch_order(10, 4, 7, "seed"))


def test_one_step_equals_two_padded_passes(tiny_model: FolderOf, tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"dropout": 0.0, "steps": 1, "batch": 99})
    pairs = make_pairs(SENTENCES, "[MASK]", settings, "0")
    small = EngineParams(token_budget=40)  # many small batches, still one loss
    losses = train(load(tiny_model("bert"), "encoder", small), pairs, settings, tmp_path)
    model = load(tiny_model("bert"), "encoder")
    adam = torch.optim.AdamW(model.model.parameters(), lr=1e-3, weight_decay=0.01)
    order = next(batch_order(len(pairs), 99, 1, "0"))
    sides = []
    for side in (0, 1):
        texts = [pairs[i][side] for i in order]
        tokens = model.tokenizer(
            texts, padding="max_length", truncation=True, max_length=48, return_tensors="pt"
        )
        sides.append(model.model(**tokens).last_hidden_state[:, 0])
    loss = info_nce(torch.cat(sides), settings.temperature)
    loss.backward()
    adam.step()
    assert losses == [pytest.approx(loss.item(), abs=1e-5)]
    saved_weights = load_file(tmp_path / "step-1" / "model.safetensors")
    for name, weight in model.model.named_parameters():
        if name.endswith("key.bias"):
            continue  # its gradient is zero but for rounding
        # Adam's first step is lr times the gradient's sign, but for gradients near zero
        assert ((saved_weights[name] - weight).abs() < 1e-5).float().mean() > 0.95, name


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_cached_gradients_are_those_of_one_pass_with_dropout_on(
    tiny_model: FolderOf, arch: str
) -> None:
    model = load(tiny_model(arch), "encoder", EngineParams(token_budget=40))
    pairs = make_pairs(SENTENCES, model.tokenizer.mask_token, SETTINGS, "0")
    rows = tokenize(model, [text for side in zip(*pairs, strict=True) for text in side], 48)
    model.model.train()
    network = model.model
    assert any(isinstance(x, torch.nn.Dropout) and x.p > 0 for x in network.modules())

    def run(held: int, seed: int) -> tuple[float, dict[str, torch.Tensor]]:
        network.zero_grad()
        torch.manual_seed(seed)
        value = add_gradients(model, rows, partial(info_nce, temperature=0.04), held)
        return value, {name: x.grad.clone() for name, x in network.named_parameters()}

    whole, gradients = run(10_000, 1)
    cached, same = run(40, 1)
    other, _ = run(40, 2)
    assert cached == pytest.approx(whole, abs=1e-6) and abs(other - whole) > 1e-3
    for name, gradient in gradients.items():
        torch.testing.assert_close(same[name], gradient, rtol=1e-6, atol=1e-6)


def test_gradients_are_cached_where_memory_does_not_hold_a_batch(
    tiny_model: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text then goes through the network twice; the checkpoint is the same."""
    texts: list[int] = []
    both_gradients = []
    for free in (2**40, 2**19):
        monkeypatch.setattr(rewiring, "free_bytes", lambda device, free=free: free)
        model = load(tiny_model("bert"), "encoder", EngineParams(token_budget=40))
        pairs = make_pairs(SENTENCES, "[MASK]", SETTINGS, "0")
        texts.clear()
        model.model.register_forward_hook(
            lambda network, inputs, kwargs, out: texts.append(len(kwargs["input_ids"])),
            with_kwargs=True,
        )
        settings = SETTINGS.model_copy(update={"steps": 1})
        losses = train(model, pairs, settings, tmp_path / str(free))
        both_gradients.append(
            (sum(texts), losses, load_file(tmp_path / f"{free}/step-1/model.safetensors"))
        )
    (once, losses, weights), (twice, same, others) = both_gradients
    assert twice - 1 == 2 * (once - 1)  # one text tells what a token takes
    assert same == pytest.approx(losses, abs=1e-6)
    for name, weight in weights.items():
        torch.testing.assert_close(others[name], weight, rtol=0, atol=1e-5)


def test_free_memory_is_at_most_what_a_control_group_has_left(tmp_path: Path) -> None:
    assert 0 < free_bytes(torch.device("cpu")) < 2**50
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert rewiring._group_memory(tmp_path) == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert rewiring._group_memory(tmp_path) == rewiring._group_memory(tmp_path / "none") > 2**60


class Stopped(Exception):
    """Stands for a kill."""


@pytest.fixture
def rewired_project(tiny_model: FolderOf, working_folder: Path) -> Params:
    """A model of two layers and three sentence sets, of which one is named."""
    places.SENTENCES.mkdir(parents=True)
    for number in range(3):
        lines = [*SENTENCES[number:], *SENTENCES[:number]]
        (places.SENTENCES / f"set-{number}.txt").write_text("\n".join(lines) + "\n")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "mine").symlink_to(tiny_model("bert"))
    return Params.model_validate(
        {
            "seed": 1,
            "models": {"masked": {"mine": {}}},
            "sentence_sets": {"set-0": {}},
            "rewire": {"batch": 4, "steps": 6, "checkpoint_every": 2, "learning_rate": 1e-3},
        }
    )


def with_sections(params: Params, **sections: Any) -> Params:
    """The parameters with other sections."""
    return Params.model_validate(params.model_dump() | sections)


def with_rewire(params: Params, **settings: Any) -> Params:
    """The parameters with other settings of rewiring."""
    return with_sections(params, rewire=REWIRE.of(params) | settings)


SWEEPS_OF_MINE: dict[str, Any] = {
    "models": {"mine": None},
    "sets": {"set-0": None},
    "temperature": {"0.5": None},
}


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by their paths in it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Trained:
    """Counts steps of training, and kills the one with the number `stop`."""

    def __init__(self) -> None:
        self.count = self.stop = 0


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    counter, step = Trained(), torch.optim.AdamW.step

    def counted(self: torch.optim.AdamW, closure: None = None) -> object:
        counter.count += 1
        if counter.count == counter.stop:
            raise Stopped
        return step(self, closure)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)
    return counter


@pytest.mark.parametrize(("stop", "seconds"), [(1, 180), (3, 180), (4, 180), (3, -1), (5, -1)])
def test_a_resumed_rewiring_equals_an_uninterrupted_one(
    rewired_project: Params,
    monkeypatch: pytest.MonkeyPatch,
    trained: Trained,
    stop: int,
    seconds: float,
) -> None:
    """With -1 seconds that a stop can lose, every step is kept."""
    monkeypatch.setattr(training_state, "KEEP_SECONDS", seconds)
    rewire("mine", rewired_project)
    assert list(checkpoints(REWIRED / "mine/set-0")) == [2, 4, 6]
    assert list(checkpoints(Path("nowhere"))) == []
    whole, losses = contents(REWIRED), contents(LOSSES)
    shutil.rmtree(REWIRED)
    shutil.rmtree(LOSSES)
    trained.count = 0
    trained.stop = stop + 1
    with pytest.raises(Stopped):
        rewire("mine", rewired_project)
    assert contents(REWIRED) == {}
    rewire("mine", rewired_project)
    kept_step = stop if seconds < 0 else stop // 2 * 2
    assert trained.count == stop + 1 + 6 - kept_step
    assert contents(REWIRED) == whole and contents(LOSSES) == losses
    [text] = losses.values()
    assert [line.split(b",")[0] for line in text.split()] == [
        b"step",
        *(b"%d" % n for n in range(1, 7)),
    ]
    assert not [*places.PARTS.iterdir()]


def test_a_stopped_model_keeps_its_finished_rewirings(
    rewired_project: Params, trained: Trained
) -> None:
    """Of two sets and a value of a sweep, as if it had not been stopped."""
    params = with_sections(
        rewired_project, sentence_sets={"set-0": {}, "set-1": {}}, sweeps=SWEEPS_OF_MINE
    )
    names = ["set-0", "set-0+temperature-0.5", "set-1"]
    trained.stop = 10  # the 4th of the second
    with pytest.raises(Stopped):
        rewire("mine", params)
    assert [path.name for path in (REWIRED / "mine").iterdir()] == names[:1]
    rewire("mine", params)
    assert sorted(path.name for path in (REWIRED / "mine").iterdir()) == names
    assert trained.count == 3 * 6 + 2  # the 3rd is done again, and the 4th was not finished
    resumed = contents(REWIRED), contents(LOSSES)
    assert {*resumed[1]} == {f"mine/{name}.csv" for name in names}
    shutil.rmtree("outputs/rewired")
    rewire("mine", params)
    assert (contents(REWIRED), contents(LOSSES)) == resumed


CHANGES: dict[
    str, tuple[dict[str, Any], set[str]]
] = {  # of sections: what is rewired, and is there
    "nothing": ({}, set()),
    "a further set": ({"sentence_sets": {"set-0": {}, "set-1": {}, "set-2": {}}}, {"set-2"}),
    "a set's own setting": (
        {"sentence_sets": {"set-0": {}, "set-1": {"rewire": {"checkpoint_every": 3}}}},
        {"set-1"},
    ),
    "a value of the sweep": (
        {"sweeps": SWEEPS_OF_MINE | {"temperature": {"0.5": None, "0.9": None}}},
        {"set-0+temperature-0.9"},
    ),
    "another value of the sweep": (
        {"sweeps": SWEEPS_OF_MINE | {"temperature": {"0.9": None}}},
        {"set-0+temperature-0.9"},
    ),
    "no sweep": ({"sweeps": {}}, set()),
    "a set less": ({"sentence_sets": {"set-1": {}}, "sweeps": {}}, set()),
    "a set without the model": (
        {"sentence_sets": {"set-0": {}, "set-1": {"without": ["mine"]}, "set-2": {"models": []}}},
        set(),
    ),
    "no set": ({"sentence_sets": {}, "sweeps": {}}, set()),
    "all of them": (
        {"rewire": {"batch": 4, "steps": 3, "learning_rate": 1e-3}},
        {"set-0", "set-1", "set-0+temperature-0.5"},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_params_rewires_what_follows_from_it_and_removes_what_is_not_asked(
    rewired_project: Params, trained: Trained, name: str
) -> None:
    changes, rewired = CHANGES[name]
    base = {"sentence_sets": {"set-0": {}, "set-1": {}}, "sweeps": SWEEPS_OF_MINE}
    before = with_sections(rewired_project, **base)
    rewire("mine", before)
    first = contents(REWIRED / "mine")
    trained.count = 0
    after = with_sections(before, **changes)
    rewire("mine", after)
    assert trained.count == len(rewired) * REWIRE.of(after)["steps"]
    second = contents(REWIRED / "mine")
    made = {path.partition("/")[0] for path, data in second.items() if first.get(path) != data}
    assert made == rewired
    shutil.rmtree(REWIRED)
    shutil.rmtree(LOSSES)
    rewire("mine", after)
    assert contents(REWIRED / "mine") == second  # as if there had been nothing before
    assert {Path(path).stem for path in contents(LOSSES)} == {
        path.name for path in (REWIRED / "mine").iterdir()
    }
    trained.count = 0
    rewire("mine", before)  # what was put aside comes back
    assert contents(REWIRED / "mine") == first and not trained.count


@pytest.mark.dvc
@pytest.mark.parametrize("lost", [None, "a file", "everything"])
def test_rewirings_that_were_removed_return_from_the_cache_if_it_has_them(
    rewired_project: Params, trained: Trained, lost: str | None
) -> None:
    """As of a model that was taken out of params.yaml, cleaned and put back."""
    rewire("mine", rewired_project)
    before, trained.count = contents(REWIRED), 0
    record_persistent(f"{REWIRED}/mine")
    shutil.rmtree(REWIRED)
    cached = [path for path in Path(".dvc/cache").rglob("*") if path.is_file()]
    for path in {None: [], "a file": [max(cached, key=size)], "everything": cached}[lost]:
        path.unlink()
    rewire("mine", rewired_project)
    assert contents(REWIRED) == before
    assert trained.count == (6 if lost else 0)


@pytest.mark.parametrize("place", ["step-6/model.safetensors", "losses.csv", "settings.json"])
def test_a_rewiring_that_lost_or_has_another_file_is_made_again(
    rewired_project: Params, place: str
) -> None:
    rewire("mine", rewired_project)
    first, file = contents(REWIRED), REWIRED / "mine/set-0" / place
    for damage in (file.unlink, lambda: file.write_text("{}")):
        damage()
        rewire("mine", rewired_project)
        assert contents(REWIRED) == first


def test_the_stage_refuses_a_set_that_has_not_passed_and_an_unknown_model(
    rewired_project: Params,
) -> None:
    params = with_sections(rewired_project, sentence_sets={"set-O": {}})
    with pytest.raises(BadInput, match=r"no such sentence set .*there are: set-0"):
        rewire("mine", params)
    with pytest.raises(BadInput, match="no model 'min'"):
        rewire("min", params)


def test_settings_differ_by_sentence_set_and_by_value_of_a_sweep(rewired_project: Params) -> None:
    sets = {"set-0": {}, "set-1": {"rewire": {"steps": 4}}}
    rewire("mine", with_sections(rewired_project, sentence_sets=sets, sweeps=SWEEPS_OF_MINE))
    steps = {path.name: [*checkpoints(path)] for path in (REWIRED / "mine").iterdir()}
    assert steps == {"set-0": [2, 4, 6], "set-0+temperature-0.5": [2, 4, 6], "set-1": [2, 4]}
    plain, varied = (LOSSES / f"mine/set-0{x}.csv" for x in ("", "+temperature-0.5"))
    assert plain.read_text() != varied.read_text()
    assert read_settings(REWIRED / "mine/set-0+temperature-0.5")["temperature"] == 0.5


@pytest.mark.parametrize("arch", [*probing.ARCHITECTURES, "encoder"])
def test_layers_are_cut_before_rewiring(tiny_model: FolderOf, tmp_path: Path, arch: str) -> None:
    """The first layers alone give what they give in the whole model, and are a checkpoint."""
    texts = [*SENTENCES, "[MASK]"]
    whole, cut = (load(tiny_model(arch), "encoder", layers=count) for count in (None, 1))
    assert cut.config.num_hidden_layers == 1 < whole.config.num_hidden_layers
    expected = _first_layer(whole, texts)
    np.testing.assert_allclose(encode(cut, texts, 48), expected, atol=1e-5)
    settings = SETTINGS.model_copy(update={"layers": 1, "steps": 2, "checkpoint_every": 1})
    pairs = make_pairs(SENTENCES, cut.tokenizer.mask_token, settings, "0")
    train(cut, pairs, settings, tmp_path / "rewired")
    again = load(tmp_path / "rewired/step-2", "encoder")
    assert again.config.num_hidden_layers == 1
    np.testing.assert_array_equal(encode(again, texts, 48), encode(cut, texts, 48))
    with pytest.raises(BadInput, match=f"no first 3 layers: it has {tiny.LAYERS}"):
        load(tiny_model(arch), "encoder", layers=3)


def _first_layer(model: Model, texts: list[str]) -> Any:
    """The vectors after the first layer of the whole model, and its last norm if it has one."""
    vectors = encode(model, texts, 48, layer=1)
    norm = getattr(model.model, "final_norm", None)
    with torch.no_grad():
        return norm(torch.tensor(vectors)).numpy() if norm else vectors


def test_a_depth_that_a_model_lacks_leaves_it_out_of_a_sweep_and_is_refused_elsewhere(
    rewired_project: Params, capsys: pytest.CaptureFixture[str]
) -> None:
    depths = {"layers": {"9": None, "1": None}}
    sweeps = {"models": {"mine": None}, "sets": {"set-0": None}, **depths}
    rewire("mine", with_sections(rewired_project, sweeps=sweeps))
    assert capsys.readouterr().out == "mine has 2 layers: left out of layers 9\n"
    folders = [REWIRED / "mine" / name for name in ("set-0", "set-0+layers-1")]
    assert sorted((REWIRED / "mine").iterdir()) == folders
    assert load(folders[1] / "step-2", "encoder").config.num_hidden_layers == 1
    assert [read_settings(folder)["layers"] for folder in folders] == [tiny.LAYERS, 1]
    assert read_settings(folders[0])["mask_ratio"] == 0.5
    with pytest.raises(BadInput, match="no first 9 layers: it has 2"):
        rewire("mine", with_rewire(rewired_project, layers=9))


def test_a_set_that_is_smaller_than_max_sentences_is_used_whole(rewired_project: Params) -> None:
    """As the paper's sets of 10,000 lines, of which three have a blank one."""
    blank, short = [*SENTENCES], SENTENCES[:-1]
    blank[2] = " "
    for name, lines in (("set-1", blank), ("set-2", short)):
        (places.SENTENCES / f"{name}.txt").write_text("\n".join(lines) + "\n")
    SETS.parent.mkdir(exist_ok=True)
    shutil.copytree(places.SENTENCES, SETS)
    size, sets = len(SENTENCES), ["set-0", "set-1", "set-2"]
    params = with_sections(
        with_rewire(rewired_project, max_sentences=size, steps=2),
        sentence_sets={name: {} for name in sets},
        sweeps={
            "models": {"mine": None},
            "sets": dict.fromkeys(sets),
            "max_sentences": {str(size): None},
        },
    )
    check(params)
    rewire("mine", params)
    for name in sets:
        for folder in (REWIRED / "mine" / name, REWIRED / f"mine/{name}+max_sentences-{size}"):
            assert list(checkpoints(folder)) == [2]
            assert read_settings(folder)["max_sentences"] == size


def test_a_blank_line_counts_and_is_a_sentence_if_blank_pairs_are_kept() -> None:
    lines = ["a b c d ", "", "e f g h ", "i j k l "]
    kept, dropped = (RewireSettings(max_sentences=3, blank=blank) for blank in ("kept", "dropped"))
    pairs = make_pairs(lines, "[MASK]", kept, "1")
    assert len(pairs) == 3 and pairs[1] == ("[MASK] ", "")
    assert [pair[0][0] for pair in make_pairs(lines, "[MASK]", dropped, "1")] == ["a", "e"]


@pytest.mark.parametrize("own", [None, 3, 9])
@given(sizes=st.sets(st.integers(2, 12), min_size=1), lines=st.integers(4, 8))
def test_two_sizes_of_a_sweep_that_are_the_whole_set_are_refused_before_anything_runs(
    own: int | None, sizes: set[int], lines: int
) -> None:
    """Otherwise one number would have two names. The size outside the sweep is one of them."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        SETS.mkdir(parents=True)
        (SETS / "set-0.txt").write_text("one more sentence here\n" * lines)
        sweeps = {"sets": {"set-0": None}, "max_sentences": {str(n): None for n in sizes}}
        rewiring = {} if own is None else {"max_sentences": own}
        content = {"sentence_sets": {"set-0": {}}, "sweeps": sweeps, "rewire": rewiring}
        params = Params.model_validate(content)
        whole = [n for n in sizes | {own or 10_000} if n >= lines]
        with pytest.raises(BadInput) if len(whole) > 1 else contextlib.nullcontext():
            check(params)


@pytest.mark.parametrize("command", ["check", "doctor", "validate-sentences --set set-0"])
@pytest.mark.parametrize(
    ("text", "problem"), [(b"a-b\nc-d\n", "0 sentences"), (b"a caf\xe9\n", "UTF-8")]
)
def test_a_set_that_rewiring_refuses_is_found_before_anything_runs(
    working_folder: Path, command: str, text: bytes, problem: str
) -> None:
    Path("params.yaml").write_text(
        params_text().replace("sentence_sets: {}", "sentence_sets: {set-0: {}}")
    )
    SETS.mkdir(parents=True)
    (SETS / "set-0.txt").write_bytes(text)
    Path("expectations").symlink_to(ROOT / "expectations")
    result = CliRunner().invoke(main, command.split())
    assert not [*Path().glob("outputs/sentences/*.txt")]
    assert result.exit_code == 2 and problem in result.output


@pytest.mark.parametrize(
    ("sentence", "ratio", "query", "answer"),
    [
        (
            "Social-distancing largely reduces coronavirus infections.",
            0.5,
            "Social-distancing largely [MASK].",
            "reduces coronavirus infections",
        ),
        ("a b c d .", 0.5, "a b [MASK] .", "c d"),
        ("a b c d", 0.5, "a b [MASK]", "c d"),
        ("a b c d  ", 0.25, "a b c [MASK]", "d"),
        ("a b c d.  ", 0.0, "a b c [MASK].", "d"),
        ("a b c d e f g h i j.", 0.7, "a b c [MASK].", "d e f g h i j"),
        ("levels rose by 3.5 mg.", 0.4, "levels rose by [MASK].", "3.5 mg"),
    ],
)
def test_the_papers_cut_takes_the_whole_share_and_leaves_the_full_stop(
    sentence: str, ratio: float, query: str, answer: str
) -> None:
    cut = cut_tail(sentence, "[MASK]", ratio, random.Random(1), "sentence")
    assert cut == (query, answer)


@pytest.mark.parametrize("sentence", ["word.", "word .", ".", "", "a b.", "a b c."])
def test_the_papers_cut_leaves_a_word_in_the_query(sentence: str) -> None:
    assert cut_tail(sentence, "[MASK]", 1.0, random.Random(1), "sentence") is None


def test_rewiring_learns_the_pairs_and_its_checkpoints_load(
    tiny_model: FolderOf, tmp_path: Path
) -> None:
    settings = SETTINGS.model_copy(update={"steps": 40, "checkpoint_every": 20, "dropout": 0.0})
    for arch in ("bert", "roberta", "encoder"):
        model = load(tiny_model(arch), "encoder")
        pairs = make_pairs(SENTENCES, model.tokenizer.mask_token, settings, "0")
        losses = train(model, pairs, settings, tmp_path / arch)
        assert sum(losses[-10:]) < sum(losses[:10])
        again = load(tmp_path / arch / "step-40", "encoder")
        assert again.tokenizer.mask_token == model.tokenizer.mask_token
        assert again.max_length == model.max_length
        for name, weight in model.model.state_dict().items():
            assert (again.model.state_dict()[name] == weight).all()


def test_a_model_that_is_rewired_on_no_set_has_a_folder(working_folder: Path) -> None:
    """DVC demands it, as `contrastive` depends on it. It contains no file, so nothing is stale."""
    Path("params.yaml").write_text(params_text().replace("{masked: {}", "{masked: {mine: {}}"))
    result = CliRunner().invoke(main, ["rewire", "--model", "mine"])
    assert result.exit_code == 0, result.output
    assert (REWIRED / "mine").is_dir()
    assert not [path for path in REWIRED.rglob("*") if path.is_file()]
    result = CliRunner().invoke(main, ["rewire", "--model", "yours"])
    assert result.exit_code == 2 and not (REWIRED / "yours").exists()


def test_no_benchmark_has_the_name_of_the_folder_of_sentence_sets() -> None:
    params = Params(benchmarks={"table": {"sentences": {"facts": "facts.csv"}}})
    with pytest.raises(BadInput, match="'sentences' is the folder of sentence sets"):
        check(params)


@pytest.mark.parametrize("name", ["rewire", "sentence_sets"])
def test_a_section_that_dvc_yaml_names_for_rewiring_must_be_there(name: str) -> None:
    sections = {"rewire": {}, "sentence_sets": {}, "methods": {"masked": {}}}
    del sections[name]
    check(Params(**sections))
    origins = {"folders": {"mine": "mine"}, "models": {"masked": {"mine": {}}}}
    with pytest.raises(BadInput, match=f"{name} is missing; write it down"):
        check(Params(**sections, **origins))


def test_a_checkpoint_says_when_there_is_no_room(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = torch.nn.Linear(300, 300)
    adam = torch.optim.Adam(network.parameters())
    loaded = SimpleNamespace(model=Mock(), tokenizer=Mock())
    loaded.model.save_pretrained = loaded.tokenizer.save_pretrained = lambda path: path.mkdir(
        exist_ok=True
    )
    network(torch.zeros(300)).sum().backward()
    adam.step()
    problem = r"File too large: 'outputs/parts/step-1'"
    training = SimpleNamespace(model=loaded, adam=adam, losses=[], folder=Path("outputs/parts"))
    with small_files(monkeypatch), pytest.raises(OSError, match=problem):
        Rewiring._keep(training, 1)
    assert [*Path("outputs/parts").iterdir()] == []


def test_bad_input_is_said_in_one_line(
    tiny_model: FolderOf, rewired_project: Params, tmp_path: Path
) -> None:
    (tmp_path / "set-0.txt").write_text("word\n")
    with pytest.raises(BadInput, match=r"no such sentence set.*set-0"):
        read_sentences(tmp_path / "set-1.txt")
    (places.SENTENCES / "set-0.txt").write_text("word\n")
    with pytest.raises(BadInput, match="0 sentences long enough"):
        rewire("mine", rewired_project)
    (places.MODELS / "mine").unlink()
    (places.MODELS / "mine").symlink_to(tiny_model("gpt2"))
    with pytest.raises(BadInput, match="is no encoder model"):
        rewire("mine", rewired_project)
    assert contents(REWIRED) == {}
