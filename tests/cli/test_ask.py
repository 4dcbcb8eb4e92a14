"""`medprobe ask` against a search by hand."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from helpers import tiny
from medprobe import methods
from medprobe.cli.ask import answers, ask
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.medlama.checkpoints import REWIRED
from papers.medlama.test_contrastive import CANDIDATES, NAMES, QUERIES, slow

PROMPT = "velotrine may treat [Y] ."
TinyModel = Callable[[str], Path]


def params(*sets: str) -> Params:
    settings = {"medlama": {"sets": sets, "step": 100}}
    content = {
        "models": {"masked": {"bert": {}}},
        "methods": {"masked": {"contrastive": settings, "perplexity": {"medlama": {}}}},
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
    ask(str(tiny_model("gpt2")), PROMPT, None, "medlama", params("set-1"))
    assert "(likelihood)" in " ".join(capsys.readouterr().out.split())
    folder = str(tiny_model("encoder"))
    best = answers(folder, PROMPT, "contrastive", "medlama", params("set-1"), k=3)
    assert list(best["prediction"]) == slow(tiny_model("encoder"), NAMES, PROMPT, 3)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bert", "velotrine", "contrastive", "medlama"), "and has 0"),
        (("bart", "[Y]", "contrastive", "medlama"), "no model 'bart'"),
        (("bert", "[Y]", "contrast", "medlama"), "no method 'contrast'"),
        (("bert", "[Y]", "contrastive", "lama"), "no benchmark 'lama'"),
        (("bert", "[Y]", "perplexity", "medlama"), "this method does not rank candidates"),
    ],
)
def test_ask_refuses_what_it_cannot_answer(arguments: tuple[str, str, str, str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ask(*arguments, params("set-1"))


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("method", methods.list_names())
def test_every_method_answers_or_names_a_method_that_can(
    method: str, tiny_model: TinyModel
) -> None:
    tiny_models = {"masked": "bert", "causal": "gpt2", "seq2seq": "t5"}
    kind = next(kind for kind in methods.find(method).KINDS if kind in tiny_models)
    arguments = (str(tiny_model(tiny_models[kind])), PROMPT, method, "medlama", params("set-1"))
    if methods.find(method).METRIC != "accuracy":
        with pytest.raises(BadInput, match="does not rank candidates; choose one of") as error:
            answers(*arguments)
        for name in str(error.value).rpartition("one of ")[2].split(", "):
            assert kind in methods.find(name).KINDS
    elif method == "optiprompt":  # which trains first
        with pytest.raises(BadInput, match=r"medlama: no table train.* choose a benchmark with"):
            answers(*arguments)
    else:
        assert answers(*arguments, k=3)["rank"].tolist()[0] == 1


@pytest.mark.usefixtures("project")
def test_a_prompt_of_the_benchmark_is_asked_among_the_names_of_its_subset() -> None:
    other = CANDIDATES.assign(subset="other", name="elsewhere " + CANDIDATES["name"])
    both = pd.concat([CANDIDATES, other], ignore_index=True)
    BenchmarkTables(QUERIES, both).write(places.BENCHMARKS / "medlama")
    for prompt, among in ((QUERIES["prompt"].iloc[0], CANDIDATES), (PROMPT, both)):
        best = answers("bert", prompt, "contrastive", "medlama", params("set-1"), k=30)
        assert set(best["prediction"]) == set(among["name"])


@pytest.mark.usefixtures("project")
def test_answers_are_marked_where_the_benchmark_knows_them() -> None:
    query = QUERIES.iloc[0]
    best = answers("bert", query["prompt"], "contrastive", "medlama", params("set-1"), k=10)
    assert set(best.loc[best["hit"], "prediction"]) == set(query["answers"]) & set(NAMES)
    assert "hit" not in answers("bert", PROMPT, "contrastive", "medlama", params("set-1"), k=3)
