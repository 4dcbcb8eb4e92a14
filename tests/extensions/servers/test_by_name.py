"""Names ahead of the best answer by whole filled prompts, against a list of the best names."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extensions.likelihood.test_ahead import check
from extensions.likelihood.test_best_first import NAMES as MADE_NAMES
from extensions.likelihood.test_best_first import ScriptedModel, everything
from medprobe.engine import ranking
from medprobe.extensions.likelihood import ahead
from medprobe.extensions.likelihood.rankings import Ranking
from medprobe.extensions.servers.backends.served import _rank_ahead
from medprobe.extensions.servers.by_name import Readings


@given(
    names=MADE_NAMES,
    seed=st.integers(0, 2**16),
    k=st.integers(1, 8),
    answers=st.sets(st.integers(0, 29), max_size=3),
)
def test_reading_whole_names_says_what_a_list_says(names, seed, k, answers):
    model = ScriptedModel(seed, 1, (2,))
    answers = [i for i in sorted(answers) if i < len(names)]

    def read(places):
        rows = [(*names[i], *model.after) for i in places]
        return [[-1.5, *(model.log_prob(r[: i + 1]) for i in range(len(r)))] for r in rows]

    readings = Readings([(9, *name, *model.after) for name in names], read)
    for variant, ranked in enumerate(
        _rank_ahead(readings, answers, Ranking(names, k, variants=2, ahead=True))
    ):
        _, scores = everything(model, names, variant)
        listed = ranking.best_indices(np.array(scores), k, ranking.MAX_TIES).tolist()
        check(ahead.cut_behind(ranked), listed, scores, answers, k=k)
