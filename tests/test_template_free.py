"""Template-based against template-free probing: the analyses, and what they are made of."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from medprobe.benchmarks.distractors import with_distractors
from medprobe.methods.mask_average import MaskAverage
from medprobe.params import EngineParams
from medprobe.tables import Benchmark

NAMES = ["hepatitis", "Karsten syndrome", "chronic pain"]


def benchmark() -> Benchmark:
    queries = pd.DataFrame(
        {
            "query_id": ["q1", "q2"],
            "prompt": ["Velotrine treats [Y] .", "[Y] may occur after trauma ."],
            "answers": [["hepatitis"], ["chronic pain"]],
            "subset": "squad",
        }
    )
    candidates = pd.DataFrame({"name": NAMES, "id": NAMES, "type": "", "subset": "squad"})
    return Benchmark(queries, candidates)


def test_distractors_are_ranked_in_the_same_pass(tiny_model: Callable[[str], Path]) -> None:
    names = ["fracture of bone", "Karsten syndrome", "influenza"]
    plain = benchmark()
    more = with_distractors(plain, "squad", names)
    method = MaskAverage("m", tiny_model("bert"), MaskAverage.Settings(), EngineParams(), 0)
    found = method.rank(more.queries, more.candidates, 10, "").groupby("variant")
    alone = method.rank(plain.queries, plain.candidates, 10, "").groupby("variant")
    for variant in ("", "relation"):
        pd.testing.assert_frame_equal(
            found.get_group(variant).reset_index(drop=True),
            alone.get_group(variant).reset_index(drop=True),
        )
    assert set(alone.groups) == {"", "relation"}
    assert set(found.get_group("distractors")["prediction"]) == {*NAMES, *names}
    among = found.get_group("distractors")
    left = among[among["prediction"].isin(NAMES)].drop(columns=["variant", "rank"])
    own = found.get_group("").drop(columns=["variant", "rank"])
    pd.testing.assert_frame_equal(left.reset_index(drop=True), own.reset_index(drop=True))
