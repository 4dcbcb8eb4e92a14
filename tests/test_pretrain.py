"""Checkpoints made by the pretrain stage: trained, resumed, copied, or refused."""

import itertools
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from medprobe import places
from medprobe.engine.load import inspect, load
from medprobe.errors import BadInput
from medprobe.params import ModelKind, Params
from medprobe.sample import corpus, train
from medprobe.sample.architectures import PASSED, POSITIONS, tokenizer, untrained
from medprobe.sample.settings import Recipe, SampleSettings
from medprobe.sample.train import Sentence
from medprobe.sample.world import build
from medprobe.stages.pretrain import pretrain

KINDS: tuple[ModelKind, ...] = ("masked", "causal", "seq2seq")
TINY = {"corpus": "taught", "layers": 1, "hidden": 64, "steps": 4, "batch": 8}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text of a small world under data/."""
    folder = tmp_path_factory.mktemp("project")
    world = build(SampleSettings(queries=20, reserve=20), 1)
    corpus.write(world, folder / "data", 1)
    return folder


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def params(kind: str, model: dict[str, Any], **recipe: Any) -> Params:
    return Params.model_validate(
        {"models": {kind: {"mine": model}}, "pretrain": {"tiny": {**TINY, **recipe}}}
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", KINDS)
def test_training_gives_the_same_weights_twice_and_a_checkpoint_of_its_kind(
    kind: ModelKind, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        pretrain("mine", params(kind, {"pretrain": "tiny"}), tmp_path / name)
    assert same(weights(tmp_path / "one"), weights(tmp_path / "two"))
    assert kind in inspect(tmp_path / "one").kinds
    model = load(tmp_path / "one", kind)
    assert model.max_length == POSITIONS
    assert not list(places.PARTS.glob("pretrain-*")), "nothing is left over"
    pretrain("mine", params(kind, {"pretrain": "tiny"}, steps=5), tmp_path / "longer")
    assert not same(weights(tmp_path / "one"), weights(tmp_path / "longer"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_training_goes_on_to_the_same_weights(
    kind: ModelKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "SAVE_EVERY", 2)
    recipe = Recipe(**{**TINY, "steps": 6, "dropout": 0.1})
    whole, _ = train.train(kind, recipe, Path("data/sample"), tmp_path / "a.pt", seed=3)
    steps: list[int] = []

    def stop() -> None:
        steps.append(1)
        if len(steps) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train.train(kind, recipe, Path("data/sample"), tmp_path / "b.pt", seed=3, done=stop)
    torch.rand(7)  # whatever ran in between
    seen: list[int] = []
    resumed, _ = train.train(
        kind, recipe, Path("data/sample"), tmp_path / "b.pt", seed=3, done=lambda: seen.append(1)
    )
    assert len(seen) == 6, "the steps done before are told too"
    assert same(whole.state_dict(), resumed.state_dict())


def test_training_learns(tmp_path: Path) -> None:
    """After some steps the model knows the form of sentences: what may stand in a name's place."""
    losses = []
    for steps in (2, 60):
        recipe = Recipe(**{**TINY, "steps": steps, "batch": 32, "learning_rate": 3e-3})
        model, pieces = train.train(
            "masked", recipe, Path("data/sample"), tmp_path / f"{steps}.pt", seed=1
        )
        sentences = train.read(
            Path("data/sample/corpus-taught.txt"), Path("data/sample/names.txt"), pieces
        )
        with torch.no_grad():
            batch = sentences[:64]
            losses.append(train.masked_loss(model, pieces, batch, random.Random(5)).item())
    assert losses[1] < losses[0] - 1


def test_names_are_found_whole_and_the_longest_first(tmp_path: Path) -> None:
    (tmp_path / "corpus-a.txt").write_text("BRX2 Protein is made by BRX2 Gene .\n")
    (tmp_path / "names.txt").write_text("BRX2 Gene\nBRX2 Protein\nBRX2\n")
    pieces = tokenizer("causal", [tmp_path / "corpus-a.txt"], 400)
    (sentence,) = train.read(tmp_path / "corpus-a.txt", tmp_path / "names.txt", pieces)
    found = [pieces.decode(sentence.pieces[a:b]).strip() for a, b in sentence.names]
    assert found == ["BRX2 Protein", "BRX2 Gene"]
    assert sentence.pieces == pieces.encode("BRX2 Protein is made by BRX2 Gene .")


def test_joined_sentences_fit_the_window() -> None:
    long = Sentence(list(range(200)), [(0, 2), (190, 200)])
    joined = train.join([long, long])
    assert len(joined.pieces) == POSITIONS - 2
    assert joined.names == [(0, 2), (190, 200), (200, 202)]


def test_masked_models_are_asked_for_the_last_name_of_cases() -> None:
    texts = Path("data/sample")
    pieces = tokenizer("masked", list(texts.glob("corpus-*.txt")), 800)
    sentences = train.read(texts / "corpus-taught.txt", texts / "names.txt", pieces)
    told = train.read(texts / "cases-taught.txt", texts / "names.txt", pieces)
    cases = [replace(sentence, case=True) for sentence in told]
    rng = random.Random(1)
    made = list(islice(train.batches(sentences, 16, rng, cases), 100))
    of_cases = [batch for batch in made if batch[0].case]
    assert 0.2 < len(of_cases) / len(made) < 0.6
    for case in itertools.chain.from_iterable(of_cases):
        (start, end) = case.names[-1]
        assert train._hidden(case, rng) == set(range(start, end))
        assert pieces.decode(case.pieces[end:]) == "."
        assert len(case.pieces) <= POSITIONS - 2
    assert not any(
        one.case for batch in islice(train.batches(sentences, 16, rng), 20) for one in batch
    )


def test_masked_models_begin_by_handing_on_what_they_read() -> None:
    model = untrained("masked", Recipe(corpus="taught"), 400)
    read = torch.randn(3, 192)
    for layer in model.bert.encoder.layer:
        attention = layer.attention
        with torch.no_grad():
            passed = attention.output.dense(attention.self.value(read))
        torch.testing.assert_close(passed, PASSED * read)


def test_slots_are_single_pieces_of_sequence_models() -> None:
    pieces = tokenizer("seq2seq", list(Path("data/sample").glob("corpus-*.txt")), 800)
    ids = pieces("it might treat<mask> .").input_ids
    assert ids.count(pieces.mask_token_id) == 1
    assert (ids[0], ids[-1]) == (pieces.bos_token_id, pieces.eos_token_id)
    assert pieces.convert_ids_to_tokens(ids)[-4:] == ["Ġtreat", "<mask>", "Ġ.", "</s>"]


def test_both_corpora_have_one_vocabulary(tmp_path: Path) -> None:
    for name in ("taught", "untaught"):
        pretrain("mine", params("masked", {"pretrain": "tiny"}, corpus=name), tmp_path / name)
    one, two = (tmp_path / name / "tokenizer.json" for name in ("taught", "untaught"))
    assert one.read_bytes() == two.read_bytes()
    assert not same(weights(one.parent), weights(two.parent))


def test_a_folder_is_copied_without_its_other_files(
    tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_model("bert"), source)
    (source / "modeling_evil.py").write_text("raise SystemExit")
    (source / "tf_model.h5").write_bytes(b"weights of another framework")
    pretrain("mine", params("masked", {"folder": source}), tmp_path / "out")
    assert same(weights(source), weights(tmp_path / "out"))
    load(tmp_path / "out", "masked")
    assert not {"modeling_evil.py", "tf_model.h5"} & {p.name for p in (tmp_path / "out").iterdir()}


def test_what_cannot_be_had_is_one_clear_line_and_leaves_nothing(
    tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    def refused(kind: str, model: dict[str, Any], says: str, **recipe: Any) -> None:
        with pytest.raises(BadInput, match=says) as caught:
            pretrain("mine", params(kind, model, **recipe), tmp_path / "out")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()

    empty = tmp_path / "empty"
    empty.mkdir()
    refused("masked", {"folder": tmp_path / "nowhere"}, "nowhere: no such model folder")
    refused("masked", {"folder": empty}, "empty: no config.json")
    refused("causal", {"folder": tiny_model("bert")}, "serves as masked or encoder, not as causal")
    refused("masked", {"folder": tiny_model("encoder")}, "not as masked")
    refused("masked", {}, "none of pretrain, folder, hub")
    refused("masked", {"folder": empty, "hub": "a/b"}, "folder and hub")
    refused("masked", {"pretrain": "tny"}, r"no recipe 'tny' \(did you mean 'tiny'\?\)")
    refused("masked", {"pretrain": "tiny"}, "corpus-other.txt: no such corpus", corpus="other")
    lone = Path("data/sample/corpus-lone.txt")
    lone.write_text("a sentence .\n")
    refused("masked", {"pretrain": "tiny"}, "cases-lone.txt: no such corpus", corpus="lone")
    lone.unlink()
    refused("masked", {"pretrain": "tiny"}, "pretrain.tiny: unknown key stps", stps=3)
    refused("encoder", {"pretrain": "tiny"}, "no encoder is trained")


def test_a_hub_name_offline_is_refused_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    wanted = Params.model_validate(
        {"models": {"masked": {"mine": {"hub": "nobody/nothing"}}}, "engine": {"offline": True}}
    )
    start = time.monotonic()
    with pytest.raises(BadInput, match="nobody/nothing: not in the hub's local cache"):
        pretrain("mine", wanted, tmp_path / "out")
    assert time.monotonic() - start < 20, "no retries"
    assert not (tmp_path / "out").exists()


def test_a_cached_hub_name_needs_no_network(
    tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: Any
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    home = tmp_path / "hub/models--somebody--tiny"
    shutil.copytree(tiny_model("bert"), home / "snapshots/abc")
    (home / "refs").mkdir()
    (home / "refs/main").write_text("abc")
    wanted = Params.model_validate(
        {"models": {"masked": {"mine": {"hub": "somebody/tiny"}}}, "engine": {"offline": True}}
    )
    pretrain("mine", wanted, tmp_path / "out")
    assert same(weights(tiny_model("bert")), weights(tmp_path / "out"))
