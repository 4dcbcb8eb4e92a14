"""Batches hold a budget, shrink when memory runs out, and give results in input order."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medprobe.core.errors import BadInput
from medprobe.engine.batching import compute_in_batches, make_batches, pad_rows

LENGTHS = st.lists(st.integers(1, 40))


@given(LENGTHS, st.integers(1, 100))
def test_batches_hold_every_item_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = make_batches(lengths, budget)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget
    in_order = [lengths[place] for batch in batches for place in batch]
    assert in_order == sorted(in_order, reverse=True)


@settings(settings.get_profile("few"))  # each error collects garbage, which takes its time
@given(LENGTHS, st.integers(1, 100), st.integers(40, 60))
def test_results_keep_the_order_of_items_and_memory_errors_halve_batches(
    lengths: list[int], budget: int, room: int
) -> None:
    def compute(batch: list[int]) -> list[int]:
        if len(batch) * max(lengths[i] for i in batch) > room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [lengths[i] * 10 for i in batch]

    assert compute_in_batches(lengths, budget, compute) == [length * 10 for length in lengths]


def test_batches_stay_small_after_memory_ran_out() -> None:
    sizes = []

    def compute(batch: list[int]) -> list[int]:
        sizes.append(len(batch))
        if len(batch) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")
        return batch

    assert compute_in_batches([5] * 16, 40, compute) == list(range(16))
    assert sizes == [8, 4, *[2] * 8]


def test_a_text_that_memory_does_not_hold_alone_is_said_in_one_line() -> None:
    def compute(batch: list[int]) -> list[int]:
        raise MemoryError

    with pytest.raises(BadInput, match="one text of 9 tokens"):
        compute_in_batches([3, 9], 10, compute)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    def compute(batch: list[int]) -> list[int]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        compute_in_batches([3, 9], 10, compute)


def test_padding_stands_on_the_right_and_is_masked() -> None:
    ids, mask = pad_rows([[5, 6, 7], [8]], 9, torch.device("cpu"))
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]
