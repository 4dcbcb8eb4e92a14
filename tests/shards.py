"""Benchmarks that are built from UMLS files, of which each has several shards."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

import made_diskne
import test_context
import test_medlama
from medprobe.cluster.files import Files, pack
from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.parts import Executor
from medprobe.sources import rrf
from medprobe.stages.build import build

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "medlama": {"relations": ["may_treat"], "min_queries": 1},
    "diskne": {"negatives": 2, "hypothesis": "surface"},
    "context": {
        **test_context.CHOICES,
        "resources": {"clinic": {"form": "texts", "path": "articles/clinic.jsonl"}},
    },
}


def write(builder: str) -> None:
    """The sources of a builder, below the folder where the test is."""
    if builder == "medlama":
        # one end's atom is missing, and its concept's last name stands for it
        treats = [*test_medlama.TREATS, ("C2", "A9", "C4", "A4", "may_treat", "NCI")]
        test_medlama.write_umls(places.DATA, test_medlama.CONCEPTS, treats)
    elif builder == "diskne":
        made_diskne.write(places.DATA)
    else:
        test_context.write_umls(places.DATA / "umls", test_context.CONCEPTS, test_context.FACTS)
        row = json.dumps({"id": "note-1", "text": test_context.CASE})
        made_diskne.lines(places.DATA / "articles/clinic.jsonl", [row])


def built(builder: str, executor: Executor) -> Files:
    """All files of the benchmark, built anew."""
    if places.PARTS.exists():
        places.PARTS.rename(f"before-{len(list(Path().iterdir()))}")
    params = Params.model_validate({"benchmarks": {builder: {"made": SETTINGS[builder]}}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rrf, "SHARD", 150)  # bytes: some three lines
        build("made", params, executor)
    return pack(places.BENCHMARKS / "made")
