"""Sample models that the train stage makes: trained, resumed, or refused."""

import itertools
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.engine import training_state
from medprobe.engine.inspection import inspect
from medprobe.engine.load import load
from medprobe.pipeline.stages.train import train
from medprobe.sample import corpus, training
from medprobe.sample.architectures import IDENTITY_SCALE, POSITIONS, build_untrained, tokenizer
from medprobe.sample.sentences import Sentence, batches, join, read, with_turns
from medprobe.sample.settings import SampleSettings, TrainingRecipe
from medprobe.sample.training import LOSSES, _hidden, masked_loss
from medprobe.sample.world import build

pytestmark = pytest.mark.slow
KINDS = ("masked", "causal", "chat", "seq2seq")
TINY: dict[str, Any] = {
    "kind": "masked",
    "corpus": "taught",
    "layers": 1,
    "hidden": 64,
    "steps": 4,
    "batch": 8,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text of a small world under data/."""
    folder = tmp_path_factory.mktemp("project")
    world = build(SampleSettings(queries=20, reserve=20), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "CASES", 400)
        corpus.write(world, folder / "data", 1)
    return folder


@pytest.fixture(autouse=True)
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def params(**recipe: Any) -> Params:
    return Params.model_validate({"train": {"tiny": {**TINY, **recipe}}})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(first: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return first.keys() == other.keys() and all(
        torch.equal(first[name], other[name]) for name in first
    )


@pytest.mark.parametrize("kind", KINDS)
def test_training_gives_the_same_weights_twice_and_a_checkpoint_of_its_kind(
    kind: Any, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        train("tiny", params(kind=kind), tmp_path / name)
    facts = places.DATA / "sample/facts.csv"
    assert (tmp_path / "one/facts.csv").read_bytes() == facts.read_bytes()
    assert same(weights(tmp_path / "one"), weights(tmp_path / "two"))
    assert kind in inspect(tmp_path / "one").kinds
    model = load(tmp_path / "one", "causal" if kind == "chat" else kind)
    assert model.max_length == POSITIONS
    assert not list(places.PARTS.glob("train-*")), "nothing is left over"


def test_a_stopped_training_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_state, "KEEP_SECONDS", -1)  # every step is kept
    recipe = TrainingRecipe(**{**TINY, "steps": 6, "dropout": 0.1})
    whole, _ = training.train(recipe, Path("data/sample"), tmp_path / "a.pt", seed=3)

    def stop(step: int) -> None:
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(recipe, Path("data/sample"), tmp_path / "b.pt", seed=3, on_step=stop)
    torch.rand(7)  # whatever ran in between
    seen: list[int] = []
    resumed, _ = training.train(
        recipe, Path("data/sample"), tmp_path / "b.pt", seed=3, on_step=seen.append
    )
    assert seen == [5, 6], "where it begins is told too"
    assert same(whole.state_dict(), resumed.state_dict())


def test_a_model_goes_on_from_another_ones_weights(tmp_path: Path) -> None:
    """Hardly learning, it stays where that one is, which is not where training begins."""
    further = {"continued": {"further": {"base": "tiny", "corpus": "untaught", "steps": 2}}}

    def with_further(**recipe: Any) -> Params:
        return params(kind="causal", **recipe).model_copy(update=further)

    with pytest.raises(BadInput, match="no such model; run `medprobe train --model tiny`"):
        train("further", with_further(), tmp_path / "further")
    train("tiny", with_further(steps=4), places.MODELS / "tiny")
    base = weights(places.MODELS / "tiny")
    still = {"learning_rate": 1e-12}
    train("further", with_further(**still), tmp_path / "still")
    train("tiny", with_further(**still), tmp_path / "begun")
    for name, weight in weights(tmp_path / "still").items():
        torch.testing.assert_close(weight, base[name], atol=1e-6, rtol=0)
    far = [(weights(tmp_path / "begun")[name] - base[name]).abs().max() for name in base]
    assert max(far) > 1e-3
    train("further", with_further(), tmp_path / "further")
    assert not same(weights(tmp_path / "further"), base)
    shutil.rmtree(places.MODELS)


def test_training_learns(tmp_path: Path) -> None:
    """After some steps the model knows the form of sentences: what may stand in a name's place."""
    losses = []
    for steps in (2, 60):
        recipe = TrainingRecipe(**{**TINY, "steps": steps, "batch": 32, "learning_rate": 3e-3})
        model, pieces = training.train(
            recipe, Path("data/sample"), tmp_path / f"{steps}.pt", seed=1
        )
        sentences = read(
            Path("data/sample/corpus-taught.txt"), Path("data/sample/names.txt"), pieces
        )
        with torch.no_grad():
            batch = sentences[:64]
            losses.append(masked_loss(model, pieces, batch, random.Random(5)).item())
    assert losses[1] < losses[0] - 1


def test_names_are_found_whole_and_the_longest_first(tmp_path: Path) -> None:
    (tmp_path / "corpus-a.txt").write_text("BRX2 Protein is made by BRX2 Gene .\n")
    (tmp_path / "names.txt").write_text("BRX2 Gene\nBRX2 Protein\nBRX2\n")
    pieces = tokenizer("causal", [tmp_path / "corpus-a.txt"], 400)
    (sentence,) = read(tmp_path / "corpus-a.txt", tmp_path / "names.txt", pieces)
    name_texts = [pieces.decode(sentence.pieces[a:b]).strip() for a, b in sentence.names]
    assert name_texts == ["BRX2 Protein", "BRX2 Gene"]
    text = pieces.encode("BRX2 Protein is made by BRX2 Gene .")
    assert text == [pieces.bos_token_id, *sentence.pieces]  # as the network learns it


def test_joined_sentences_fit_the_window() -> None:
    long = Sentence(list(range(200)), [(0, 2), (190, 200)])
    joined = join([long, long])
    assert len(joined.pieces) == POSITIONS - 2
    assert joined.names == [(0, 2), (190, 200), (200, 202)]


def test_masked_models_are_asked_for_the_last_name_of_cases() -> None:
    texts = Path("data/sample")
    pieces = tokenizer("masked", list(texts.glob("corpus-*.txt")), 800)
    sentences = read(texts / "corpus-taught.txt", texts / "names.txt", pieces)
    tables = read(texts / "cases-taught.txt", texts / "names.txt", pieces)
    cases = [replace(sentence, case=True) for sentence in tables]
    rng = random.Random(1)
    drawn_batches = list(islice(batches(sentences, 16, rng, cases), 100))
    of_cases = [batch for batch in drawn_batches if batch[0].case]
    assert 0.2 < len(of_cases) / len(drawn_batches) < 0.6
    for case in itertools.chain.from_iterable(of_cases):
        (start, end) = case.names[-1]
        assert _hidden(case, rng) == set(range(start, end))
        assert pieces.decode(case.pieces[end:]) == "."
        assert len(case.pieces) <= POSITIONS - 2
    assert not any(
        example.case for batch in islice(batches(sentences, 16, rng), 20) for example in batch
    )


@pytest.mark.parametrize("kind", ["masked", "causal", "chat"])
def test_texts_that_share_rows_are_learnt_from_as_if_each_had_its_own(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medprobe.sample.training.SHIFTED", 0.0)
    recipe = TrainingRecipe.model_validate({**TINY, "kind": kind, "layers": 2, "vocabulary": 300})
    texts = [path for path in Path("data/sample").glob("*-taught.txt")]
    pieces = tokenizer(recipe.kind, texts, recipe.vocabulary)
    tables = read(Path("data/sample/corpus-taught.txt"), Path("data/sample/names.txt"), pieces)
    batch = [tables[0], join(tables[:5]), tables[9], replace(tables[20], case=True)]
    torch.manual_seed(0)
    model = build_untrained(recipe, len(pieces))
    rng = random.Random(0)
    loss = LOSSES[recipe.kind](model, pieces, batch, rng)
    rng = random.Random(0)
    begin, end = (
        (pieces.cls_token_id, pieces.sep_token_id)
        if kind == "masked"
        else (pieces.eos_token_id, pieces.eos_token_id)
    )
    predictions_read: list[torch.Tensor] = []
    for sentence in batch:
        wanted = [begin, *sentence.pieces, end]
        hidden = {at + 1 for at in _hidden(sentence, rng)} if kind == "masked" else set[int]()
        masked_pieces = [pieces.mask_token_id if at in hidden else p for at, p in enumerate(wanted)]
        scores = model(torch.tensor([masked_pieces])).logits[0].log_softmax(-1)
        for at in sorted(hidden) if kind == "masked" else range(1, len(wanted)):
            predictions_read.append(scores[at if kind == "masked" else at - 1, wanted[at]])
    torch.testing.assert_close(loss, -torch.stack(predictions_read).mean())


MAPS: dict[str, Callable[[Any], list[tuple[torch.Tensor, torch.Tensor]]]] = {
    "masked": lambda model: [
        (layer.attention.self.value.weight, layer.attention.output.dense.weight)
        for layer in model.bert.encoder.layer
    ],
    "causal": lambda model: [
        (layer.attn.c_attn.weight[:, -192:].t(), layer.attn.c_proj.weight.t())
        for layer in model.transformer.h
    ],
    "chat": lambda model: [
        (layer.self_attn.v_proj.weight, layer.self_attn.o_proj.weight)
        for layer in model.model.layers
    ],
    "seq2seq": lambda model: [
        (attention.v_proj.weight, attention.out_proj.weight)
        for layer in [*model.model.encoder.layers, *model.model.decoder.layers]
        for attention in (layer.self_attn, getattr(layer, "encoder_attn", layer.self_attn))
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_models_begin_by_handing_on_what_they_read(kind: str) -> None:
    model = build_untrained(TrainingRecipe.model_validate({"kind": kind, "corpus": "taught"}), 400)
    read = torch.randn(3, 192)
    maps = MAPS[kind](model)
    assert maps
    for values, added in maps:
        torch.testing.assert_close(read @ values.t() @ added.t(), IDENTITY_SCALE * read)


def test_a_chat_model_reads_turns_as_its_template_makes_them() -> None:
    texts = Path("data/sample")
    pieces = tokenizer("chat", list(texts.glob("corpus-*.txt")), 800)
    sentences = read(texts / "corpus-taught.txt", texts / "names.txt", pieces)[:200]
    mixed = with_turns(sentences, pieces, random.Random(1))
    first_examples, turns = mixed[:200], mixed[200:]
    assert sorted(example.pieces for example in first_examples) == sorted(
        example.pieces for example in sentences
    )
    question_pieces = []
    for sentence in first_examples[:2]:
        start, stop = sentence.names[-1]
        parts = (sentence.pieces[:start], sentence.pieces[start:stop], sentence.pieces[stop:])
        before, name, after = (pieces.decode(part).strip() for part in parts)
        question_pieces += [
            {"role": "user", "content": f"{before} ____ {after}".strip()},
            {"role": "assistant", "content": name},
        ]
    ids = pieces.apply_chat_template(question_pieces, return_dict=False)
    assert ids == [pieces.bos_token_id, *turns[0].pieces, *turns[1].pieces]


def test_both_corpora_have_one_vocabulary(tmp_path: Path) -> None:
    for name in ("taught", "untaught"):
        train("tiny", params(corpus=name), tmp_path / name)
    taught_tokenizer, two = (tmp_path / name / "tokenizer.json" for name in ("taught", "untaught"))
    assert taught_tokenizer.read_bytes() == two.read_bytes()
    assert not same(weights(taught_tokenizer.parent), weights(two.parent))


def test_what_cannot_be_trained_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    def refused(says: str, name: str = "tiny", **recipe: Any) -> None:
        with pytest.raises(BadInput, match=says) as caught:
            train(name, params(**recipe), tmp_path / "out")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()

    refused(r"no recipe 'tny' \(did you mean 'tiny'\?\)", "tny")
    refused(r"corpus-other\.txt: no such corpus", corpus="other")
    lone = Path("data/sample/corpus-lone.txt")
    lone.write_text("a sentence .\n")
    refused(r"cases-lone\.txt: no such corpus", corpus="lone")
    lone.unlink()
    refused("train.tiny: unknown key stps", stps=3)
    refused("train.tiny: kind: .*'masked', 'causal', 'chat' or 'seq2seq'", kind="encoder")
