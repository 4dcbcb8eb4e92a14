"""Names ahead of the best answer where a model can only be asked for whole filled prompts.

What is read of one prompt bounds all that begin like it. Otherwise as `ahead`: the answers come
first, then the prompts that are expected to be likeliest, until k are ahead or no other can be.
"""

from collections.abc import Callable, Sequence

import numpy as np

from medprobe.extensions.likelihood.ahead import SHARE, UNREAD

Rows = Sequence[Sequence[int]]
Read = Callable[[Sequence[int]], list[list[float]]]
WIDTH = 16  # prompts asked for at once at first


class Readings:
    """The filled prompts of a query, and what is known of them.

    Args:
        rows: The token ids of each, from the first that is scored.
        read: Returns the log-probability of each token of some rows, by their indices.
    """

    def __init__(self, rows: Rows, read: Read) -> None:
        self.rows, self._read = [tuple(row) for row in rows], read
        self.lengths = np.array([len(row) for row in rows])
        self.known = np.zeros(len(rows), dtype=int)  # tokens of each row whose sum is known
        self.bounds = np.zeros(len(rows))  # these sums
        self._sums: dict[tuple[int, ...], float] = {}

    def read(self, places: Sequence[int]) -> None:
        """Read rows, and what they tell of others."""
        for place, log_probs in zip(places, self._read(places), strict=True):
            for end, total in enumerate(np.cumsum(log_probs).tolist(), start=1):
                self._sums.setdefault(self.rows[place][:end], total)
        for place, row in enumerate(self.rows):
            end = int(self.known[place])
            while end < len(row) and row[: end + 1] in self._sums:
                end += 1
                self.bounds[place] = self._sums[row[:end]]
            self.known[place] = end

    def find_ahead(
        self, answers: Sequence[int], k: int, *, per_token: bool
    ) -> tuple[list[int], np.ndarray]:
        """Return k rows ahead of the best answer; or all as likely as it, this one too.

        Args:
            answers: Indices of rows.
            k: How many rows decide.
            per_token: Compare means, not totals.

        Returns:
            Indices in their order, and the score of each.
        """
        divisors = self.lengths if per_token else np.ones(len(self.rows))
        is_answer = np.isin(np.arange(len(self.rows)), answers)
        while True:
            scores = self.bounds / divisors
            is_read = self.known == self.lengths
            best = scores[is_read & is_answer].max(initial=-np.inf)
            can_reach = ~is_read & (scores >= best)
            is_ahead = is_read & (scores > scores[is_answer & can_reach].max(initial=best))
            if is_ahead.sum() >= k or not can_reach.any():
                found = is_ahead if is_ahead.sum() >= k else is_read & (scores >= best)
                places = np.flatnonzero(found)
                return places.tolist(), scores[places]
            waiting = can_reach & is_answer if (can_reach & is_answer).any() else can_reach
            hopes = (self.bounds - UNREAD * (self.lengths - self.known)) / divisors
            places = np.flatnonzero(waiting)
            width = max(WIDTH, int(SHARE * is_read.sum()))
            self.read(places[np.argsort(-hopes[places], kind="stable")[:width]].tolist())
