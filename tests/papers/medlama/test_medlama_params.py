"""Mistakes in the sections and settings of Contrastive-Probe, and what its papers adopt."""

import re
from pathlib import Path

import pytest

from helpers.needed import SECTIONS
from helpers.typos import check_typo, edited, own_params, write_params
from medprobe.core import params
from medprobe.core.errors import BadInput
from medprobe.core.papers import papers
from medprobe.methods.xfactr import Xfactr
from medprobe.pipeline import check

CONTRASTIVE = "methods/masked/contrastive/medlama"
LEAVES = {
    "rewire/stepss": (1, "rewire: unknown key stepss (did you mean 'steps'?)"),
    "sentence_sets/set-0/rewire": ({"stepp": 1}, "sentence_sets.set-0.rewire: unknown key stepp"),
    "sentence_sets/set-0/models": (["taugt"], "'taugt' is not among taught"),
    "sweeps/mask_ratio": ({"2.0": None}, "sweeps: mask_ratio"),
    "sweeps/learning_rate": (
        {1e-5: None},
        'sweeps.learning_rate: 1e-05 needs quotes here: {"1e-05"}',
    ),
    "sweeps/layers": ({"0": None}, "sweeps: layers: Input should be greater than 0"),
    f"{CONTRASTIVE}/layers": ([3], "write read_layers to read layers of the"),
    "sweeps/sets": (["set-0"], "sweeps.sets: expected names in braces, such as {set-0, set-1}"),
    f"{CONTRASTIVE}/sweeps": (
        {"mask_ratio": {"0.7": None}},
        "sweeps.mask_ratio: '0.7' is unknown, and none is defined",
    ),
    "benchmarks/medlamma": ({"a": {}}, "no builder 'medlamma' (did you mean 'medlama'?)"),
    "benchmarks/medlama/medlama/per_relations": (
        1,
        "benchmarks.medlama.medlama: unknown key per_relations (did you mean 'per_relation'?)",
    ),
    "methods/causal/contrastive": ({}, "which under a causal model has read nothing else"),
    f"{CONTRASTIVE}/sets": (["set-9"], "'set-9' is not among set-0, set-1"),
    f"{CONTRASTIVE}/step": (
        200,
        "contrastive.medlama.step: rewiring on set-0 keeps no checkpoint of step 200: "
        "it keeps every 20 steps, and step 40",
    ),
    "models/masked/untaught/published": ("SapBRT", "'SapBRT' (did you mean 'SapBERT'?)"),
}


@pytest.mark.parametrize("where", LEAVES)
def test_a_typo_is_found_before_any_stage_runs(tmp_path: Path, where: str) -> None:
    value, says = LEAVES[where]
    check_typo(tmp_path, edited(own_params(), where, value), says)


def test_a_step_without_a_sentence_set_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    content = edited(own_params(), CONTRASTIVE, {"sets": [], "step": 20})
    check.check(params.Params.model_validate(content))
    says = "contrastive.medlama.step: there is no sentence set to rewire on, and models are probed"
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("sentence_sets: {$(id): {}}", "sentence_sets: '$(id)' is not a valid name"),
        ("sweeps: {learning_rate: {1e-5}}", '1e-05 needs quotes here: {"1e-05"}'),  # as DVC reads
    ],
)
def test_names_are_texts_of_few_characters(tmp_path: Path, section: str, says: str) -> None:
    with pytest.raises(BadInput, match=re.escape(says)):
        others = SECTIONS.replace("sentence_sets: {}\n", "")
        params.load_params(write_params(tmp_path, others + section))


def test_a_papers_settings_for_two_benchmarks_stand_in_one_file() -> None:
    adopted = papers()["contrastive-probe-acl2022"].adopted.methods
    masked = {name: adopted["masked"][name] for name in ("xfactr", "optiprompt")}
    changed = {"masked": masked, "seq2seq": adopted["seq2seq"]}
    changed = own_params()["methods"] | changed
    check.check(params.Params.model_validate(own_params() | {"methods": changed}))
    decoding = [Xfactr.Settings(**masked["xfactr"][name]) for name in ("medlama", "biolama")]
    assert [choice.masks for choice in decoding] == [5, 10]
    assert [choice.length_normalisation for choice in decoding] == [True, False]
