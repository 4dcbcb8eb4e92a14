"""How a name, a prompt or a sentence looks: damaged, nameless, or with a file's marks around it."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.gate.damage import NO_NAME, find_fault, find_frames
from medprobe.gate.expectations import tables

NAMES = ["gout", "chronic pain", "Sjögren syndrome", "β-catenin", "Graves’ disease", "HLA-B27"]
WHOLE = [  # which only look odd
    *("5-HT", "p53", "17q21", "SEPT2", "2-Septin", "1,2-dichloroethane", "N,N-dimethyltryptamine"),
    *(
        "CD4+ T-Lymphocyte",
        "What is it?",
        "1926",
        "E10",
        "Q10",
        "Q fever",
        "C-peptide",
        "NO",
        "AT&T",
    ),
    *(
        "Fever > 38 °C",
        "T<3 cm",
        "ratio a<b & c>d",
        "pain (finding)",
        "µ-opioid receptor",
        "x² ™ ½",
    ),
    *("naïve cell", "[M]Malignant lymphoma", "[3H]thymidine", "(+)-catechin", "5'-nucleotidase"),
    *(
        "HLA-A*02:01",
        "Guillain–Barré syndrome",
        "IFNγ",
        "non‐Hodgkin lymphoma",
        "Na+",
        "NA",
        "poly(A)",
    ),
    *("Diabetes, not otherwise specified", "no hay duda", "O’Brien", "cyclo[18]carbon", "A→G"),
]
CODE_PAGES = [  # that have letters for all bytes of these names in UTF-8
    *(
        "cp437",
        "cp850",
        "cp852",
        "cp858",
        "cp866",
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1254",
        "latin-1",
    ),
    *("iso8859-2", "iso8859-9", "iso8859-15", "koi8-r", "mac-roman", "mac-latin2"),
]
WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
NOTHING: dict[str, Callable[[str, str], Any]] = {
    "a list of Python": lambda first, second: [first, second],
    "a tuple": lambda first, second: (first, second),
    "a set": lambda first, second: {first, second},
    "a dictionary": lambda first, second: {first: second},
    "bytes": lambda first, second: f"{first} {second}".encode(),
    "an array": lambda first, second: "array(%r, dtype=object)" % [first, second],
    "JSON": lambda first, second: json.dumps([first, second]),
    "a set without quotation marks": lambda first, second: f"{{{first}, {second}}}",
    "quoted fields": lambda first, second: f'"{first}", "{second}"',
    "a comment": lambda first, second: f"# {first}: {second}",
    "a bullet": lambda first, second: f"- {first} {second}",
    "an item": lambda first, second: f"1. {first}",
    "a formula": lambda first, second: f"={first.upper()}(A1:A9)",
    "a call": lambda first, second: f"{first}.{second}()",
    "a text of RDF": lambda first, second: f'"{first} {second}"@en',
    "a typed text of RDF": lambda first, second: f"{first}^^xsd:{second}",
    "an error of a spreadsheet": lambda first, second: f"#{first.upper()}!",
}
AROUND: dict[str, str] = {  # what a file has around a name, and a name has not
    "quotation marks": '"{}"',
    "a wiki's link": "[[{}]]",
    "bold": "**{}**",
    "code": "`{}`",
    "a tag": "<i>{}</i>",
    "an entity": "{}&#39;s",
    "an escape of a URL": "{}%20x",
    "an escape of a string": "{}\\u00f6",
    "LaTeX": '{}\\"o',
    "a second name": "{};fever",
    "a third one": "{} | fever",
    "a fourth one": "{} || fever",
    "a comma": "{},",
    "a bar": "{} |",
    "a bracket": "({}",
    "its other half": "{}]",
    "an apostrophe of a spreadsheet": "'{}",
    "a quotation mark": '{} pain"',
    "a tokenizer's bracket": "-LRB- {}",
    "a divided word": "hyper- tension of {}",
    "blanks": "acute  {}",
    "a footnote": "{}[1]",
    "a blank that does not break": "{}\u00a0",
    "no letter": "{}\ufffd",
}


@pytest.mark.parametrize("name", [*NAMES, *WHOLE])
def test_a_name_that_only_looks_odd_is_whole(name: str) -> None:
    assert find_fault(name) == ""


@pytest.mark.parametrize("code_page", CODE_PAGES)
def test_utf8_that_was_read_as_a_code_page_is_found(code_page: str) -> None:
    for name in NAMES:
        if not name.isascii():
            try:
                misread = name.encode().decode(code_page)
            except UnicodeDecodeError:
                continue
            assert find_fault(misread), misread


@given(WORD, st.characters(categories=["Cc", "Cf", "Co", "Zl", "Zp"]))
def test_what_nobody_sees_is_found_in_a_name(word: str, unseen: str) -> None:
    assert find_fault(f"{word}{unseen}{word}")
    assert find_fault(f"{word}{unseen}")


@pytest.mark.parametrize("character", "ﬀﬁﬂﬃﬄﬅﬆＦｇⅧ𝛽𝑥①¨㎎")
def test_a_character_of_print_is_found(character: str) -> None:
    assert find_fault(f"di{character}use goitre") == "a character of print"


@pytest.mark.parametrize(
    "value",
    [
        *(
            "NaN",
            "None",
            "null",
            "N/A",
            "<NA>",
            "#N/A",
            "Unknown",
            "Total",
            "N / A",
            "(none)",
            "-1",
        ),
        *("Not applicable", "No data", "not reported", "Unspecified", "null."),
    ],
)
def test_a_word_for_no_value_names_nothing(value: str) -> None:
    assert find_fault(value) == find_fault(f" {value.lower()} ") == "no value"


@given(st.text(st.characters(categories=["P", "S", "Zs"]), min_size=1, max_size=4))
def test_signs_alone_name_nothing(signs: str) -> None:
    assert find_fault(signs) == "no value"


@pytest.mark.parametrize("form", NOTHING)
@given(first=WORD, second=WORD)
def test_what_is_no_name_is_told_from_odd_names(form: str, first: str, second: str) -> None:
    assert find_fault(str(NOTHING[form](first, second))) in NO_NAME


@pytest.mark.parametrize("form", AROUND)
@pytest.mark.parametrize("name", NAMES)
def test_what_stands_around_a_name_is_found(form: str, name: str) -> None:
    assert find_fault(AROUND[form].format(name))


@pytest.mark.parametrize(
    "name",
    [
        *("2-Sep", "Sep-02", "2-Okt", "2020-03-01", "1.23E+12", "1,23E+12", "Sj?gren", "M10.9"),
        *("C0018099", "MESH:D006073", "ENSG00000012048", "OMIM 254770", "https://x.y/z"),
        *("Sjögren_syndrome", "gout†", "gout_(disease)", "entity_3", "dbr:Gout", "50-78-2", "12.0"),
        *("550e8400-e29b-41d4-a716-446655440000", "1/3/24", "g\u043eut", "\u0391spirin"),
    ],
)
def test_what_a_program_writes_in_place_of_a_name_is_found(name: str) -> None:
    assert find_fault(name)


SENTENCE = "The patient was seen for pain of the {} and was sent home ."
LINES: dict[str, Callable[[str], str]] = {  # other formats of lines
    "JSON": lambda text: json.dumps({"text": text}),
    "a pair": lambda text: f"{text}||{text}",
    "an id and a tab": lambda text: f"123\t{text}",
    "HTML": lambda text: f"<p>{text}</p>",
    "CSV": lambda text: f'1,"{text}",x',
    "PubTator": lambda text: f"123|t|{text}",
    "quotation marks": '"{}",'.format,
    "an f-string": "f'{}'".format,
    "two sentences": lambda text: f"{text} ||| {text}",
    "brackets of a tokenizer": lambda text: f"-LRB- {text} -RRB-",
    "misread": lambda text: text.replace("a", "ä").encode().decode("cp1250"),
    "WordPiece": lambda text: text.replace("ient", " ##ient"),
    "SentencePiece": lambda text: text.replace(" ", " ▁"),
    "BPE": lambda text: text.replace("ient", "@@ ient"),
    "letters": lambda text: " ".join(text.replace(" ", "")),
    "capitals": str.upper,
    "LaTeX": lambda text: f"{text} \\cite{{x}}",
    "a URL": lambda text: f"{text} https://x.y",
    "tags": lambda text: " ".join(f"{word}_NN" for word in text.split()),
    "numbers": lambda text: " ".join(f"{len(word) / 7:.5f}" for word in text.split()),
    "markup of a wiki": lambda text: text.replace("pain", "[[pain]]"),
    "an item": lambda text: f"- {text}",
}


@pytest.mark.parametrize("form", LINES)
def test_a_line_of_another_format_is_no_sentence(form: str) -> None:
    assert not find_fault(SENTENCE.format("knee"), is_sentence=True)
    assert find_fault(LINES[form](SENTENCE.format("knee")), is_sentence=True)


def test_a_blank_that_does_not_break_is_one_of_a_sentence() -> None:
    assert not find_fault("More than 40\u00a0% were seen", is_sentence=True)


BODY = ["gout", "chronic pain", "1,2-dichloroethane", "fever, acute", "HLA-B27", "a/b ratio", "flu"]
FRAMES = [
    *("{} (finding)", "{} [D012345]", '"{}"', "<{}>", "{},C0018099", "{};7", "{} | C1", "{} = x"),
    *("C0018099,{}", "7 {}", "{} 7", "7. {}", "label: {}", "{}, C0018099", "{} - D01", "{},"),
    *("{}  drug", "__label__7 {}", "[{}]", "B: {}"),
]


@pytest.mark.parametrize("frame", FRAMES)
def test_what_most_texts_have_around_them_is_found(frame: str) -> None:
    assert not any(find_frames(BODY, 0.5))
    assert all(find_frames([frame.format(name) for name in BODY], 0.9))
    framed = [frame.format(name) for name in BODY[:3]]
    assert not any(find_frames([*framed, *BODY[3:]], 0.5)), "a few names can have it"


def test_names_with_a_number_each_have_no_frame() -> None:
    assert not any(find_frames([f"gene {number}" for number in range(99)], 0.5))
    assert not any(find_frames([str(number) for number in range(1900, 1999)], 0.5))


@pytest.mark.parametrize(
    ("template", "is_right"),
    [
        ("[X] might treat [Y] .", True),
        ("[X]-induced [Y], ([X])", True),
        ("[X]might treat [Y] .", False),
        ("[X] might treat[Y].", False),
        ("[X] might treat [Y]and more", False),
        *(("[X]_treats_[Y]", False), ("[X]2 treats 3[Y]", False), ("[X][Y]", False)),
        ("[X] might treat\u00a0[Y] .", False),
    ],
)
def test_a_letter_that_touches_a_slot_is_found(template: str, is_right: bool) -> None:
    prompts = [template.replace("[X]", "aspirin")]
    rows = pd.DataFrame({"subject": ["aspirin"], "prompt": prompts})
    assert tables.expect_slots_to_stand_alone(rows) == [is_right]
