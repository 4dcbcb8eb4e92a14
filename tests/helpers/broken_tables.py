"""Tables that are broken for one of the kernel's expectations each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from medprobe.core.tables import ORIGINAL

# A mutation breaks a table, or one that the table is held against, for an expectation with these
# arguments.
Tables = dict[str, pd.DataFrame]
Row = dict[str, Any]
Kwargs = dict[str, Any]
Mutation = Callable[[Tables, str, Kwargs], object]
Rule = Callable[[pd.DataFrame, Kwargs], Any]


def drop(tables: Tables, table: str, gone: Any) -> None:
    tables[table] = tables[table][~np.asarray(gone)].reset_index(drop=True)


def edit(change: Callable[[Row, Kwargs], Row], where: str = "index >= 0") -> Mutation:
    """The first row of a kind is changed."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        rows = tables[table]
        first = rows.query(kwargs.get("row_condition", where)).index[0]
        records = rows.to_dict("records")
        records[first] |= change(records[first], kwargs)
        tables[table] = pd.DataFrame(records, columns=rows.columns)

    return mutation


def remove(rule: Rule, other: str = "") -> Mutation:
    """The rows of the table, or of another one, for which a rule holds are gone."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        drop(tables, other or table, rule(tables[other or table], kwargs))

    return mutation


def replace(column: str, values: Rule, other: str = "") -> Mutation:
    """A column of the table, or of another one, has other values."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        rows = tables[other or table]
        tables[other or table] = rows.assign(**{column: values(rows, kwargs)})

    return mutation


def add(rows: Callable[[pd.DataFrame, Kwargs], pd.DataFrame]) -> Mutation:
    """Rows are added to the table, or to the one that the expectation names."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        longer = kwargs.get("other", table)
        tables[longer] = pd.concat([tables[longer], rows(tables[table], kwargs)], ignore_index=True)

    return mutation


def edit_all(change: Callable[[pd.DataFrame], Row], first: Row | None = None) -> Mutation:
    """All rows have other values, and the first one those of `first`."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        rows = tables[table]
        if "row_condition" in kwargs:
            rows = rows.query(kwargs["row_condition"]).reset_index(drop=True)
        records = rows.assign(**change(rows)).to_dict("records")
        records[0] |= first or {}
        tables[table] = pd.DataFrame(records, columns=rows.columns)

    return mutation


def family(second: Callable[[pd.DataFrame], Row] | None) -> Mutation:
    """The first two queries are one family, and the second has these values; or the first alone."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        rows = tables["queries"].reset_index(drop=True)
        values = second(rows) if second else {}
        rows = rows.assign(family_id="", wording="", name_kind="")
        for row in (0, 1) if second else (0,):
            rows.loc[row, ["family_id", "wording", "name_kind"]] = ["f", ORIGINAL, ORIGINAL]
        for name, value in values.items():
            rows.loc[1, name] = value
        tables["queries"] = rows

    return mutation


def column(kwargs: Kwargs) -> str:
    """The column of a check, or the last of its columns."""
    name: str = kwargs["column_list"][-1] if "column_list" in kwargs else kwargs["column"]
    return name


def first_column(kwargs: Kwargs) -> str:
    name: str = kwargs["column_list"][0]
    return name


def other_item(row: Row, kwargs: Kwargs) -> Row:
    items = row[column(kwargs)]
    return {column(kwargs): " " if isinstance(items, str) else [" ", *items[1:]]}


def copies(rows: pd.DataFrame, times: int) -> pd.DataFrame:
    """So many copies of queries, no two of them alike."""
    parts = []
    for number in range(times):
        part = rows.copy()
        for name in part.columns.intersection(["query_id", "context_id", "pair_id"]):
            part[name] = part[name].astype(str) + f"/{number}"
        part["subject_id"] = [f"C9{number:03}{row:03}" for row in range(len(part))]
        for name in part.columns.intersection(["prompt", "sentence"]):
            part[name] = f"{number} " + part[name]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def of_a_part(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """The rows of the whole that have the first one of a part."""
    first, *rest = kwargs["column_list"]
    keys = rows[rest].astype(str).agg("|".join, axis=1)
    whole = rows[first] == kwargs["whole"]
    return whole & (keys == keys[~whole].iloc[0])


def too_high(tables: Tables, table: str, kwargs: Kwargs) -> None:
    first, *_, last = kwargs["column_list"]
    value = tables[table][last].mask(tables[table][first] == kwargs["subset"], kwargs["below"])
    tables[table] = tables[table].assign(**{last: value})


def one_tiny_group(tables: Tables, table: str, kwargs: Kwargs) -> None:
    """One query is left of a group, and the others are many. An only group gives one to another."""
    last = column(kwargs)
    rows = tables[table]
    group = rows[last] == rows[last].iloc[0]
    if group.all():
        tables[table] = rows.assign(**{last: rows[last].where(rows.index > 0, "another")})
        return
    drop(tables, table, group & (rows.index != rows.index[0]))
    others = tables[table][tables[table][last] != rows[last].iloc[0]]
    more = copies(others, 1 + int(30 // max(1, others.groupby(last).size().median() or 1)))
    tables[table] = pd.concat([tables[table], more], ignore_index=True)


def lost(tables: Tables, table: str, kwargs: Kwargs) -> None:
    """One thing is lost, or two of three where some may be."""
    other = tables[kwargs["other"]]
    used = other.query(kwargs["where"]) if "where" in kwargs else other
    key = used[kwargs["distinct"]] if "distinct" in kwargs else pd.Series(used.index, used.index)
    numbers = pd.factorize(key)[0]
    gone = used.index[numbers % 3 != 0 if kwargs["share"] < 1 else numbers == 0]
    drop(tables, kwargs["other"], other.index.isin(gone))


def permuted(tables: Tables, table: str, kwargs: Kwargs) -> None:
    """The rows of a relation have each other's answers."""
    rows = tables[table].copy()
    relation = rows["relation"] == rows["relation"].iloc[0]
    answers = rows.loc[relation, ["answers", "answer_ids"]].to_numpy()[::-1]
    rows.loc[relation, ["answers", "answer_ids"]] = answers
    tables[table] = rows


def copy_relation(rows: pd.DataFrame, _: Kwargs) -> pd.DataFrame:
    """The queries of the first relation, as those of another one."""
    first = rows[rows["relation"] == rows["relation"].iloc[0]]
    return first.assign(relation="a copy", query_id="again " + first["query_id"])


def missing_names(rows: pd.DataFrame, kwargs: Kwargs) -> list[Any]:
    return ["nan" if isinstance(names, str) else ["nan"] for names in rows[column(kwargs)]]


def break_names(tables: Tables, table: str, kwargs: Kwargs) -> None:
    replace(column(kwargs), missing_names)(tables, table, kwargs)


def exchanged_slots(rows: pd.DataFrame) -> Row:
    """The first query's wording with its slots exchanged."""
    prompt, subject = rows["prompt"][0], rows["subject"][0]
    exchanged = prompt.replace(subject, "[X]").replace("[Y]", subject).replace("[X]", "[Y]")
    return {"wording": "other", "prompt": exchanged, "subject": subject} | {
        "relation": rows["relation"][0]
    }


MUTATIONS: dict[str, Mutation] = {
    "expect_aliases_to_be_of_one_object": replace(
        "answer_ids", lambda rows, _: [["another"] * len(ids) for ids in rows["answer_ids"]]
    ),
    "expect_answers_not_to_be_the_subject": replace(
        "answers", lambda rows, _: [[subject] for subject in rows["subject"]]
    ),
    "expect_names_to_be_whole": break_names,
    "expect_names_to_name_something": break_names,
    "expect_texts_to_be_sentences": edit_all(
        lambda rows: {"prompt" if "prompt" in rows else "text": "{'text': 'a sentence [Y]'}"}
    ),
    "expect_texts_to_have_no_frame": edit_all(
        lambda rows: {
            name: [f"a sentence or a name ({text})" for text in rows[name]]
            for name in ("name", "text")
            if name in rows
        }
    ),
    "expect_slots_to_stand_alone": edit_all(
        lambda rows: {"prompt": [f"{name}treats[Y] ." for name in rows["subject"]]}
    ),
    "expect_names_to_look_different": replace(
        "name", lambda rows, _: [f"x{' ' * (number + 1)}y" for number in range(len(rows))]
    ),
    "expect_relations_to_differ": add(copy_relation),
    "expect_relations_to_have_several_answers": replace(
        "answer_ids", lambda rows, _: [["one"]] * len(rows)
    ),
    "expect_answers_to_have_capitals": edit_all(
        lambda rows: {
            "subject": "Gout",
            "answers": [[name.lower() for name in names] for names in rows["answers"]],
        }
    ),
    "expect_ids_to_be_whole": edit(lambda *_: {"subject_id": "1.23E+12"}),
    "expect_names_to_be_in_umls": edit(lambda *_: {"subject": "no such name"}),
    "expect_ids_to_tell_apart": edit_all(
        lambda rows: {column: "one" for column in ("id", "subject_id") if column in rows}
    ),
    "expect_relations_to_look_different": edit(
        lambda row, _: {"relation": row["relation"].upper()}, "index == 1"
    ),
    "expect_slots_to_follow_subjects": edit_all(
        lambda rows: {"prompt": [f"[Y] of {name} ." for name in rows["subject"]]}
    ),
    "expect_wordings_to_keep_their_relation": family(exchanged_slots),
    "expect_wordings_to_look_different": family(
        lambda rows: {"wording": "other", "prompt": f"{rows['prompt'][0]} "}
    ),
    "expect_rows_to_be_few": add(
        lambda rows, kwargs: rows.head(1).assign(what=kwargs["what"], rows=10**6)
    ),
    "expect_templates_to_affirm": replace("prompt", lambda *_: "it is not [Y] ."),
    "expect_answers_to_be_ranked": edit(lambda row, _: {"answers": ["x"] * len(row["answers"])}),
    "expect_candidates_to_have_answers_ids": edit(lambda *_: {"id": "C7777777"}),
    "expect_facts_to_be_in_records": permuted,
    "expect_families_to_be_whole": family(None),
    "expect_family_prompts_to_differ": family(
        lambda rows: {"wording": "other", "prompt": rows["prompt"][0]}
    ),
    "expect_group_sizes_to_be_between": add(
        lambda rows, kwargs: copies(rows[rows["subset"] == "full"].head(1), kwargs["max_value"])
    ),
    "expect_groups_to_be_of_like_size": one_tiny_group,
    "expect_item_to_be_in_list": edit(lambda _, kwargs: {first_column(kwargs): "C7777777"}),
    "expect_items_to_be_in_table": edit(other_item),
    "expect_list_items_to_be_unique": edit(
        lambda row, kwargs: {column(kwargs): [*row[column(kwargs)][:1]] * 2}
    ),
    "expect_list_items_to_match_regex": edit(other_item),
    "expect_list_lengths_to_be_between": edit(lambda _, kwargs: {column(kwargs): []}),
    "expect_lists_to_be_aligned": edit(
        lambda row, kwargs: {column(kwargs): [*row[column(kwargs)], "C7777777"]}
    ),
    "expect_other_names_to_be_of_one_subject": family(
        lambda rows: {"name_kind": "brand", "subject": rows["subject"][2]}
    ),
    "expect_prompts_to_follow_one_template": edit(
        lambda row, _: {"prompt": f"{row['answers'][0]} . {row['prompt']}"}
    ),
    "expect_prompts_to_have_one_slot": edit(lambda *_: {"prompt": "no slot"}),
    "expect_prompts_to_hold_no_answer": edit(
        lambda row, _: {"prompt": f"{row['answers'][0]} . {row['prompt']}"}
    ),
    "expect_rows_to_be_used": lost,
    "expect_subset_to_be_within": remove(of_a_part),
    "expect_subset_values_to_be_below": too_high,
    "expect_templates_to_differ": replace(
        "prompt", lambda rows, _: rows["subject"] + " is of [Y] ."
    ),
    "expect_wordings_to_hold_no_answer": family(
        lambda rows: {"wording": "other", "prompt": f"{rows['answers'][1][0]} helps: [Y] ."}
    ),
}
