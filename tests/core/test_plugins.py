"""Plugins from outside: those of the project's folder `plugins/`, as extending.md has a reader
write them, and those of another package, run by DVC."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import medprobe
from helpers import FolderOf
from helpers.project import ROOT, Project, environment
from medprobe import benchmarks, methods, metrics
from medprobe.core.errors import BadInput
from medprobe.core.plugins import own_folders
from medprobe.pipeline.init import params_text
from medprobe.pipeline.probing import method_code

EXTENDING = (ROOT / "docs/how-to/extending.md").read_text(encoding="utf-8")
WRITTEN = {  # by path, the files that extending.md has a reader write
    path: text
    for path, text in re.findall(
        r"`((?:plugins|expectations)/\w+/\w+\.\w+)`[^`]*```\w+\n(.*?)```", EXTENDING, re.DOTALL
    )
}
METHOD, BENCHMARK, METRIC, BACKEND = (
    f"plugins/{name}.py"
    for name in (
        "methods/shortest_first",
        "benchmarks/side_effects",
        "metrics/ndcg",
        "backends/lookup",
    )
)
[BACKEND_MODEL] = re.findall(r'^{"backend".*$', EXTENDING, re.MULTILINE)
ENTRY_POINTS = """
[medprobe.plugins]
lab = lab
"""
LAB = {  # the same plugins under other names, in a package of their own
    "lab/__init__.py": '"""A package with plugins."""\n',
    "lab/order.py": "SIGN = -1\n",
    "lab/methods/longest_first.py": WRITTEN[METHOD]
    .replace("ShortestFirst", "LongestFirst")
    .replace("key=lambda name: (len(name), name)", "key=lambda name: (SIGN * len(name), name)")
    .replace(
        "from medprobe.methods import", "from ..order import SIGN\nfrom medprobe.methods import"
    ),
    "lab/benchmarks/lab_effects.py": WRITTEN[BENCHMARK]
    .replace("side_effects", "lab_effects")
    .replace("lab_effects.csv", "side_effects.csv"),
    "lab/metrics/gain.py": WRITTEN[METRIC].replace("ndcg_at_10", "gain_at_10"),
    "lab/backends/lab_lookup.py": WRITTEN[BACKEND].replace("Lookup", "LabLookup"),
    "lab-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: lab\nVersion: 1.5\n",
    "lab-1.5.dist-info/entry_points.txt": ENTRY_POINTS,
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def home(working_folder: Path) -> Path:
    """A project without a clone, with the plugins of extending.md."""
    write(working_folder, {"params.yaml": params_text(), **WRITTEN})
    return working_folder


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with plugins."""
    folder = tmp_path / "site"
    write(folder, LAB)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "lab"]:
        del sys.modules[name]


def test_plugins_are_found_by_name(home: Path, lab: Path) -> None:
    assert {"shortest_first", "longest_first"} <= set(methods.list_names())
    assert {"side_effects", "lab_effects"} <= set(benchmarks.list_names())
    assert {"ndcg", "gain"} <= set(metrics.list_names())
    assert methods.find("shortest_first").__name__ == "ShortestFirst"
    assert methods.find("longest_first").__module__ == "lab.methods.longest_first"
    assert benchmarks.find("side_effects").metadata.sources == ("side_effects.csv",)
    assert {"ndcg_at_10", "gain_at_10"} <= set(metrics.catalog())
    rankings = ["accuracy", "consistency", "expert", "gain", "ndcg"]
    assert metrics.scorers_of("accuracy") == rankings
    assert metrics.scorers_of("perplexity") == ["perplexity"]


def test_a_folder_without_a_project_has_no_plugins(home: Path) -> None:
    Path("params.yaml").unlink()
    assert "shortest_first" not in methods.list_names()


def test_what_python_left_of_a_removed_folder_is_none(tmp_path: Path) -> None:
    for name in ("papers/mine/methods/own.py", "extensions/gone/methods/__pycache__/old.pyc"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert own_folders(tmp_path) == [tmp_path / "papers/mine"]


def test_nothing_is_imported_from_data_or_outputs(home: Path) -> None:
    names = methods.list_names()
    for folder in ("data/plugins/methods", "outputs/plugins/methods", "methods"):
        write(home, {f"{folder}/evil.py": "raise SystemExit(9)\n"})
    assert methods.list_names() == names and "evil" not in names


def test_plugins_share_code_in_a_file_of_their_folder(home: Path) -> None:
    edit = "from medprobe_plugins.shared import LENGTH\nfrom medprobe.methods import"
    text = WRITTEN[METHOD].replace("from medprobe.methods import", edit)
    write(home, {"plugins/shared.py": "LENGTH = 3\n", METHOD: text})
    assert vars(sys.modules[methods.find("shortest_first").__module__])["LENGTH"] == 3


def test_an_edit_of_a_plugin_makes_its_results_again_and_of_a_package_the_version(
    home: Path, lab: Path
) -> None:
    def keys() -> list[str]:
        names = ("shortest_first", "longest_first", "fill_mask")
        return [method_code(name, Path("model")) for name in names]

    before = keys()
    for file in (Path(METHOD), lab / "lab/order.py"):
        file.write_text(file.read_text() + "# a word\n")
    assert [old != new for old, new in zip(before, keys(), strict=True)] == [True, False, False]
    methods.find("longest_first").VERSION += 1
    assert keys()[1] != before[1]


def test_an_edit_of_a_backend_makes_the_results_of_its_models_again(home: Path) -> None:
    model = model_of(home / "model")
    before = [method_code("answering", folder) for folder in (model, home)]
    Path(BACKEND).write_text(Path(BACKEND).read_text() + "# a word\n")
    after = [method_code("answering", folder) for folder in (model, home)]
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)


BROKEN = {
    "a syntax error": ("def f(:\n", r"plugins/methods/broken\.py, line 1: invalid syntax"),
    "a failing line": ("\nx = y\n", r"plugins/methods/broken\.py, line 2: NameError: name 'y'"),
    "no class": ("x = 1\n", r"plugins/methods/broken\.py: defines no Broken that is a Method"),
    "no method": ("class Broken: ...\n", r"broken\.py: defines no Broken that is a Method"),
    "no kinds": (
        "from medprobe.methods import Method\nclass Broken(Method): ...\n",
        r"plugins/methods/broken\.py: Broken has no KINDS",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_is_one_line_that_names_its_file(home: Path, case: str) -> None:
    text, line = BROKEN[case]
    write(home, {"plugins/methods/broken.py": text})
    with pytest.raises(BadInput, match=line) as error:
        methods.find("broken")
    assert "\n" not in str(error.value)


def test_a_broken_metric_is_named_where_it_is_only_read(home: Path) -> None:
    write(home, {METRIC: "def f(:\n"})
    for use in (metrics.catalog, lambda: metrics.find("ndcg")):
        with pytest.raises(BadInput, match=r"plugins/metrics/ndcg\.py"):
            use()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("fill_mask", "'fill_mask' is the name of one of medprobe's own methods"),
        ("longest_first", "'longest_first' is also in lab==1.5, lab.methods.longest_first"),
        ("not-a-name", "'not-a-name' is not a name of letters, digits and _"),
    ],
)
def test_a_name_is_that_of_one_plugin(home: Path, lab: Path, name: str, line: str) -> None:
    write(home, {f"plugins/methods/{name}.py": ""})
    with pytest.raises(BadInput, match=rf"plugins/methods/{name}\.py: {line}"):
        methods.list_names()


def test_metrics_of_two_families_have_two_names(home: Path) -> None:
    write(home, {METRIC: WRITTEN[METRIC].replace("ndcg_at_10", "acc_at_1")})
    with pytest.raises(BadInput, match="metrics, ndcg: 'acc_at_1' is another metric of accuracy"):
        metrics.catalog()


def test_a_link_out_of_the_folder_is_refused(home: Path) -> None:
    write(home, {"outputs/evil.py": "raise SystemExit\n"})
    Path("plugins/methods/evil.py").symlink_to("../../outputs/evil.py")
    with pytest.raises(BadInput, match=r"plugins/methods/evil\.py: a link to a file outside"):
        methods.list_names()


def test_an_entry_point_to_nothing_is_named(home: Path, lab: Path) -> None:
    shutil.rmtree(lab / "lab")
    with pytest.raises(BadInput, match=r"lab==1\.5: its entry point names a package lab,"):
        metrics.list_names()


def model_of(folder: Path, **changes: object) -> Path:
    """The folder of a model that the backend of extending.md opens."""
    model = json.dumps({**json.loads(BACKEND_MODEL), **changes})
    write(folder, {"backend.json": model, "facts.csv": "subject,object\nvelotrine,Fever\n"})
    return folder


@pytest.mark.parametrize("name", ["lookup", "lab_lookup"])
def test_a_backend_answers(home: Path, lab: Path, name: str) -> None:
    model = medprobe.load(model_of(home / "model", backend=name))
    assert model.kinds == ("causal",)
    assert list(model.ask("velotrine may cause [Y] .", "answering")["answer"]) == ["Fever"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"backend": "lokup"}, r"model: no backend 'lokup' \(did you mean 'lookup'\?\)"),
        ({"abilities": ["echo"]}, r"plugins/backends/lookup\.py: Lookup has no text_log_probs"),
        ({"abilities": ["weights"]}, r"backend\.json: abilities\.0: Input should be 'write'"),
        ({"kinds": []}, r"backend\.json: kinds: Tuple should have at least 1 item"),
        ({"kind": "causal"}, r"backend\.json: unknown key kind \(did you mean 'kinds'\?\)"),
    ],
)
def test_a_backend_that_does_not_fit_its_model_is_named(
    home: Path, changes: dict[str, object], line: str
) -> None:
    folder = model_of(home / "model", **changes)
    with pytest.raises(BadInput, match=line):
        medprobe.load(folder).ask("velotrine may cause [Y] .", "answering")


PARAMS = {
    "train": {},
    "continued": {},
    "sentence_sets": {},
    "folders": {"mine": "model", "facts": "facts"},
    "models": {"masked": {"mine": {}}, "causal": {"facts": {}}},
    "benchmarks": {"side_effects": {"side_effects": {}}, "lab_effects": {"lab_effects": {}}},
    "methods": {
        "masked": {
            "shortest_first": {"side_effects": {"longest": 60}, "lab_effects": {}},
            "longest_first": {"side_effects": {}},
        },
        "causal": {"answering": {"side_effects": {}}},
    },
    "score": {"bootstrap": 50},
}
FACTS = "drug,effect\nvelotrine,rash\nvelotrine,fever\nbrantol,dry mouth\n"


@pytest.mark.full
def test_stages_of_plugins_run(tmp_path: Path, tiny_model: FolderOf) -> None:
    site = tmp_path / "site"
    write(site, LAB)
    project = Project(tmp_path / "home")
    shutil.copytree(tiny_model("bert"), project.folder / "model")
    suites = {
        path.replace("side_effects", "lab_effects"): text
        for path, text in WRITTEN.items()
        if path.startswith("expectations")
    }
    write(project.folder, {**WRITTEN, **suites, "data/side_effects.csv": FACTS})
    model_of(project.folder / "facts")
    project.replace(**PARAMS)
    installed = {**environment(), "PYTHONPATH": os.fspath(site)}

    def works(*command: str) -> str:
        return project.works(*command, **installed)

    for builder in ("side_effects", "lab_effects"):
        block = project.run("medprobe", "check", **installed).stdout.partition("Error")[0]
        assert f"build-{builder}:" in block
        with (project.folder / "dvc.yaml").open("a") as file:
            file.write(block)
    works("dvc", "repro", "compare")
    assert "params.yaml is valid" in works("medprobe", "doctor")
    doctor = json.loads(works("medprobe", "doctor", "--json"))
    assert {plugin["plugin"]: plugin["origin"] for plugin in doctor["plugins"]} == {
        "shortest_first": METHOD,
        "side_effects": BENCHMARK,
        "ndcg": METRIC,
        "longest_first": "lab==1.5, lab.methods.longest_first",
        "lab_effects": "lab==1.5, lab.benchmarks.lab_effects",
        "gain": "lab==1.5, lab.metrics.gain",
        "lookup": BACKEND,
        "lab_lookup": "lab==1.5, lab.backends.lab_lookup",
    }
    assert {"backend lookup, can write"} < {row["checkpoint"] for row in doctor["models"]}
    assert not stale(works)
    append(project.folder / METHOD)
    both = {"probe-masked@mine", "probe-causal@facts"}  # of the kinds that the method can probe
    assert stale(works) == both
    works("dvc", "repro", *both)
    append(site / "lab/order.py")
    assert not stale(works)  # an installed package has versions
    assert predictions(project, "shortest_first") == ["rash", "fever", "dry mouth"]
    assert predictions(project, "longest_first") == ["dry mouth", "fever", "rash"]
    # the free answer Fever is right by the rule of free answers, and of brantol there is no fact
    answers = project.folder / "outputs/predictions/facts/answering/side_effects.parquet"
    rows = pd.read_parquet(answers).sort_values("query_id")
    assert rows[["variant", "prediction", "hit"]].to_numpy().tolist() == [
        ["none-0-shot-free", "", False],
        ["none-0-shot-free", "fever", True],
    ]
    scores = project.folder / "metrics/scores/mine/shortest_first.json"
    of_benchmark = json.loads(scores.read_text())["side_effects"]["default"]["full"]["macro"]
    # of brantol the third name is right, of velotrine the first two
    assert of_benchmark["ndcg_at_10"]["value"] == pytest.approx((0.5 + 1) / 2)
    assert of_benchmark["gain_at_10"] == of_benchmark["ndcg_at_10"]
    assert of_benchmark["acc_at_1"]["value"] == 0.5
    compared = pd.read_csv(project.folder / "reports/comparison.csv")
    scored = compared[compared["metric"] == "ndcg_at_10"]
    assert {"shortest_first", "longest_first", "majority"} <= set(scored["method"])


def append(path: Path) -> None:
    path.write_text(path.read_text() + "# a word\n")


def stale(works: Callable[..., str]) -> set[str]:
    """The probing stages that `dvc status` names."""
    return {name for name in json.loads(works("dvc", "status", "--json")) if "probe" in name}


def predictions(project: Project, method: str) -> list[str]:
    """The names that a method ranks for the first query of side_effects."""
    path = project.folder / f"outputs/predictions/mine/{method}/side_effects.parquet"
    return list(pd.read_parquet(path)["prediction"][:3])
