"""The gate's rule for names that look alike."""

import pandas as pd
import pytest

from medprobe.gate.expectations import names
from medprobe.gate.expectations.names import look


@pytest.mark.parametrize(
    "other",
    [
        "acute fever",
        "Acute\u00a0Fever",
        "Acute  Fever",
        "Acute\nFever",
        "Acute Fe\u200bver",
        "Acute Fever.",
    ],
)
def test_names_that_readers_cannot_tell_apart_have_one_look(other: str) -> None:
    assert look(other) == look("Acute Fever")
    rows = pd.DataFrame({"subset": "full", "name": ["Acute Fever", other, "Acute Fevers"]})
    assert names.expect_names_to_look_different(rows) == [True, False, True]


def test_composed_letters_have_one_look() -> None:
    assert look("Sjo\u0308gren") == look("Sjögren")
