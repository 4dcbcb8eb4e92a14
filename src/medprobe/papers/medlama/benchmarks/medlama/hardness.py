"""How much of an answer a query gives away: the two measures behind MedLAMA's hard set.

Both are shares in [0, 1], lower is harder. Source: Meng et al. 2022 (MedLAMA), section 2, "Easy vs.
Hard Queries", and Lin 2004 (ROUGE-L). The paper leaves the computation open; the rule `released` is
the one that gives the released columns to the last bit.
"""

from collections.abc import Callable, Sequence
from typing import Literal

HardnessRule = Literal["released", "rouge_score"]


def hardness(
    subject: str, answers: Sequence[str], rule: HardnessRule = "released"
) -> tuple[float, float]:
    """Measure how much of the answers the subject's name gives away: `(avg_match, avg_rouge_l)`.

    These are the share of answers that are part of the subject's name, and the mean ROUGE-L F of
    the answers against it, letter case aside.

    `released` keeps the blanks that surround all but the outer ends of the answers joined by
    ` || `, as the released columns do; `rouge_score` compares clean names by the package of that
    name, the sound choice for a new benchmark. Raises ValueError where there are no answers.

    >>> hardness("Dengue virus live antigen CYD serotype 1", ["Dengue"])
    (1.0, 0.24999999781250004)
    """
    if not answers:
        raise ValueError("a query without answers has no hardness")
    subject = subject.lower()
    if rule == "released":
        references = " || ".join(answers).lower().split("||")
        rouge_l: Callable[[str, str], float] = rouge_l_released
    else:
        references = [answer.lower() for answer in answers]
        rouge_l = rouge_l_package
    match = sum(reference in subject for reference in references) / len(references)
    rouge = sum(rouge_l(subject, reference) for reference in references) / len(references)
    return match, rouge


def rouge_l_package(hypothesis: str, reference: str) -> float:
    """ROUGE-L F by the package `rouge-score` 0.1.2, without stemming."""
    from rouge_score.rouge_scorer import RougeScorer

    return float(RougeScorer(["rougeL"]).score(reference, hypothesis)["rougeL"].fmeasure)


def rouge_l_released(hypothesis: str, reference: str) -> float:
    """ROUGE-L F over sets of words.

    Those in a longest common subsequence of any two sentences, against the distinct words of the
    hypothesis (precision) and of the reference (recall).

    A full stop ends a sentence wherever it stands, blanks separate words. Equal to `rouge` 1.0.1.

    >>> round(rouge_l_released("acute viral hepatitis", "viral hepatitis"), 3)
    0.8
    """
    theirs, ours = _sentences(hypothesis), _sentences(reference)
    precise = len({word for sentence in theirs for word in sentence})
    recalled = len({word for sentence in ours for word in sentence})
    if not precise or not recalled:
        return 0.0
    common: set[str] = set()
    for our in ours:
        for their in theirs:
            common |= _common_words(our, their)
    precision, recall = len(common) / precise, len(common) / recalled
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _sentences(text: str) -> list[list[str]]:
    """Words by sentence. A sentence of blanks alone is one empty word."""
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def _common_words(first: list[str], second: list[str]) -> set[str]:
    """Return the words of a longest common subsequence.

    Among equals, the one that goes on longest in `first`.
    """
    length = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, first_word in enumerate(first, 1):
        for j, second_word in enumerate(second, 1):
            if first_word == second_word:
                length[i][j] = length[i - 1][j - 1] + 1
            else:
                length[i][j] = max(length[i - 1][j], length[i][j - 1])
    words: set[str] = set()
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            words.add(first[i - 1])
            i, j = i - 1, j - 1
        elif length[i - 1][j] > length[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words
