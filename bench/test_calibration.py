"""What bench/calibration.py makes, measures and writes."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from bench import calibration, worlds
from bench.calibration_document import BLOCK, DOCUMENT, PICTURES, drawings, update
from bench.calibration_table import TaughtSystem, evidence, read_table, seeds
from medprobe.core.params import Params, load_params
from medprobe.report.sections.calibration import DOSES
from medprobe.sample.settings import SampleSettings, find_recipe
from medprobe.sample.world import Fact, World, build

SHARES = {"0": 0.1, "1": 0.5, "2": 0.8, "3-4": 0.9}  # right of the facts read so often
FLAT = dict.fromkeys(SHARES, 0.1)


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> Params:
    project = yaml.safe_load(Path("params.yaml").read_text("utf-8"))
    path = tmp_path_factory.mktemp("world") / "params.yaml"
    path.write_text(yaml.safe_dump(worlds.of_world(project, 5)), "utf-8")
    return load_params(path)


@pytest.fixture(scope="module")
def world(params: Params) -> World:
    return build(SampleSettings(**params.sample), params.seed)


def planted(method: str = "mask_average", **shares: dict[str, float]) -> pd.DataFrame:
    """Values of two worlds, 20 queries for each number of readings, so many of them right."""
    rows = []
    for corpus in ("taught", "untaught", "shuffled"):
        for read, share in shares.get(corpus, FLAT).items():
            for number in range(40):
                place = f"{number % 2} {read} {number // 2}"
                keys = ("medlama", "acc_at_1", "taught", method, str(number % 2), corpus)
                right = float((number * 7) % 40 < round(40 * share))
                rows.append((*keys, place, read, place, place, right))
    columns = ["world", "corpus", "query", "read", "cluster", "answer", "value"]
    return pd.DataFrame(rows, columns=[*calibration.SYSTEM, *columns])


def only(values: pd.DataFrame) -> TaughtSystem:
    [system] = evidence(calibration.table(values))
    return system


def test_a_planted_dose_response_is_in_the_table() -> None:
    system = only(planted(taught=SHARES))
    assert [system.get("taught", read).value for read in DOSES] == [0.1, 0.5, 0.8, 0.9]
    assert [system.get("untaught", read).value for read in DOSES] == [0.1] * 4
    assert system.get("taught - shuffled", "read").value == pytest.approx(0.6333, abs=1e-3)
    assert system.finding == "finds facts"
    weak, strong = (system.get("power against untaught", str(size)).value for size in (20, 160))
    assert 0.3 < weak < strong == 1


def test_without_one_the_table_shows_nothing() -> None:
    system = only(planted())
    assert system.finding == "nothing shown"
    assert system.get("taught - untaught", "read").p == 1
    assert system.get("power against untaught", "160").value == 0


def test_names_alone_and_reversals_are_called_so() -> None:
    assert only(planted(taught=SHARES, shuffled=SHARES)).finding == "finds names, no facts shown"
    worse = only(planted(untaught=SHARES, shuffled=SHARES))
    assert worse.finding == "nothing shown; reversed: untaught, shuffled"
    guessing = only(planted(taught={**SHARES, "0": 0.9}))
    assert guessing.finding == "finds facts; above untaught on facts never read, too"


def test_variants_with_the_same_result_are_one_row() -> None:
    again = pd.concat([planted(f"x{variant}", taught=SHARES) for variant in ("", ":a", ":b")])
    again.loc[again["method"] == "x:b", "value"] = 0.0
    systems = evidence(calibration.table(again))
    assert [(system.method, system.same) for system in systems] == [("x", "x:a"), ("x:b", "")]


def test_perplexity_is_better_where_it_is_lower() -> None:
    values = planted(taught=SHARES).assign(metric="perplexity")
    values["value"] = 100 / (1 + values["value"] + np.arange(len(values)) % 7 / 100)
    assert only(values).finding == "finds facts"


def test_a_fact_is_asked_for_where_one_name_is_in_the_prompt_and_the_other_an_answer() -> None:
    facts = pd.DataFrame({"subject": ["ab", "cd"], "object": ["x", "x"], "times": [4, 0]})
    queries = pd.DataFrame(
        {
            "query_id": ["1", "2", "3", "4"],
            "prompt": ["ab treats [Y] .", "[Y] treats x .", "cd treats [Y] .", "ef treats [Y] ."],
            "answers": [["x"], ["ab"], ["x", "y"], ["x"]],
        }
    )
    read = calibration.times_read(queries, facts)
    assert read.to_dict() == {"1": "3-4", "2": "3-4", "3": "0"}


def test_a_world_has_three_models_of_a_kind_and_no_more_steps_than_it_needs(
    params: Params,
) -> None:
    for of_kind in params.models.by_kind().values():
        corpora = [find_recipe(model, params)[0].corpus for model in of_kind]
        assert sorted(corpora) == (["shuffled", "taught", "untaught"] if of_kind else [])
    steps = [step for step, _ in worlds.steps(params)]
    assert len({*steps}) == len(steps)
    stages = Counter(stage for stage, *_ in steps)
    assert (stages["sample"], stages["build"], stages["train"], stages["rewire"]) == (1, 4, 12, 3)
    methods = {step[2] for step in steps if step[0] == "probe"}
    assert methods.isdisjoint(worlds.LEFT_OUT)


def test_a_world_has_answers_as_skewed_as_medlamas(world: World) -> None:
    def effective(facts: list[Fact]) -> float:
        shares = np.array([*Counter(fact.object for fact in facts).values()]) / len(facts)
        return 1 / (shares**2).sum()

    by_relation = {
        relation: effective([fact for fact in world.facts if fact.relation == relation])
        for relation in {fact.relation for fact in world.facts}
    }
    assert by_relation["place_of_birth"] < 6
    assert by_relation["disease_mapped_to_gene"] < 15
    assert by_relation["gene_encodes_gene_product"] == pytest.approx(40)


def test_the_shuffled_facts_have_the_same_names_as_often_and_other_pairs(world: World) -> None:
    def names(facts: tuple[Fact, ...], end: str) -> Counter:
        return Counter((f.relation, f.times, getattr(f, end).cui) for f in facts if f.times)

    def hands(facts: tuple[Fact, ...]) -> dict[tuple[str, str], set[str]]:
        objects: dict[tuple[str, str], set[str]] = {}
        for fact in facts:
            if fact.times:
                objects.setdefault((fact.relation, fact.subject.cui), set()).add(fact.object.cui)
        return objects

    assert names(world.shuffled, "object") == names(world.facts, "object")
    taught, shuffled = hands(world.facts), hands(world.shuffled)
    assert taught.keys() == shuffled.keys()
    overlaps = [key for key, objects in taught.items() if objects & shuffled[key]]
    assert len(overlaps) < 0.25 * len(taught)


def test_the_document_and_its_drawings_show_the_measured_figures() -> None:
    text, table = DOCUMENT.read_text(encoding="utf-8"), read_table()
    assert len(BLOCK.findall(text)) == 5
    emptied = BLOCK.sub(lambda match: f"{match[1]}{match[2]}\n", text)
    assert len(emptied) < len(text) / 2
    for document in (text, emptied):
        updated = update(document, table, None)
        assert updated.partition("## What was found")[2] == text.partition("## What was found")[2]
    assert f"{len(seeds(table))} worlds" in text
    for name, svg in drawings(table).items():
        assert (PICTURES / name).read_text(encoding="utf-8") == svg


def test_taught_models_are_above_both_twins_under_every_method_that_asks_by_likelihood() -> None:
    for system in evidence(read_table()):
        if system.method.startswith(("likelihood", "mask_average", "answering")):
            assert system.benchmark in ("lama", "lipid") or system.finding.startswith("finds facts")
