"""params.yaml is checked to its leaves: a person learns which key is wrong, and which was meant."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from medprobe import check
from medprobe.core import params
from medprobe.core.errors import BadInput
from medprobe.methods.xfactr import Xfactr
from medprobe.papers import papers

ROOT = Path(__file__).parent.parent
NEEDED: dict[str, Any] = {
    "seed": 1,
    "engine": {"precision": "float32"},
    "rewire": {},
    "score": {},
    "track": {},
}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return path


def with_sections(tmp_path: Path, text: str) -> Path:
    """What every params.yaml has, and the sections of `text`."""
    return written(tmp_path, yaml.safe_dump(NEEDED | yaml.safe_load(text)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sed: 1", "unknown key sed (did you mean 'seed'?)"),
        (
            "engine: {precision: float32, devise: cpu}",
            "unknown key engine.devise (did you mean 'device'?)",
        ),
        ("fetch: {a: {hubb: x}}", "fetch.a.hub: Field required"),
        (
            "models: {masked: {a: {publishd: x}}}",
            "unknown key models.masked.a.publishd (did you mean 'published'?)",
        ),
        ("seed: many", "seed: Input should be a valid integer"),
        ("seed: -1", "seed: Input should be greater than or equal to 0, found -1"),
        ("engine: {precision: float8}", "engine.precision: Input should be 'float32', "),
        (
            "engine: {precision: float32, device: spread, max_memory: {cpu: lots}}",
            "max_memory.cpu: String should match",
        ),
        (
            "engine: {precision: float32, max_memory: {cpu: 4GiB}}",
            "engine: max_memory is for device: spread",
        ),
        ("score: {confidence: 2}", "score.confidence: Input should be less than 1"),
        ("models: {masked: {../up: {}}}", "masked: '../up' is no name; a name is of letters"),
        ("models: {causal: {gpt.2: {}}}", "models.causal: 'gpt.2' is no name"),
        ("sentence_sets: {$(id): {}}", "sentence_sets: '$(id)' is no name"),
        ("benchmarks: {lipid: {lipid; touch X: {}}}", "benchmarks.lipid: 'lipid; touch X' is no"),
        ("methods: {masked: {xfactr: {a b: {}}}}", "methods.masked.xfactr: 'a b' is no name"),
        (f"train: {{{'a' * 61}: {{}}}}", "at most 60 long"),
        (
            "models: {masked: {dmis-lab/biobert-v1.1: {}}}",
            "choose one of your own, and say in fetch: "
            "{biobert-v1-1: {hub: dmis-lab/biobert-v1.1}}",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        params.load(with_sections(tmp_path, text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", params.NAMED)
def test_what_dvc_yaml_names_always_must_be_there(tmp_path: Path, name: str) -> None:
    content = {
        key: {**value} if isinstance(value, dict) else value for key, value in NEEDED.items()
    }
    section, _, key = name.partition(".")
    if key:
        del content[section][key]
    else:
        del content[section]
    with pytest.raises(BadInput, match=f"{name} is missing; write it down: dvc.yaml names it"):
        params.load(written(tmp_path, yaml.safe_dump(content)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models: [", "not YAML: line 2: did not find expected"),
        ("seed: 1\nseed: 2", 'not YAML: line 2: found duplicate key "seed"'),
        ("seed: \x01", "not YAML: unacceptable character #x0001"),
        ("[1]", "a list, expected sections"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        params.load(written(tmp_path, text))


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes("seed: 1 # für alle\n".encode("latin-1"))
    with pytest.raises(BadInput, match=r"params\.yaml: not UTF-8 at byte 11; save it as UTF-8"):
        params.load(path)


def test_numbers_are_what_dvc_takes_for_numbers(tmp_path: Path) -> None:
    """1e-5 is one in YAML 1.2, which DVC reads, and was none in YAML 1.1."""
    path = written(tmp_path, yaml.safe_dump(NEEDED) + "sweeps: {learning_rate: {1e-5}}")
    with pytest.raises(BadInput, match=re.escape('1e-05 needs quotes here: {"1e-05"}')):
        params.load(path)


def test_no_file_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; run medprobe in the project's folder"):
        params.load(tmp_path / "params.yaml")


def test_a_model_is_found_by_name_whatever_its_kind(tmp_path: Path) -> None:
    loaded = params.load(with_sections(tmp_path, "models: {causal: {gpt: {}}}"))
    assert loaded.models.kind("gpt") == "causal"
    with pytest.raises(BadInput, match=r"no model 'gtp' \(did you mean 'gpt'\?\)"):
        loaded.models.kind("gtp")


def edited(tmp_path: Path, dotted: str, value: Any) -> Path:
    """The project's own file with one value put in."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    inner = content
    *parents, last = dotted.split("/")
    for key in parents:
        inner = inner[key]
    inner[last] = value
    return written(tmp_path, yaml.safe_dump(content))


LEAVES = {  # a typo, or a name that is nowhere, at every kind of leaf
    "sample/querys": (40, "sample: unknown key querys (did you mean 'queries'?)"),
    "rewire/stepss": (1, "rewire: unknown key stepss (did you mean 'steps'?)"),
    "train/taught/layer": (3, "train.taught: unknown key layer (did you mean 'layers'?)"),
    "train/taught/kind": ("causal", "a recipe of kind causal, the model is listed as masked"),
    "sentence_sets/set-0/steps": (1, "sentence_sets.set-0.steps"),
    "sentence_sets/set-0/rewire": ({"stepp": 1}, "sentence_sets.set-0.rewire: unknown key stepp"),
    "sentence_sets/set-0/models": (["taugt"], "'taugt' is not among taught"),
    "sweeps/mask_ratio": ({"2.0": None}, "sweeps: mask_ratio"),
    "sweeps/learning_rate": (
        {1e-5: None},
        'sweeps.learning_rate: 1e-05 needs quotes here: {"1e-05"}',
    ),
    "sweeps/max_sentences": ({"many": None}, "sweeps.max_sentences.0: String should match"),
    "sweeps/temperature": (
        {"0.1": None, "0.10": None},
        "sweeps.temperature: a value is there twice",
    ),
    "sweeps/models": ({"nobody": None}, "sweeps.models: 'nobody' is not among"),
    "sweeps/sets": (["set-0"], "sweeps.sets: expected names in braces, such as {set-0, set-1}"),
    "methods/masked/contrastive/medlama/sweeps": (
        {"mask_ratio": {"0.7": None}},
        "sweeps.mask_ratio: '0.7' is not among none",
    ),
    "benchmarks/medlamma": ({"a": {}}, "no builder 'medlamma' (did you mean 'medlama'?)"),
    "benchmarks/medlama/medlama/per_relations": (
        1,
        "benchmarks.medlama.medlama: unknown key per_relations (did you mean 'per_relation'?)",
    ),
    "benchmarks/lama/medlama": ({}, "benchmarks: 'medlama' is there 2 times"),
    "benchmarks/lama/sentences": ({}, "'sentences' is the folder of sentence sets"),
    "methods/masked/xfactor": ({}, "no method 'xfactor' (did you mean 'xfactr'?)"),
    "methods/masked/generative": ({}, "the method needs a model of kind seq2seq"),
    "methods/causal/contrastive": ({}, "which under a causal model has read nothing else"),
    "methods/seq2seq/perplexity": ({}, "gives a text no probability of its own"),
    "methods/seq2seq/rank_change": ({}, "T5's family writes the name alone"),
    "methods/masked/xfactr/medlamma": ({}, "'medlamma' is not among"),
    "methods/masked/xfactr/medlama/mask": (
        3,
        "methods.masked.xfactr.medlama: unknown key mask (did you mean 'masks'?)",
    ),
    "methods/masked/contrastive/medlama/sets": (["set-9"], "'set-9' is not among set-0, set-1"),
    "models/masked/stray": ({}, "models.masked.stray: nothing says where its checkpoint is"),
    "models/causal/taught": ({}, "models: 'taught' is there 2 times"),
    "models/causal/Taught": ({}, "models: 'Taught' and 'taught' differ in case only"),
    "models/masked/untaught/untaught_twin_of": ("tought", "(did you mean 'taught'?)"),
    "folders/taught": ("/a", "train, continued, fetch and folders: 'taught' is there 2 times"),
    "folders/stray": ("/a", "'stray' is in train, continued, fetch or folders only"),
}


@pytest.mark.parametrize("where", LEAVES)
def test_a_typo_anywhere_is_found_by_the_first_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    value, says = LEAVES[where]
    path = edited(tmp_path, where, value)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as caught:
        check.loaded(path)
    assert says in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_found_right_is_not_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, (ROOT / "params.yaml").read_text())
    checked: list[object] = []
    monkeypatch.setattr(check, "check", checked.append)
    assert check.loaded(path) == check.loaded(path)
    assert len(checked) == 1
    path.write_text(path.read_text() + "# a comment\n")
    check.loaded(path)
    assert len(checked) == 2


def test_a_papers_settings_for_two_benchmarks_stand_in_one_file() -> None:
    own = params.load(ROOT / "params.yaml")
    quoted = papers()["contrastive-probe-acl2022"].settings
    masked = {
        "xfactr": {"medlama": quoted["xfactr"], "biolama": quoted["xfactr.biolama"]},
        "optiprompt": {"biolama": quoted["optiprompt"]},
    }
    changed = {"masked": masked, "seq2seq": {"generative": {"medlama": quoted["generative"]}}}
    check.check(own.model_copy(update={"methods": changed}))
    decoding = [Xfactr.Settings(**masked["xfactr"][name]) for name in ("medlama", "biolama")]
    assert [one.masks for one in decoding] == [5, 10]
    assert [one.length_normalisation for one in decoding] == [True, False]


def test_the_projects_own_params_are_right() -> None:
    check.check(params.load(ROOT / "params.yaml"))
