"""params.yaml is checked to its leaves: a person learns which key is wrong, and which was meant."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers import ROOT
from medprobe.core import params
from medprobe.core.errors import BadInput
from medprobe.core.papers import papers
from medprobe.methods.xfactr import Xfactr
from medprobe.pipeline import check

NEEDED: dict[str, Any] = {
    "seed": 1,
    "engine": {"precision": "float32"},
    "rewire": {},
    "score": {},
    "track": {},
}


def write_params(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return path


def with_sections(tmp_path: Path, text: str) -> Path:
    """What every params.yaml has, and the sections of `text`."""
    return write_params(tmp_path, yaml.safe_dump(NEEDED | yaml.safe_load(text)))


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
        (
            "models: {bert: {a: {}}}",
            "unknown key models.bert; choose one of masked, encoder, causal, chat, seq2seq",
        ),
        ("seed: many", "seed: Input should be a valid integer"),
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
        (
            "models: {masked: {../up: {}}}",
            "masked: '../up' is not a valid name; a name is of a to z",
        ),
        ("sentence_sets: {$(id): {}}", "sentence_sets: '$(id)' is not a valid name"),
        (
            "methods: {masked: {xfactr: {a b: {}}}}",
            "methods.masked.xfactr: 'a b' is not a valid name",
        ),
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
        params.load_params(with_sections(tmp_path, text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", params.REQUIRED)
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
        params.load_params(write_params(tmp_path, yaml.safe_dump(content)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "seed: 1\ntrack:\n\ttext: true",
            "line 3: found character that cannot start any token; indent by spaces, not by a tab",
        ),
        ("models: [", "not YAML: line 2: did not find expected"),
        ("seed: 1\nseed: 2", 'not YAML: line 2: found duplicate key "seed"'),
        ("seed: !!python/name:os.system", "could not determine a constructor for the tag"),
        ("seed: !!python/object/apply:os.abort []", "could not determine a constructor"),
        ("seed: \x01", "not YAML: unacceptable character #x0001"),
        ("[1]", "a list, expected sections"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        params.load_params(write_params(tmp_path, text))


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes("seed: 1 # für alle\n".encode("latin-1"))
    with pytest.raises(BadInput, match=r"params\.yaml: not UTF-8 at byte 11; save it as UTF-8"):
        params.load_params(path)


def test_numbers_are_what_dvc_takes_for_numbers(tmp_path: Path) -> None:
    """1e-5 is one in YAML 1.2, which DVC reads, and was none in YAML 1.1."""
    path = write_params(tmp_path, yaml.safe_dump(NEEDED) + "sweeps: {learning_rate: {1e-5}}")
    with pytest.raises(BadInput, match=re.escape('1e-05 needs quotes here: {"1e-05"}')):
        params.load_params(path)


def test_no_file_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; run medprobe in the project's folder"):
        params.load_params(tmp_path / "params.yaml")


def test_a_model_is_found_by_name_whatever_its_kind(tmp_path: Path) -> None:
    loaded = params.load_params(with_sections(tmp_path, "models: {causal: {gpt: {}}}"))
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
    return write_params(tmp_path, yaml.safe_dump(content))


LEAVES = {  # a typo, or a name that is nowhere, at every kind of leaf
    "sample/querys": (40, "sample: unknown key querys (did you mean 'queries'?)"),
    "rewire/stepss": (1, "rewire: unknown key stepss (did you mean 'steps'?)"),
    "train/taught/layer": (3, "train.taught: unknown key layer (did you mean 'layers'?)"),
    "train/taught/kind": ("causal", "a recipe of kind causal, the model is listed as masked"),
    "sentence_sets/set-0/rewire": ({"stepp": 1}, "sentence_sets.set-0.rewire: unknown key stepp"),
    "sentence_sets/set-0/models": (["taugt"], "'taugt' is not among taught"),
    "sweeps/mask_ratio": ({"2.0": None}, "sweeps: mask_ratio"),
    "sweeps/learning_rate": (
        {1e-5: None},
        'sweeps.learning_rate: 1e-05 needs quotes here: {"1e-05"}',
    ),
    "sweeps/layers": ({"0": None}, "sweeps: layers: Input should be greater than 0"),
    "methods/masked/contrastive/medlama/layers": ([3], "write read_layers to read layers of the"),
    "models/masked/taught/lower_case": (True, "lower_case is for models of fetch and folders"),
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
    "methods/masked/xfactor": ({}, "no method 'xfactor' (did you mean 'xfactr'?)"),
    "methods/masked/generative": ({}, "the method needs a model of kind seq2seq"),
    "methods/causal/contrastive": ({}, "which under a causal model has read nothing else"),
    "methods/seq2seq/perplexity": ({}, "gives a text no probability of its own"),
    "methods/seq2seq/rank_change": ({}, "T5's family writes the name alone"),
    "methods/masked/xfactr/medlama/mask": (
        3,
        "methods.masked.xfactr.medlama: unknown key mask (did you mean 'masks'?)",
    ),
    "methods/masked/contrastive/medlama/sets": (["set-9"], "'set-9' is not among set-0, set-1"),
    "methods/masked/contrastive/medlama/step": (
        200,
        "contrastive.medlama.step: rewiring on set-0 keeps no checkpoint of step 200: "
        "it keeps every 20 steps, and step 40",
    ),
    "methods/masked/optiprompt/lama": (
        {},
        "methods.masked.optiprompt.lama: the method needs a table train, which the builder lama "
        "never makes; choose a benchmark of biolama",
    ),
    "methods/masked/classifier/medlama": ({}, "the method needs a table examples, which the"),
    "methods/chat/answering/lipid": ({"shots": [0, 3]}, "needs a table train, which the builder"),
    "models/masked/stray": ({}, "models.masked.stray: nothing says where its checkpoint is"),
    "models/causal/taught": ({}, "models: 'taught' is there 2 times"),
    "models/masked/untaught/untaught_twin_of": ("tought", "(did you mean 'taught'?)"),
    "models/masked/taught/published": (
        "BioBERT",
        "masked.taught: published: no paper has a checkpoint 'BioBERT' (there are "
        "BioBERT v1.0 PubMed+PMC, BioBERT v1.1, BioBERT v1.2)",
    ),
    "models/masked/untaught/published": ("SapBRT", "'SapBRT' (did you mean 'SapBERT'?)"),
    "folders/taught": (
        "/a",
        "train, continued, fetch, folders and servers: 'taught' is there 2 times",
    ),
    "fetch/stray": (
        {"hub": "a/b"},
        "'stray' is in train, continued, fetch, folders or servers only",
    ),
}


@pytest.mark.parametrize("where", LEAVES)
def test_a_typo_anywhere_is_found_before_any_stage_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    value, says = LEAVES[where]
    path = edited(tmp_path, where, value)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as caught:
        check.check(check.loaded(path))
    assert says in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_no_kind_lists_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing probes it, and its stage copies it as it is."""
    chosen = params.load_params(edited(tmp_path, "folders/stray", "/a"))
    check.check(chosen)
    assert "folders: no kind of models lists 'stray'" in capsys.readouterr().err


def test_a_benchmark_that_no_method_probes_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check.check(params.load_params(ROOT / "params.yaml"))
    assert "none probes" not in capsys.readouterr().err
    check.check(params.load_params(edited(tmp_path, "benchmarks/lipid/unasked", {})))
    assert "methods: none probes the benchmark 'unasked'" in capsys.readouterr().err


def test_a_papers_settings_for_two_benchmarks_stand_in_one_file() -> None:
    own_params = params.load_params(ROOT / "params.yaml")
    adopted = papers()["contrastive-probe-acl2022"].adopted.methods
    masked = {name: adopted["masked"][name] for name in ("xfactr", "optiprompt")}
    changed = {"masked": masked, "seq2seq": adopted["seq2seq"]}
    check.check(own_params.model_copy(update={"methods": changed}))
    decoding = [Xfactr.Settings(**masked["xfactr"][name]) for name in ("medlama", "biolama")]
    assert [choice.masks for choice in decoding] == [5, 10]
    assert [choice.length_normalisation for choice in decoding] == [True, False]


def test_the_projects_own_params_are_right() -> None:
    check.check(params.load_params(ROOT / "params.yaml"))
