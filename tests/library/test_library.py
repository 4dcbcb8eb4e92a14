"""`import medprobe`: what notebooks and scripts use, without a project folder."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import transformers

import medprobe
from helpers import ROOT, FolderOf, probing
from helpers.memory import check_model_in_memory
from helpers.toy_project import NAMED, project, score_once
from medprobe import library
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, ScoreParams
from methods.test_mask_average import slow

NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
PROMPT = "velotrine may treat [Y] ."
NAMES = ["Karsten syndrome", "SNCA", "chronic pain", "hepatitis B", "influenza", "pneumonia"]


def test_importing_it_loads_no_library() -> None:
    script = (
        "import sys, medprobe; print(sorted({'torch', 'pandas'} & {*sys.modules}), dir(medprobe))"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout.startswith("[] ")
    assert all(name in process.stdout for name in medprobe.__all__)


def test_every_name_is_handed_on() -> None:
    assert {*medprobe.__all__} == {*library.__all__}
    for name in medprobe.__all__:
        assert getattr(medprobe, name) is vars(library)[name]
    with pytest.raises(AttributeError, match="lode"):
        _ = medprobe.lode  # type: ignore[attr-defined]


def test_names_are_ranked_as_by_hand(tiny_model: FolderOf) -> None:
    model = medprobe.load(tiny_model("bert"))
    ranked = model.rank(PROMPT, NAMES, "mask_average", k=3)
    assert list(ranked) == ["rank", "answer", "score"]
    by_hand = slow(tiny_model("bert"), probing.queries([PROMPT]), NAMES, 3)
    assert list(ranked["answer"]) == list(by_hand.loc[by_hand["variant"] == "", "prediction"])
    assert list(ranked["rank"]) == [1, 2, 3]
    assert ranked["score"].is_monotonic_decreasing


def test_a_model_writes_answers_without_names(tiny_model: FolderOf) -> None:
    for kind, method in (("bert", "fill_mask"), ("t5", "generative")):
        answers = medprobe.load(tiny_model(kind)).ask(PROMPT, method, k=2)
        assert list(answers) == ["rank", "answer", "score"] and 1 <= len(answers) <= 2


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda model: model.rank("no slot", NAMES, "mask_average"), "and has 0"),
        (lambda model: model.rank(PROMPT, [], "mask_average"), "no candidates"),
        (lambda model: model.rank([PROMPT], NAMES, "mask_average"), "prompt: a list; give one"),
        (lambda model: medprobe.load(3), "load: a int; give a path or a name"),
        (lambda model: medprobe.probe("bert", FACTS, ""), "a str; give what medprobe.load"),
        (lambda model: medprobe.probe(model, FACTS, "", confidence=95), "expected a share"),
        (lambda model: medprobe.compare(model, model), "a Model; give two results of probe"),
        (lambda model: model.rank(PROMPT, "fever", "mask_average"), "no list of texts"),
        (lambda model: medprobe.probe(model, [("a", "b", "c")], ""), "facts: a list; give pd.Data"),
        (lambda model: medprobe.probe(model, FACTS, "", prompts=["a"]), "prompts: a list; give {"),
        (
            lambda model: medprobe.probe(model, FACTS, "", prompts={"a": "[Y]"}),
            "relation a: .*no .X",
        ),
        (lambda model: model.rank(PROMPT, NAMES, "mask_avrage"), "did you mean 'mask_average'"),
        (
            lambda model: model.rank(PROMPT, NAMES, "fill_mask"),
            "ranks no candidates; choose one of",
        ),
        (
            lambda model: model.rank(PROMPT, NAMES, "perplexity"),
            "ranks no candidates; choose one of",
        ),
        (lambda model: model.ask(PROMPT, "mask_average"), "one of fill_mask"),
        (lambda model: model.ask(PROMPT, "generative"), "choose one of: .*mask_average"),
        (lambda model: model.ask(PROMPT, "xfactr", settings={"mask": 3}), "did you mean 'masks'"),
        (lambda model: model.rank(PROMPT, NAMES, "mask_average", k=0), "k: 0; give how many"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    ask: Callable[[medprobe.Model], object], says: str, tiny_model: FolderOf
) -> None:
    with pytest.raises(BadInput, match=says):
        ask(medprobe.load(tiny_model("bert")))


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no config\.json"):
        medprobe.load(tmp_path)
    with pytest.raises(BadInput, match="not in the hub's local cache"):
        medprobe.load("nobody/nothing", offline=True)
    (tmp_path / "mine").touch()
    for file in ("model.safetensors", tmp_path / "mine"):
        with pytest.raises(BadInput, match="a file, expected the folder of a checkpoint"):
            medprobe.load(file)


FACTS = pd.DataFrame(
    {
        "subject": [f"drug {i}" for i in range(6)],
        "relation": ["treats", "prevents"] * 3,
        "object": NAMES[:3] * 2,
    }
)
PROMPTS = {"treats": "[X] treats [Y] .", "prevents": "[X] prevents [Y] ."}


def test_a_frame_of_facts_gives_what_its_file_gives(tiny_model: FolderOf, tmp_path: Path) -> None:
    model = medprobe.load(tiny_model("bert"))
    from_frame = medprobe.probe(model, FACTS, "mask_average", prompts=PROMPTS, bootstrap=50)
    FACTS.to_csv(tmp_path / "facts.csv", index=False)
    rows = "\n".join(["relation,template", *(",".join(row) for row in PROMPTS.items())])
    (tmp_path / "prompts.csv").write_text(rows + "\n")
    read = medprobe.probe(
        model,
        tmp_path / "facts.csv",
        "mask_average",
        prompts=tmp_path / "prompts.csv",
        bootstrap=50,
    )
    pd.testing.assert_frame_equal(from_frame.predictions, read.predictions)
    pd.testing.assert_frame_equal(
        from_frame.scores.drop(columns="benchmark"), read.scores.drop(columns="benchmark")
    )
    first = from_frame.predictions.query("variant == '' and rank == 1")
    means = from_frame.scores.query("subset == 'full' and relation == 'micro'")
    means = means[means["method"] == "mask_average"]
    [value] = means[means["metric"] == "acc_at_1"]["value"]
    assert value == pytest.approx(first["hit"].mean(), abs=1e-6)


def test_few_facts_are_drawn_and_wrong_ones_named(tiny_model: FolderOf) -> None:
    model = medprobe.load(tiny_model("bert"))
    few = medprobe.probe(model, FACTS, "fill_mask", prompts=PROMPTS, limit=2, bootstrap=10)
    assert sorted(few.tables.queries["relation"]) == ["prevents", "treats"]
    with pytest.raises(BadInput, match="facts, row 1: no template for relation treats"):
        medprobe.probe(model, FACTS, "fill_mask", prompts={"prevents": "[X] [Y]"})
    with pytest.raises(BadInput, match="facts, row 1: no field 'object'"):
        medprobe.probe(model, FACTS.drop(columns="object"), "fill_mask", prompts=PROMPTS)


@pytest.fixture
def scored_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: FolderOf) -> Path:
    """A project with scores and a model."""
    project(tmp_path, monkeypatch)
    score_once(Params(score=ScoreParams(bootstrap=100), **NAMED))
    places.MODELS.mkdir()
    (places.MODELS / "taught").symlink_to(tiny_model("bert"))
    return tmp_path


def test_results_are_those_of_the_project(
    scored_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    results = medprobe.results(scored_project)
    rows = results.comparison.query("model == 'taught' and relation == 'macro'")
    assert len(rows) and results.significance.empty
    assert results.benchmark("made_up").primary_metric == "acc_at_1"
    assert len(results.queries("made_up")) == 20
    assert results.predictions("taught", "contrastive", "made_up")["hit"].any()
    drawn = medprobe.figure(rows[rows["subset"] == "full"], "acc_at_1")
    assert drawn._repr_svg_().startswith(("<svg", "<?xml"))
    with pytest.raises(BadInput, match="did you mean 'made_up'"):
        results.benchmark("madeup")
    with pytest.raises(BadInput, match="no mean of a metric 'f1'"):
        medprobe.figure(rows, "f1")
    with pytest.raises(BadInput, match="no scores"):
        medprobe.results(scored_project / "outputs")


def test_the_notebook_runs(scored_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, and what a notebook would show is shown: a kernel, which would bring forty more
    packages, does no more for these cells."""
    (scored_project / "docs").mkdir()
    monkeypatch.chdir(scored_project / "docs")
    names: dict[str, object] = {}
    outputs = []
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, NOTEBOOK.name, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
                outputs.append(value._repr_svg_() if hasattr(value, "_repr_svg_") else repr(value))
    assert len(outputs) >= 9
    assert "mask_average" in outputs[0]
    assert sum("<svg" in text for text in outputs) == 2
    assert "may_prevent-0" in outputs[-1], "queries that one model alone answers"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in code), "GitHub shows what is stored"


def test_a_model_in_memory_is_that_of_its_folder(tiny_model: FolderOf) -> None:
    check_model_in_memory(tiny_model("bert"), transformers.AutoModelForMaskedLM, "mask_average")


@pytest.mark.parametrize("arguments", [{}, {"model": 1}, {"path_or_hub": "x", "tokenizer": 1}])
def test_one_model_is_expected(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="expected one model"):
        medprobe.load(**arguments)


@pytest.mark.slow
def test_a_model_is_probed_while_it_trains(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = tiny_model("bert")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    facts = pd.DataFrame(
        [("aspirin", "treats", "fever"), ("adrenaline", "treats", "shock")],
        columns=["subject", "relation", "object"],
    )
    prompts = {"treats": "[X] treats [Y] ."}
    ids = tokenizer("aspirin treats fever .").input_ids
    data = [{"input_ids": ids, "labels": ids}] * 20

    def train(*callbacks: transformers.TrainerCallback) -> tuple[dict, list[dict]]:
        network = transformers.AutoModelForMaskedLM.from_pretrained(folder)
        arguments = transformers.TrainingArguments(
            str(tmp_path),
            max_steps=10,
            per_device_train_batch_size=2,
            report_to=[],
            seed=1,
            use_cpu=True,
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = transformers.Trainer(
            network,
            arguments,
            train_dataset=data,
            processing_class=tokenizer,
            callbacks=[*callbacks],
        )
        trainer.train()
        result = medprobe.load(model=network, tokenizer=tokenizer)
        final = medprobe.probe(result, facts, "mask_average", prompts=prompts, bootstrap=1)
        means = final.scores[final.scores["relation"] == "macro"]
        return dict(zip(means["metric"], means["value"], strict=True)), trainer.state.log_history

    probing = medprobe.callback(facts, "mask_average", every=4, prompts=prompts)
    with_it, history = train(probing)
    without_it, _ = train()
    assert with_it == pytest.approx(without_it, abs=0, nan_ok=True)
    assert [line["step"] for line in probing.history] == [4, 8, 10]
    assert probing.history[-1]["probe_acc_at_1"] == with_it["acc_at_1"]
    assert all(line in history for line in probing.history)


def test_a_trainer_without_tokenizer_stops_before_it_trains(
    tiny_model: FolderOf, tmp_path: Path
) -> None:
    network = transformers.AutoModelForMaskedLM.from_pretrained(tiny_model("bert"))
    arguments = transformers.TrainingArguments(str(tmp_path), report_to=[], use_cpu=True)
    probing = medprobe.callback("facts.csv", "mask_average", every=100)
    data = [{"input_ids": [1, 2], "labels": [1, 2]}]
    trainer = transformers.Trainer(network, arguments, train_dataset=data, callbacks=[probing])
    with pytest.raises(BadInput, match="no tokenizer; give it processing_class=tokenizer"):
        trainer.train()
