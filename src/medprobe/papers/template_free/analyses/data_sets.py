"""The ten data sets that are compared, and where each is among the benchmarks.

Source: Shaier et al., Tables 3 to 5.
"""

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.papers import built_benchmark
from medprobe.core.params import ModelParams, Models
from medprobe.core.tables import QUERY_COLUMNS, read_table


def cut_off(models: Models, folder: Path, probed: list[str]) -> pd.DataFrame:
    """Say for each probed model whether it may have read LIPID's sentences.

    Returns:
        `model, trained_until, cut_off, verdict`; empty where `folder` holds no LIPID. The verdict
        is `unseen` where training ended at the cut-off or before it, `may be read` where it ended
        later, `unknown` where params.yaml does not say.
    """
    path = folder / "queries.parquet"
    if not path.is_file():
        return pd.DataFrame()
    day = str(read_table(path, [*QUERY_COLUMNS, "cut_off"])["cut_off"].max())
    all_models = models.all()
    rows = []
    for name in probed:
        until = all_models.get(name, ModelParams()).trained_until
        verdict = _verdict(name, until, date.fromisoformat(day))
        rows.append((name, until or "not declared", day, verdict))
    return pd.DataFrame(rows, columns=["model", "trained_until", "cut_off", "verdict"])


def _verdict(model: str, until: str | None, day: date) -> str:
    if until is None:
        return "unknown"
    try:
        late = date.fromisoformat(until) > day
    except ValueError:
        where = f"params.yaml: models: {model}.trained_until"
        raise BadInput(where, f"not a date: {until}", "write YYYY-MM-DD") from None
    return "may be read" if late else "unseen"


METHOD: Final = "mask_average"  # ranks a data set's own entities
WITH_DISTRACTORS: Final = f"{METHOD}:distractors"


class DataSet(NamedTuple):
    """A data set: a subset of a benchmark."""

    name: str
    benchmark: str  # what papers call it; in what `data_sets` gives, its own name
    subset: str
    kind: str
    domain: str
    cluster: str = "subject_id"  # the column whose equal values are drawn together


Counted = Callable[[str, str], bool]  # whether a model counts in means on a subset

PAPER: Final = [
    DataSet("CTD", "biolama", "ctd", "template-based", "biomedical"),
    DataSet("Biomed-Wikidata", "biolama", "wikidata", "template-based", "biomedical"),
    DataSet("Google-RE (template)", "lama", "google-re-template", "template-based", "general"),
    DataSet("T-REx (template)", "lama", "t-rex-template", "template-based", "general"),
    DataSet("Google-RE (free)", "lama", "google-re-free", "template-free", "general"),
    DataSet("T-REx (free)", "lama", "t-rex-free", "template-free", "general"),
    DataSet("ConceptNet", "lama", "conceptnet", "template-free", "general"),
    DataSet("SQuAD", "lama", "squad", "template-free", "general"),
    DataSet("LIPID-Chem", "lipid", "chem", "template-free", "biomedical", "answer_ids"),
    DataSet("LIPID-Gene", "lipid", "gene", "template-free", "biomedical", "answer_ids"),
]
PARALLEL: Final = [("Google-RE", "google-re-template", "google-re-free"),
                   ("T-REx", "t-rex-template", "t-rex-free")]  # fmt: skip


def data_sets(builders: Mapping[str, str]) -> list[DataSet]:
    """List the data sets that these benchmarks hold, in the paper's order.

    The names of data sets end with the name of a second form of their benchmark.

    >>> [data.name for data in data_sets({"lipid": "lipid", "newer": "lipid"})]
    ['LIPID-Chem', 'LIPID-Chem, newer', 'LIPID-Gene', 'LIPID-Gene, newer']
    """
    sets = []
    for data in PAPER:
        for index, declared in enumerate(forms(builders, data.benchmark)):
            name = data.name if index == 0 else f"{data.name}, {declared}"
            sets.append(data._replace(name=name, benchmark=declared))
    return sets


def select_counted(table: pd.DataFrame, counted: Counted) -> pd.DataFrame:
    """Select the rows whose `model` counts in means on their `subset`."""
    pairs = zip(table["model"], table["subset"], strict=True)
    return table[np.array([counted(*pair) for pair in pairs], dtype=bool)]


def forms(builders: Mapping[str, str], benchmark: str) -> list[str]:
    """List the project's benchmarks that are a form of this one, the one of its name first."""
    names = [name for name, builder in builders.items() if built_benchmark(builder) == benchmark]
    return sorted(names, key=lambda name: (name != benchmark, name))


def home(sets: list[DataSet], subset: str) -> str:
    """Return the first benchmark that holds this subset, or "" if none does."""
    return next((data_set.benchmark for data_set in sets if data_set.subset == subset), "")
