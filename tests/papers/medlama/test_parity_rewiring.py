"""Contrastive-Probe's pairs, loss and steps, against the code that MedLAMA released."""

import random

import pytest
import torch

from helpers import parity
from medprobe.papers.medlama import rewiring, sentences
from medprobe.papers.medlama.settings.rewire import RewireSettings

INPUTS, OUTPUTS = parity.read("rewiring", "inputs"), parity.read("rewiring", "outputs")
LINES = (parity.FOLDER / "rewiring" / "sentences.txt").read_text(encoding="utf-8").split("\n")
RUNS = [(model, i) for model, runs in OUTPUTS["pairs"].items() for i in range(len(runs))]
STEPS = [
    (model, setting["name"], kind)
    for model in OUTPUTS["steps"]
    for setting in INPUTS["steps"]
    for kind in ("whole", "parts")
]
LOSS = 1e-4  # rounding in a loss
MOVED = 1e-3  # the share of a tensor's movement that Adam's first steps may turn


def pairs(
    model: str, run: int, keep_blank: bool = False
) -> list[tuple[tuple[str, str] | None, list[str], str]]:
    """Ours, theirs and the mask, of each line; one generator for all, as there."""
    mask = parity.model(model, "encoder").tokenizer.mask_token
    theirs = OUTPUTS["pairs"][model][run]
    draw, cut = random.Random(theirs["python_seed"]), sentences.cut_tail
    return [
        (cut(line, mask, theirs["mask_percent"], draw, keep_blank=keep_blank), pair, mask)
        for line, pair in zip(LINES, theirs["pairs"], strict=False)
    ]


def is_blank(pair: list[str], mask: str) -> bool:
    query, answer = pair
    return not answer.strip() or not query.replace(mask, "").strip()


@pytest.mark.parametrize(("model", "run"), RUNS)
def test_pairs_are_the_same_but_for_those_with_nothing_in_them(model, run):
    assert len(OUTPUTS["pairs"][model][run]["pairs"]) in (len(LINES), len(LINES) - 1)
    for ours, theirs, mask in pairs(model, run):
        if ours is None:
            assert is_blank(theirs, mask)
        else:
            assert list(ours) == theirs


@pytest.mark.parametrize(("model", "run"), RUNS)
def test_all_pairs_are_the_same_where_blank_ones_are_kept(model, run):
    assert all(list(ours) == theirs for ours, theirs, _ in pairs(model, run, keep_blank=True))


@pytest.mark.parametrize("case", range(len(INPUTS["info_nce"])))
def test_the_loss_and_its_gradient_are_the_same(case):
    case_inputs, theirs = INPUTS["info_nce"][case], OUTPUTS["info_nce"][case]
    vectors = torch.tensor(case_inputs["vectors"], requires_grad=True)
    loss = rewiring.info_nce(vectors, case_inputs["temperature"])
    loss.backward()
    assert loss.item() == pytest.approx(theirs["loss"], rel=1e-5, abs=1e-6)
    assert vectors.grad.norm().item() == pytest.approx(theirs["gradient_norm"], rel=1e-4, abs=1e-6)


def trained(model, name, kind, folder, monkeypatch):
    """The losses and the weights before and after, of training on their batches."""
    theirs = OUTPUTS["steps"][model][name][kind]
    step_settings = next(setting for setting in INPUTS["steps"] if setting["name"] == name)
    settings = RewireSettings(
        learning_rate=step_settings["learning_rate"],
        weight_decay=step_settings["weight_decay"],
        temperature=step_settings["temperature"],
        max_length=step_settings["max_length"],
        dropout=0,
        steps=len(theirs["batches"]),
        checkpoint_every=len(theirs["batches"]),
    )
    monkeypatch.setattr(rewiring, "batch_order", lambda *arguments: iter(theirs["batches"]))
    network = parity.model(model, "encoder")
    before = {key: value.double().clone() for key, value in network.model.state_dict().items()}
    first = [tuple(pair) for pair in OUTPUTS["pairs"][model][0]["pairs"]]
    training = rewiring.Rewiring(network, first, settings, seed="any", folder=folder)
    losses = training.train_until(settings.steps)
    after = {key: value.double() for key, value in network.model.state_dict().items()}
    return losses, before, after


def of_interest(theirs: dict) -> list[str]:
    """The tensors that have a gradient, and not only rounding."""
    return [key for key in theirs["norms"] if not key.endswith("attention.self.key.bias")]


@pytest.mark.parametrize(("model", "name", "kind"), STEPS)
def test_three_steps_of_training_go_the_same_way(model, name, kind, tmp_path, monkeypatch):
    theirs = OUTPUTS["steps"][model][name][kind]
    losses, before, after = trained(model, name, kind, tmp_path, monkeypatch)
    assert losses == pytest.approx(theirs["losses"], abs=LOSS)
    for key in of_interest(theirs):
        assert after[key].norm().item() == pytest.approx(theirs["norms"][key], rel=1e-5), key
        moved = (after[key] - before[key]).norm().item()
        assert moved == pytest.approx(theirs["moved"][key], rel=MOVED), key
