"""Broken tables and files of LAMA and LIPID, and files that are odd and right."""

import re
from typing import Final

from helpers.broken_files import Damage, every, exchange_slots, put, rows, text
from helpers.broken_tables import (
    PROMPT_OF_ANOTHER,
    Cases,
    edit,
    equal_first,
    exchange,
    refused,
    remove,
    replace,
    rotate,
    stops,
    take,
    warns,
    with_answer,
)
from medprobe.core.tables import SLOT

ABSTRACTS: Final = "pubmed/*.xml.gz"
CHEMICALS: Final = "entities/chemicals.txt"
PUBLICATION: Final = "<PublicationTypeList><PublicationType>{}</PublicationType>"
RETRACTED: Final = PUBLICATION.format("Retracted Publication") + "</PublicationTypeList></Article>"
BOOK: Final = "<PubmedBookArticle><BookDocument><PMID>7</PMID></BookDocument></PubmedBookArticle>"
LAMA: Final = "lama/[GTCS]*/*.jsonl"
TEMPLATES: Final = "lama/relations.jsonl"
LAMA_TABLES: Final[Cases] = {
    "answers, ids and sentences permuted within a relation": stops(
        rotate("queries", equal_first("relation", "subset"), "answers", "answer_ids", "sentence"),
        *("facts_to_be_in_records", "filled_prompts", "pairs_to_match"),
    ),
    "two relations exchanged": stops(
        exchange("queries", "relation", "P19", "P780"), "facts_to_be_in_records"
    ),
    "a prompt holds its answer": stops(
        edit("queries", prompt=with_answer),
        *("facts_to_be_in_records", "filled_prompts", "prompts_to_follow_one_template"),
    ),
    "a sentence holds its answer outside the slot, and says so in its own text": stops(
        edit(
            "queries",
            "subset == 'squad'",
            prompt=lambda row: f"{row['answers'][0]} , or {row['prompt']}",
            sentence=lambda row: f"{row['answers'][0]} , or {row['sentence']}",
        ),
        "facts_to_be_in_records",
    ),
    "prompts that begin with their answers": warns(
        replace(
            "queries",
            prompt=lambda rows: [
                f"{names[0]} : {prompt}"
                for names, prompt in zip(rows["answers"], rows["prompt"], strict=True)
            ],
        ),
        "prompts_not_to_begin_with_answers",
    ),
    "a prompt of another subject": stops(
        PROMPT_OF_ANOTHER, "facts_to_be_in_records", "filled_prompts"
    ),
    "a sentence of another fact": stops(take("queries", "sentence"), "filled_prompts"),
    "a template-based pair without its template-free one": stops(
        remove("queries", lambda rows: rows.index == (rows["subset"] == "t-rex-free").idxmax()),
        "pairs_to_match",
    ),
}
LAMA_FILES: Final[Cases] = {
    "objects in lower case, sentences not": warns(
        rows(LAMA, put(obj_label=lambda row: row["obj_label"].lower())), "answers_to_have_capitals"
    ),
    "the subject is the object": warns(
        rows(LAMA, put(obj_label=lambda row: row.get("sub_label", row["obj_label"]))),
        *("answers_not_to_be_the_subject", "relations_to_have_several_answers"),
    ),
    "slots of the templates exchanged": warns(
        rows(TEMPLATES, put(template=lambda row: exchange_slots(row["template"]))),
        "slots_to_follow_subjects",
    ),
}
LAMA_ODD: Final[dict[str, Damage]] = {
    "years as objects": rows("lama/Squad/*.jsonl", every(7, obj_label="1926"))
}
LIPID_TABLES: Final[Cases] = {
    "an article from before the date that models have read to": stops(
        edit("queries", date="1990-01-01"), "dates_to_be_later"
    ),
    "a prompt that is not its sentence": stops(
        edit("queries", prompt=f"Nothing of the kind is {SLOT} ."), "filled_prompts"
    ),
    "a sentence without its candidate": stops(
        edit("queries", sentence="nothing of the kind"), "texts_to_hold_one_candidate"
    ),
}


def add_articles(content: str) -> str:
    """Each article again, under another PMID."""
    articles = "".join(re.findall("<PubmedArticle>.*?</PubmedArticle>", content, re.DOTALL))
    again = re.sub(r'(<PMID Version="1">)', r"\g<1>7", articles)
    return content.replace("</PubmedArticleSet>", f"{again}</PubmedArticleSet>")


def substitute(pattern: str, new: str) -> Damage:
    return text(ABSTRACTS, lambda content: re.sub(pattern, new, content, flags=re.DOTALL))


LIPID_FILES: Final[Cases] = {
    "day and month exchanged": refused(
        substitute("<Month>(.*?)</Month><Day>(.*?)</Day>", r"<Month>\2</Month><Day>\1</Day>"),
        "pubmed99n0001.xml.gz",
    ),
    "common words among the chemicals": stops(
        text(CHEMICALS, lambda content: content + "a\nis\nthe\nof\n"), "rows_to_be_used"
    ),
    "every article again, under another PMID": stops(
        text(ABSTRACTS, add_articles), "rows_to_be_used"
    ),
    "all articles retracted": warns(substitute("</Article>", RETRACTED), "rows_to_be_few"),
    "all dates in the year 2099": stops(
        substitute("<Year>20..</Year>", "<Year>2099</Year>"), "dates_to_be_past"
    ),
    "escaped markup in abstracts": stops(
        substitute(
            r" (\w+)\.</AbstractText>", r" &amp;lt;i&amp;gt;\1&amp;lt;/i&amp;gt;.</AbstractText>"
        ),
        *("column_values_to_not_match_regex", "texts_to_be_whole"),
    ),
    "books in place of articles": stops(
        substitute("<PubmedArticle>.*</PubmedArticle>", BOOK),
        *("column_distinct_values_to_contain_set", "column_values_to_be_between"),
        *("groups_to_be_of_like_size", "rows_to_be_used", "table_row_count_to_be_between"),
    ),
}
LIPID_ODD: Final[dict[str, Damage]] = {
    "a retracted article, and a book": text(
        ABSTRACTS,
        lambda content: content.replace("</Article>", RETRACTED, 1).replace(
            "</PubmedArticleSet>", f"{BOOK}</PubmedArticleSet>"
        ),
    ),
    "a list of chemicals with CRLF": text(CHEMICALS, lambda content: content.replace("\n", "\r\n")),
}
