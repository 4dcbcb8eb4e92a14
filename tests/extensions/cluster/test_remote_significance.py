"""What workers compute for the paired tests is what this process does."""

from pathlib import Path

import pandas as pd
import pytest

from extensions.cluster.remote_executor import run_remotely
from helpers.toy_project import NAMED, project
from medprobe.core.executor import in_this_process
from medprobe.core.params import Params, ScoreParams
from medprobe.core.places import BENCHMARKS, PREDICTIONS
from medprobe.metrics.significance import paired_tests


def test_paired_tests_are_the_same_wherever_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)
    params = Params(score=ScoreParams(bootstrap=100), **NAMED)
    tables = [
        paired_tests(PREDICTIONS, BENCHMARKS, params, executor=executor)
        for executor in (in_this_process, run_remotely)
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
