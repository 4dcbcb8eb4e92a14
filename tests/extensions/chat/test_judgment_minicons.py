"""Judgment by pseudo-log-likelihoods against the numbers that minicons gives."""

import pytest
from scipy.special import expit

from helpers import probing
from helpers.minicons import MODELS, PROMPT, checkpoint, engine, minicons_total
from medprobe.core.tables import BenchmarkTables
from medprobe.extensions.chat.methods.judgment import Judgment


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("pass_", "metric"), [("likelihood", "original"), ("within_word_l2r", "within_word_l2r")]
)
def test_judgment_compares_the_totals_of_minicons(model, pass_, metric):
    right, wrong = "hepatitis B", "influenza"
    queries = probing.queries([PROMPT, PROMPT]).assign(
        subject=["a", "b"], subject_id=["C1", "C2"], answers=[[right], [wrong]]
    )
    queries["answer_ids"] = [["A0"], ["A1"]]
    tables = BenchmarkTables(queries, probing.candidates([right, wrong]))
    method = Judgment(checkpoint(model), Judgment.Settings(within_word_l2r=True), engine(), 0)
    assert method.passes() == ["likelihood", "within_word_l2r"]
    (task,) = method.tasks(tables, 10)
    predictions = method.predict(task, pass_)
    assert set(predictions["variant"]) == {pass_}
    assert predictions["prediction"].tolist() == [right, wrong, wrong, right]
    share = expit(minicons_total(model, right, metric) - minicons_total(model, wrong, metric))
    assert predictions["score"].tolist() == pytest.approx(
        [share, 1 - share, 1 - share, share], abs=1e-3
    )


def test_without_the_setting_there_is_no_such_pass():
    method = Judgment(checkpoint("bert"), Judgment.Settings(), engine(), 0)
    assert method.passes() == ["likelihood"]
