"""`medprobe ask` against a search by hand."""

from pathlib import Path

import pandas as pd
import pytest

from helpers import FolderOf, probing
from medprobe import methods
from medprobe.cli.ask import answers, ask, split_names
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from methods.test_mask_average import slow

PROMPT = "velotrine may treat [Y] ."
NAMES = ["Karsten syndrome", "SNCA", "chronic pain", "hepatitis B", "influenza", "pneumonia"]
CANDIDATES = probing.candidates(NAMES)
QUERIES = probing.queries(answers=NAMES[2:4]).assign(benchmark="drugs", relation="treats")
PARAMS = Params.model_validate(
    {
        "models": {"masked": {"bert": {}}},
        "methods": {"masked": {"mask_average": {"drugs": {}}, "perplexity": {"drugs": {}}}},
    }
)


@pytest.fixture
def project(tiny_model: FolderOf, working_folder: Path) -> None:
    """A benchmark and a model."""
    BenchmarkTables(QUERIES, CANDIDATES).write(places.BENCHMARKS / "drugs")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "bert").symlink_to(tiny_model("bert"))


@pytest.mark.usefixtures("project")
def test_ask_shows_the_answers_of_the_model(
    tiny_model: FolderOf, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand = slow(tiny_model("bert"), probing.queries([PROMPT]), NAMES, 3)
    expected = by_hand.loc[by_hand["variant"] == "", "prediction"].tolist()
    for model in ("bert", str(tiny_model("bert"))):
        best = answers(model, PROMPT, "mask_average", "drugs", PARAMS, k=3)
        assert best["prediction"].tolist() == expected
    ask("bert", PROMPT, "mask_average", "drugs", PARAMS)
    printed = capsys.readouterr().out
    assert all(name in printed for name in NAMES)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bert", "velotrine", "mask_average", "drugs"), "and has 0"),
        (("bart", "[Y]", "mask_average", "drugs"), "no model 'bart'"),
        (("bert", "[Y]", "mask_mean", "drugs"), "no method 'mask_mean'"),
        (("bert", "[Y]", "mask_average", "lama"), "no benchmark 'lama'"),
        (("bert", "[Y]", "perplexity", "drugs"), "this method does not rank candidates"),
    ],
)
def test_ask_refuses_what_it_cannot_answer(
    arguments: tuple[str, str, str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match=says):
        ask(*arguments, PARAMS)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("method", methods.list_names())
def test_every_method_answers_or_names_a_method_that_can(method: str, tiny_model: FolderOf) -> None:
    tiny_models = {"masked": "bert", "causal": "gpt2", "seq2seq": "t5"}
    kind = next(kind for kind in methods.find(method).KINDS if kind in tiny_models)
    arguments = (str(tiny_model(tiny_models[kind])), PROMPT, method, "drugs", PARAMS)
    if methods.find(method).METRIC != "accuracy":
        with pytest.raises(BadInput, match="does not rank candidates; choose one of") as error:
            answers(*arguments)
        for name in str(error.value).rpartition("one of ")[2].split(", "):
            assert kind in methods.find(name).KINDS
    elif method == "optiprompt":  # which trains first
        with pytest.raises(BadInput, match=r"drugs: no table train.* choose a benchmark with"):
            answers(*arguments)
    else:
        assert answers(*arguments, k=3)["rank"].tolist()[0] == 1


@pytest.mark.usefixtures("project")
def test_a_prompt_of_the_benchmark_is_asked_among_the_names_of_its_subset() -> None:
    other = CANDIDATES.assign(subset="other", name="elsewhere " + CANDIDATES["name"])
    both = pd.concat([CANDIDATES, other], ignore_index=True)
    BenchmarkTables(QUERIES, both).write(places.BENCHMARKS / "drugs")
    for prompt, among in ((QUERIES["prompt"].iloc[0], CANDIDATES), (PROMPT, both)):
        best = answers("bert", prompt, "mask_average", "drugs", PARAMS, k=30)
        assert set(best["prediction"]) == set(among["name"])


@pytest.mark.usefixtures("project")
def test_answers_are_marked_where_the_benchmark_knows_them() -> None:
    query = QUERIES.iloc[0]
    best = answers("bert", query["prompt"], "mask_average", "drugs", PARAMS, k=10)
    assert set(best.loc[best["hit"], "prediction"]) == set(query["answers"]) & set(NAMES)
    assert "hit" not in answers("bert", PROMPT, "mask_average", "drugs", PARAMS, k=3)


@pytest.mark.usefixtures("project")
def test_names_are_ranked_without_a_benchmark(
    tiny_model: FolderOf, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = Params.model_validate({})
    ask(str(tiny_model("bert")), PROMPT, "mask_average", None, nothing, names=NAMES[:3])
    printed = capsys.readouterr().out
    assert [name for name in NAMES if name in printed] == NAMES[:3]


def test_names_are_listed_with_commas_or_in_a_file(working_folder: Path) -> None:
    Path("names.txt").write_text("pain\n\nfever, high\n", encoding="utf-8")
    assert split_names("names.txt") == ["pain", "fever, high"]
    assert split_names("pain, fever,") == ["pain", "fever"]


@pytest.mark.usefixtures("project")
def test_the_names_of_a_file_of_facts_are_ranked(
    tiny_model: FolderOf, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As of `run`, but without prompts."""
    path = tmp_path / "facts.csv"
    rows = [f"velotrine,treats,{name}\n" for name in (*NAMES[:3], NAMES[0])]
    path.write_text("".join(["subject,relation,object\n", *rows]), encoding="utf-8")
    ask(str(tiny_model("bert")), PROMPT, "mask_average", str(path), Params.model_validate({}))
    printed = capsys.readouterr().out
    ask(str(tiny_model("bert")), PROMPT, "mask_average", None, PARAMS, names=NAMES[:3])
    assert printed == capsys.readouterr().out


def test_a_file_of_facts_without_rows_is_named(tmp_path: Path, tiny_model: FolderOf) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,relation,object\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"facts.csv: no rows"):
        ask(str(tiny_model("bert")), PROMPT, "mask_average", str(path), Params.model_validate({}))


def test_a_method_that_no_gguf_file_serves_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"of gigabytes")
    with pytest.raises(BadInput, match="a GGUF file is a model that writes; choose one of"):
        ask(str(file), PROMPT, "mask_average", None, PARAMS, names=["pain"])


def test_an_encoder_that_is_given_no_names_asks_for_them(tiny_model: FolderOf) -> None:
    with pytest.raises(BadInput, match=r"writes no answers; give the names to rank: --names"):
        ask(str(tiny_model("encoder")), PROMPT, None, None, Params.model_validate({}))
