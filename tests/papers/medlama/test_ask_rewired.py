"""`medprobe ask` of a model that was rewired, against a search by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import tiny
from medprobe.cli.ask import answers, ask
from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.medlama.settings.rewire import REWIRED
from papers.medlama.test_contrastive import CANDIDATES, NAMES, QUERIES, slow

PROMPT = "velotrine may treat [Y] ."
TinyModel = Callable[[str], Path]


def params(*sets: str) -> Params:
    settings = {"medlama": {"sets": sets, "step": 100}}
    content = {
        "models": {"masked": {"bert": {}}},
        "methods": {"masked": {"contrastive": settings}},
    }
    return Params.model_validate(content)


@pytest.fixture
def project(tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark, and a model that was rewired on two sets."""
    monkeypatch.chdir(tmp_path)
    BenchmarkTables(QUERIES, CANDIDATES).write(places.BENCHMARKS / "medlama")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "bert").symlink_to(tiny_model("bert"))
    for seed in (1, 2):
        tiny.model("encoder", REWIRED / f"bert/set-{seed}/step-100", seed)


@pytest.mark.usefixtures("project")
def test_ask_shows_the_answers_of_the_rewired_model(
    tiny_model: TinyModel, capsys: pytest.CaptureFixture[str]
) -> None:
    for sets in (["set-1", "set-2"], ["set-2"]):
        best = answers("bert", PROMPT, "contrastive", "medlama", params(*sets), k=3)
        rewired = REWIRED / "bert" / sets[0] / "step-100"
        assert list(best["prediction"]) == slow(rewired, NAMES, PROMPT, 3)
    ask("bert", PROMPT, "contrastive", "medlama", params("set-1"))
    printed = capsys.readouterr().out
    assert all(name in printed for name in NAMES)
    ask("bert", PROMPT, None, "medlama", params("set-1"))
    assert capsys.readouterr().out == printed
    folder = str(tiny_model("encoder"))
    best = answers(folder, PROMPT, "contrastive", "medlama", params("set-1"), k=3)
    assert list(best["prediction"]) == slow(tiny_model("encoder"), NAMES, PROMPT, 3)
