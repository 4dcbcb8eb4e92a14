"""X-FACTR's nine decodings, against the code that MedLAMA released."""

from functools import cache

import pytest

from helpers import parity
from medprobe.engine.filling import Filling, fill
from medprobe.engine.slots import masked_slots
from medprobe.methods.xfactr import DECODINGS, Xfactr

NOISE = 1e-4  # the released script's, in a log-probability
INPUTS, OUTPUTS = parity.read("xfactr", "inputs"), parity.read("xfactr", "outputs")
MASKS = 5
KINDS = {"as_released": "shared", "one_cursor_per_beam": "own"}  # of order refinement


@cache
def fillings(model: str, decoding: str, cursor: str) -> dict[str, list[Filling]]:
    """All beams of all lengths by prompt, best first."""
    settings = Xfactr.Settings(decodings=(decoding,), cursor=cursor)
    prober = Xfactr(parity.folder(model), settings, parity.ENGINE, 0)
    prompts = [prompt["prompt"] for prompt in INPUTS["prompts"]]
    names = [prompt["id"] for prompt in INPUTS["prompts"]]
    slots = masked_slots(prober.model.tokenizer, prompts, names)
    budget, every = prober.model.token_budget, MASKS * settings.beam
    fillings_by_prompt = fill(prober.model, slots, prober.decoding(decoding), budget, every)
    return dict(zip(names, fillings_by_prompt, strict=True))


def theirs(model: str, decoding: str, kind: str = "as_released") -> dict:
    name = decoding if "+" in decoding else f"{decoding}+none"
    kinds = OUTPUTS[model][name]
    return kinds.get(kind, kinds["as_released"])


def best(candidates: list[Filling], count: int) -> Filling:
    return next(filling for filling in candidates if len(filling.tokens) == count)


def agreeing(decodings: list[str], cursor: str, kind: str = "as_released") -> tuple[int, int]:
    """How many stable best fillings of a prompt and a number of masks are the same, of how many."""
    pairs = [
        (best(prompt_fillings, len(length["ids"])).tokens, tuple(length["ids"]))
        for model in INPUTS["models"]
        for decoding in decodings
        for prompt, prompt_fillings in fillings(model, decoding, cursor).items()
        for length in theirs(model, decoding, kind)[prompt]["lengths"]
        if length["stable"]
    ]
    return sum(ours == released for ours, released in pairs), len(pairs)


WITHOUT = [name for name in DECODINGS if not name.endswith("+order")]
WITH = [name for name in DECODINGS if name.endswith("+order")]


@pytest.mark.parametrize("model", INPUTS["models"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decoding", DECODINGS)
def test_the_best_filling_of_each_length_is_the_same(model, decoding, kind):
    for prompt, fillings_of_prompt in fillings(model, decoding, KINDS[kind]).items():
        for length in theirs(model, decoding, kind)[prompt]["lengths"]:
            if length["stable"]:
                filling = best(fillings_of_prompt, len(length["ids"]))
                assert filling.tokens == tuple(length["ids"]), prompt
                score = sum(length["log_probs"]) / len(length["ids"])
                assert filling.score == pytest.approx(score, abs=1.2 * NOISE)  # and rounding


def choices(decodings: list[str], cursor: str) -> tuple[int, int]:
    """How many final choices among the lengths are the same, of those that noise does not decide:
    by the mean and by the sum of the log-probabilities."""
    same = n = 0
    for model in INPUTS["models"]:
        for decoding in decodings:
            for prompt, prompt_fillings in fillings(model, decoding, cursor).items():
                released = theirs(model, decoding)[prompt]
                for rule, power in (("normalised", 1), ("sum", 0)):
                    scores = sorted(
                        sum(length["log_probs"]) / len(length["ids"]) ** power
                        for length in released["lengths"]
                    )
                    noise = NOISE * (1 if power else MASKS)
                    if not released[rule]["stable"] or scores[-1] - scores[-2] < noise:
                        continue
                    n += 1
                    chosen = max(
                        prompt_fillings, key=lambda f: f.score * len(f.tokens) ** (1 - power)
                    )
                    their_ids = released["lengths"][released[rule]["masks"] - 1]["ids"]
                    same += chosen.tokens == tuple(their_ids)
    return same, n


def test_lengths_compete_the_same_way():
    for decodings, cursor in ((WITHOUT, "own"), (WITH, "shared")):
        same, n = choices(decodings, cursor)
        assert same == n > 0


def test_a_shared_cursor_is_another_search():
    same, n = agreeing(WITH, "own")
    assert same < n
