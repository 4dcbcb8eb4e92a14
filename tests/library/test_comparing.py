"""Two models on the same facts: which one knows more, by how much, on how many of them."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

import medprobe
from helpers import FolderOf
from medprobe.cli import main
from medprobe.core.errors import BadInput

DRUGS = ("aspirin", "metformin", "salbutamol", "insulin", "heparin", "warfarin", "ibuprofen")
FACTS = pd.DataFrame(
    {
        "subject": DRUGS,
        "relation": ["treats"] * 4 + ["causes"] * 3,
        "object": ["pain", "fever", "gout", "fever", "rash", "pain", "gout"],
    }
)
PROMPTS = {"treats": "[X] treats [Y] .", "causes": "[X] causes [Y] ."}


@pytest.fixture(scope="module")
def results(tiny_model: FolderOf) -> list[medprobe.ProbeResult]:
    models = [medprobe.load(str(tiny_model(arch))) for arch in ("bert", "bart")]
    methods = ("mask_average", "generative")
    return [
        medprobe.probe(model, FACTS, method, prompts=PROMPTS)
        for model, method in zip(models, methods, strict=True)
    ]


def test_models_of_different_kinds_are_compared(results: list[medprobe.ProbeResult]) -> None:
    first, second = results
    found = medprobe.compare(first, second)
    rights = [
        result.predictions.query("variant == '' and rank == 1").set_index("query_id")["hit"]
        for result in results
    ]
    ids = first.tables.queries["query_id"]
    a, b = (right.reindex(ids, fill_value=False).astype(bool).to_numpy() for right in rights)
    assert (found.only_first, found.both) == ((a & ~b).sum(), (a & b).sum())
    assert (found.only_second, found.neither) == ((~a & b).sum(), (~a & ~b).sum())
    scores = [
        float(
            result.scores.query("relation == 'macro' and metric == 'acc_at_1' and subset == 'full'")
            .sort_values("method", key=lambda names: names.str.len())["value"]
            .iloc[0]
        )
        for result in results
    ]
    assert found.difference == pytest.approx(scores[0] - scores[1], abs=1e-6)
    assert {*found.by_relation["relation"]} == {"treats", "causes"}
    turned = medprobe.compare(second, first)
    assert (turned.difference, turned.p) == pytest.approx((-found.difference, found.p))


def test_other_facts_or_metrics_are_refused(results: list[medprobe.ProbeResult]) -> None:
    with pytest.raises(BadInput, match="has no acc_at_7"):
        medprobe.compare(*results, metric="acc_at_7")


def test_run_compares_two_models_and_says_what_the_facts_can_show(
    working_folder, tiny_model: FolderOf
) -> None:
    FACTS.to_csv("facts.csv", index=False)
    pd.Series(PROMPTS, name="template").rename_axis("relation").to_csv("prompts.csv")
    models = [str(tiny_model(arch)) for arch in ("bert", "roberta")]
    command = ["run", *models, "--benchmark", "facts.csv", "--prompts", "prompts.csv"]
    printed = CliRunner().invoke(main, command)
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.startswith("What 7 facts can show: ")
    assert "facts right: only" in printed.stdout and "majority baseline" in printed.stdout
    content = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    assert len(content["models"]) == 2
    [found] = content["comparisons"]
    counts = [found[name] for name in ("only_first", "both", "only_second", "neither")]
    assert sum(counts) == 7
    refused = CliRunner().invoke(main, [*command, "--out", "predictions.parquet"])
    assert refused.exit_code == 2
