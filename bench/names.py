"""Consistency, judged by models of which it is known under which names they have read a fact.

    python -m bench.names --seeds 3 --out bench/names.csv

Each seed is a sample world of its own, below outputs/names/<seed>, with three masked models of one
size and training length:

- `both` has read half of the facts about drugs under the drug's own name and under its brand.
- `one` has read the same facts under the own name only.
- `shuffled` has read both names with the objects of other drugs.

All three have read of both names in facts that are never asked about. Wordings are MedLAMA's and
ours; only the first is one of those that the models have read. What is finished is not done again.
The numbers are agreement and rightness within families, and the entropy of the benchmark's own
queries by how often a model has read their facts.
"""

import argparse
import random
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml

from bench.calibration import paired_test, times_read
from medprobe.core import params as settings
from medprobe.core import places
from medprobe.core.params import ScoreParams
from medprobe.core.tables import BenchmarkTables, read_predictions
from medprobe.extensions.families.metrics.consistency import by_change, by_family, read_members
from medprobe.extensions.trust.metrics.trust import rankings
from medprobe.metrics import FACTS, Scoring
from medprobe.metrics.results import write_csv
from medprobe.metrics.summary import read_queries
from medprobe.pipeline.sample import sample
from medprobe.pipeline.stages.build import build
from medprobe.pipeline.stages.probe import probe
from medprobe.pipeline.stages.train import train
from medprobe.report.sections.calibration import NEVER
from medprobe.sample.corpus import list_documents
from medprobe.sample.files import write_lines
from medprobe.sample.settings import SampleSettings
from medprobe.sample.world import Entity, Fact, World
from medprobe.sample.world import build as build_world

FOLDER: Final = Path("outputs/names")
RESULT: Final = Path("bench/names.csv")
FIRST: Final = 2021  # the seed of the first world
BENCHMARK: Final = "names"
MODELS: Final = {"both": "taught", "one": "taught", "shuffled": "shuffled"}  # with their cases
PAIRS: Final = (("both", "one"), ("both", "shuffled"), ("one", "shuffled"))
RELATIONS: Final = ["may_treat", "may_prevent", "has_physiologic_effect"]
ENTROPY: Final = "entropy"
NUMBERS: Final = ("name", "wording", "right_under_all", "right_under_any", ENTROPY)
COLUMNS: Final = ["number", "read", "of", "value", "low", "high", "p", "n"]


def main() -> None:
    """Make the worlds, measure them together, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.names")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    seeds = range(FIRST, FIRST + options.seeds)
    values = pd.concat([measure(make(seed), seed) for seed in seeds], ignore_index=True)
    write_csv(pd.DataFrame(summarise(values), columns=COLUMNS), options.out)


def make(seed: int) -> Path:
    """Make what is missing of a world, its models and their predictions; returns its folder."""
    folder = FOLDER / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(of_world(seed), sort_keys=False), "utf-8")
    with chdir(folder):
        params = settings.load_params()
        if not places.DATA.exists():
            sample(places.DATA, params.sample, seed)
            write_corpora(build_world(SampleSettings(**params.sample), seed), seed)
            build(BENCHMARK, params)
        for model in MODELS:
            out = places.PREDICTIONS / model / "mask_average" / f"{BENCHMARK}.parquet"
            if not out.exists():
                begun = time.process_time()
                train(model, params, places.MODELS / model)
                probe(model, "mask_average", BENCHMARK, params)
                print(f"{seed} {model}: {time.process_time() - begun:.0f} CPU s", flush=True)
    return folder


def of_world(seed: int) -> dict[str, Any]:
    """The params.yaml of a world, from that of the project."""
    project = yaml.safe_load(Path("params.yaml").read_text("utf-8"))
    recipe = project["train"]["taught"]
    families = {"names": {"subjects": ["brand"], "at_most": 1}}
    chosen = {"per_relation": 40, "relations": RELATIONS, "families": families}
    return {
        **{key: project[key] for key in ("engine", "rewire", "score", "track")},
        "seed": seed,
        "sample": {**project["sample"], "shuffled": True},
        "train": {name: {**recipe, "corpus": name} for name in MODELS},
        "models": {"masked": {name: {} for name in MODELS}},
        "benchmarks": {"medlama": {BENCHMARK: chosen}},
        "methods": {"masked": {"mask_average": {BENCHMARK: {}}}},
    }


def write_corpora(world: World, seed: int) -> None:
    """Write what the three models read, next to the corpora of the sample world."""
    texts = places.DATA / "sample"
    read = {
        "both": with_brands(world.facts),
        "one": world.facts,
        "shuffled": with_brands(world.shuffled),
    }
    others = with_brands(world.other_facts)
    for name, facts in read.items():
        lines = list_documents((*facts, *others), random.Random(f"{seed} {name}"))
        write_lines(texts / f"corpus-{name}.txt", lines)
        if name != MODELS[name]:
            shutil.copyfile(texts / f"cases-{MODELS[name]}.txt", texts / f"cases-{name}.txt")
    names = [entity.name for entity in world.entities]
    write_lines(texts / "names.txt", [*names, *(e.brand for e in world.entities if e.brand)])


def with_brands(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts, and those about drugs a second time under their brands."""
    facts = tuple(facts)
    renamed = [
        replace(fact, subject=_by_brand(fact.subject), object=_by_brand(fact.object))
        for fact in facts
    ]
    return (*facts, *(new for new, old in zip(renamed, facts, strict=True) if new != old))


def _by_brand(entity: Entity) -> Entity:
    return replace(entity, name=entity.brand) if entity.brand else entity


def measure(folder: Path, seed: int) -> pd.DataFrame:
    """One row per model, number and fact: `model, number, query, read, cluster, answer, value`."""
    with chdir(folder):
        benchmark = places.BENCHMARKS / BENCHMARK
        queries = BenchmarkTables.read(benchmark).queries
        facts = pd.read_csv(places.DATA / "sample" / FACTS)
        read = times_read(queries[queries["family_id"] == ""], facts)
        parts = []
        for model in MODELS:
            path = places.PREDICTIONS / model / "mask_average" / f"{BENCHMARK}.parquet"
            scoring = Scoring(ScoreParams(), seed, "subject_id")
            table = next(read_predictions(path, lambda variant: variant == ""))
            members = read_members(table, benchmark, scoring)
            numbers = [*_numbers(members), _entropies(table, benchmark, scoring)]
            parts += [part.assign(model=model) for part in numbers]
    rows = pd.concat(parts, ignore_index=True)
    keys = {name: f"{seed} " + rows[name] for name in ("cluster", "answer")}
    times = rows["query_id"].map(read)
    is_read = (times != NEVER).map({True: "read", False: "never read"})
    of_entropy = rows["number"] == ENTROPY
    return rows.assign(
        query=f"{seed} " + rows["query_id"], read=times.where(of_entropy, is_read), **keys
    )


def _entropies(table: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
    """The entropy over concepts of each of the benchmark's own queries, in nats."""
    queries = read_queries(benchmark, scoring.cluster)
    originals = queries[queries["family_id"] == ""]
    rows = rankings(table[table["query_id"].isin(originals["query_id"])], originals, benchmark)
    return rows[["query_id", "cluster", "answer"]].assign(number=ENTROPY, value=-rows["entropy"])


def _numbers(members: pd.DataFrame) -> Iterator[pd.DataFrame]:
    columns = ["query_id", "cluster", "answer"]
    changes = by_change(members)
    for change in ("name", "wording"):
        rows = changes[changes["subset"].str.endswith(f"change:{change}")]
        yield rows[columns].assign(number=change, value=rows["consistency"])
    whole = by_family(members)
    for number in ("right_under_all", "right_under_any"):
        yield whole[columns].assign(number=number, value=whole[number])


def summarise(values: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The mean of each model, and the paired differences between models, of all worlds together."""
    for number in NUMBERS:
        for read, rows in values[values["number"] == number].groupby("read", sort=True):
            table = rows.set_index("query")
            by_model = {model: table[table["model"] == model] for model in MODELS}
            for model, rows_of_model in by_model.items():
                about = {"number": number, "read": read, "of": model}
                yield (
                    about
                    | paired_test(rows_of_model.assign(difference=rows_of_model["value"]))
                    | {"p": None}
                )
            for a, b in PAIRS:
                difference = by_model[a]["value"] - by_model[b]["value"]
                about = {"number": number, "read": read, "of": f"{a} - {b}"}
                yield about | paired_test(by_model[a].assign(difference=difference))


if __name__ == "__main__":
    main()
