"""Which answer a written text is: names in sentences, lines, patterns, and texts without one."""

from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.answers import describe_unanswered
from medprobe.extensions.chat.extraction import (
    Extraction,
    Names,
    first_sentence,
    opened_thoughts,
    strip_marks,
    strip_thoughts,
)

NAMES = [
    ("acute pain", "C1"),
    ("pain", "C2"),
    ("Parkinson's disease", "C3"),
    ("paralysis agitans", "C3"),
    ("type 2 diabetes", "C4"),
    ("The Hague", "C5"),
    ("AIDS", "C6"),
    ("Sjögren syndrome", "C7"),
    ("headache", "C8"),
    ("vitamin A", "C9"),
    ("IL-2", "C10"),
    ("Aspirin", "D1"),
]
QUERY = SimpleNamespace(prompt="Aspirin is used to treat [Y].", subject="Aspirin")


def read(text: str, extract: str = "names", *, is_cut: bool = False) -> tuple[str, str]:
    return Extraction(extract).read(text, Names(NAMES), QUERY, is_cut=is_cut)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Aspirin is used to treat pain.", "pain"),
        ("It is used for **acute pain**, mostly.", "acute pain"),  # the longest name
        ("Answer: acute pain (a kind of discomfort)", "acute pain"),
        ("Parkinson disease", "Parkinson's disease"),
        ("It's Parkinson’s disease.", "Parkinson's disease"),
        ("Parkinson's disease, or paralysis agitans", "Parkinson's disease"),  # one answer
        ("Headaches.", "headache"),
        ("the hague", "The Hague"),
        ("Sjogren's syndrome it is", "Sjögren syndrome"),
        ("vitamin A", "vitamin A"),
        ("IL2", "IL-2"),  # as BioLAMA's evaluator has it
        ("pain\n\nIt is also used for headache.", "pain"),  # a name on a line of its own
        ("<think>headache? IL-2?</think>\npain</s>", "pain"),
        ("thoughts of headache</think> pain", "pain"),
        ("## Pain<|im_end|>\n<|im_start|>user\nheadache", "pain"),
        ("_pain_", "pain"),
        ("Aspirin", "Aspirin"),  # the subject alone is what was answered
    ],
)
def test_the_one_name_in_a_text_is_its_answer(text, answer):
    assert read(text) == (answer, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pain or headache", "several names"),
        ("Aspirin is a drug.", "no name"),  # the question's own words do not count
        ("I'm sorry, I cannot help with that.", "no name"),
        ("First aid is needed.", "no name"),
        ("It is painful.", "no name"),
        ("", "no text"),
        ("<|im_end|>", "no text"),
        ("<think>pain", "no text"),
        ("<think>pain</think>", "no text"),
    ],
)
def test_other_texts_are_unanswered(text, reason):
    assert read(text) == ("", reason)


def test_a_text_that_is_cut_is_unanswered_whatever_it_holds():
    assert read("Aspirin is used to treat pain", is_cut=True) == ("", "cut")


MARKS_OF_THOUGHTS = [
    *[
        (f"{a}{word}{b}", f"{a}/{word}{b}")
        for word in ("think", "THINK", "thought", "reasoning")
        for a, b in ("<>", "[]", "◁▷")
    ],
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("## Thinking\n\n", "\n\n## Final Response\n\n"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final <|constrain|>text<|message|>"),
    ("analysis", "assistantfinal"),
]


@pytest.mark.parametrize(("begin", "end"), MARKS_OF_THOUGHTS)
def test_thoughts_end_with_their_mark_or_there_is_no_answer(begin, end):
    assert read(f"{begin}Headache, or IL-2?{end}pain") == ("pain", "")
    assert read(f"\n{begin}Headache?{end}Pain.<|return|>") == ("pain", "")
    assert read(f"{begin}It is pain.") == ("", "no text")
    assert read(f"{begin}It is pain.{end}") == ("", "no text")
    if begin != "analysis":
        assert read(f"It is headache.{end}pain") == ("pain", "")  # begun by the template
        assert opened_thoughts(f"user: pain?\nassistant: {begin.partition('<|message|>')[0]}\n")
    assert not opened_thoughts(f"user: {begin} pain?\nassistant: ")


@pytest.mark.parametrize("text", ["Analysis of pain", "analysis: pain", "[pain]", "I think: pain"])
def test_words_of_thought_are_no_marks(text):
    assert read(text) == ("pain", "")


@pytest.mark.parametrize(
    ("extract", "answer"),
    [
        ("first_line", ""),
        ("last_line", "headache"),
        (r"A: (\w+)", "pain"),
        (r"\w+ache", "headache"),
        (r"B: (\w+)", ""),
    ],
)
def test_a_line_or_a_pattern_can_be_the_answer(extract, answer):
    assert read("I say this.\nA: pain\n**headache**", extract)[0] == answer


def test_without_names_the_first_line_is_the_answer():
    assert Extraction().read("A  pain.\nMore", Names([])).name == "A pain."


def test_another_end_of_thoughts():
    text = "analysis: pain<|message|>headache"
    reading = Extraction(think_end="<|message|>")
    assert reading.read(text, Names(NAMES)).name == "headache"
    assert strip_thoughts("a</think>b", "") == "a</think>b"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**Answer: _gout_**", "Answer: gout"),
        ("### ***gout***", "gout"),
        ("`gout`", "gout"),
        ("HLA-B*27, snake_case and 5 * 3", "HLA-B*27, snake_case and 5 * 3"),
        ("* gout\n* pain", "* gout\n* pain"),
    ],
)
def test_emphasis_and_headings_are_no_part_of_a_text(text, plain):
    assert strip_marks(text) == plain


MARKS = "*_`#<|'."  # what the patterns look for
LENGTH = 300_000  # a search whose time grows with the square of this never ends


@pytest.mark.parametrize("mark", MARKS)
def test_a_long_text_is_read_whatever_it_repeats(mark):
    for after in ("", "a", " ", "\n", "a ", "a\n", " a"):
        for end in ("", "a"):
            text = f"{mark}{after}" * (LENGTH // len(mark + after)) + end
            strip_marks(text)
            first_sentence(text, is_cut=True)
    read(mark * LENGTH)


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\r", "\u2028"])
def test_a_long_text_of_blanks_is_read(blank):
    assert read(f"a{blank * LENGTH}b")[1] == "no name"


@given(st.sampled_from([name for name, _ in NAMES]), st.text(" .,!?*\n", max_size=4))
def test_a_name_is_found_between_other_words(name, mark):
    names = Names(NAMES)
    assert names.find(f"well {mark} {name} {mark} then").name in {name, "Parkinson's disease"}


def test_a_share_above_one_in_ten_is_a_warning():
    table = pd.DataFrame({"variant": "free", "rank": 1, "unanswered": ["cut"] + [""] * 9})
    assert describe_unanswered(table) == ""
    table["unanswered"] = ["cut", "no name"] + [""] * 8
    assert "free: 2 of 10 unanswered (cut 1, no name 1)" in describe_unanswered(table)
    assert describe_unanswered(table.drop(columns="unanswered")) == ""
