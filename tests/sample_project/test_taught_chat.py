"""The numbers of the project's own models that chat."""

import json

import pytest

from helpers import ROOT

VARIANTS = [
    f"{template}-{shots}-shot-{form}"
    for template in ("chat", "none")
    for shots in (0, 3)
    for form in ("constrained", "free")
]
SCORES = ROOT / "metrics/scores"


@pytest.mark.skipif(not (SCORES / "untaught-chat").is_dir(), reason="the pipeline has not run")
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_taught_chat_model_is_above_the_untaught_one(variant: str) -> None:
    """However it is asked, and their intervals apart. Those of UMLS are wide: answers that end in
    four words are four families.
    """
    taught, untaught = (
        json.loads((SCORES / model / "answering.json").read_text(encoding="utf-8"))
        for model in ("taught-chat", "untaught-chat")
    )
    for subset in ("ctd", "wikidata", "umls"):
        of_taught, of_twin = (
            model["biolama"][variant][subset]["macro"] for model in (taught, untaught)
        )
        bound = "value" if subset == "umls" else "high"
        assert of_taught["acc_at_1"]["low"] > of_twin["acc_at_1"][bound], subset
