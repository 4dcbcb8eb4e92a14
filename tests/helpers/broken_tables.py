"""Tables that are broken for one of our own expectations each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from helpers.sound_tables import Tables
from medprobe.core.tables import ORIGINAL

# A mutation breaks a table, or one that the table is held against, for an expectation with these
# arguments.
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


def known_by_name(rows: pd.DataFrame, _: Kwargs) -> pd.DataFrame:
    row = rows.head(1).assign(subject_id="another", answer_ids=[["another"]])
    return row.assign(subject=row["subject"].str.upper() + ".")


def permuted(tables: Tables, table: str, kwargs: Kwargs) -> None:
    """The rows of a relation have each other's answers."""
    rows = tables[table].copy()
    relation = rows["relation"] == rows["relation"].iloc[0]
    answers = rows.loc[relation, ["answers", "answer_ids"]].to_numpy()[::-1]
    rows.loc[relation, ["answers", "answer_ids"]] = answers
    tables[table] = rows


def never_right(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """The positives of a disease that is wrong elsewhere."""
    wrong = rows.loc[rows["label"] == 0, "cui"].unique()[: 10 if "mostly" in kwargs else 1]
    return rows["original_cui"].isin(wrong)


def all_negatives_but_one(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """Of the first pair, of a kind."""
    negatives = (rows["kind"] == kwargs["kind"]) & (rows["pair_id"] == rows["pair_id"].iloc[0])
    return negatives & (rows.index != negatives.idxmax())


def first_tested(splits: pd.DataFrame, _: Kwargs) -> Any:
    """An example that tests, wherever its target has it."""
    first = splits[splits["split"] == "test"].iloc[0]
    return (splits[["target", "example_id"]] == first[["target", "example_id"]]).all(axis=1)


def too_few(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """The pairs of a category, but for one at most."""
    category = rows["category"] == kwargs["category"]
    few = rows[category & (rows["label"] == 1)].head(min(1, kwargs["min_value"] - 1))
    return category & ~rows["pair_id"].isin(few["pair_id"])


def premises(train: str, test: str) -> Mutation:
    """One example that trains the first target, and one that tests it, have these premises."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        splits = tables[table]
        splits = splits[splits["target"] == splits["target"].iloc[0]]
        example = splits.drop_duplicates("split").set_index("split")["example_id"]
        texts = {example["train"]: train, example["test"]: test}
        examples = tables["examples"]
        changed = examples["example_id"].map(texts).fillna(examples["premise"])
        tables["examples"] = examples.assign(premise=changed)

    return mutation


def leak(hide: Callable[[str], str]) -> Mutation:
    """A premise that trains a target ends with its longest name, in another form."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        row = tables[table].query("split == 'train'").iloc[0]
        names, examples = tables["names"], tables["examples"]
        name = max(names.loc[names["cui"] == row["target"], "name"], key=len)
        premise = examples["premise"].mask(
            examples["example_id"] == row["example_id"],
            examples["premise"] + f" with {hide(name)}",
        )
        tables["examples"] = examples.assign(premise=premise)

    return mutation


def hidden(name: str) -> str:
    """A name with a letter of another alphabet, and an entity."""
    return name.replace("o", "\u043e").replace(" ", "&nbsp;")


def other_targets(splits: pd.DataFrame, _: Kwargs) -> Any:
    """What tests a target tests another one."""
    targets = splits["target"].unique()
    others = dict(zip(targets, targets[::-1], strict=True))
    return splits["target"].where(splits["split"] != "test", splits["target"].map(others))


def wrong_article(row: Row, _: Kwargs) -> Row:
    article = "a" if row["hypothesis"][0].lower() in "aeiou" else "an"
    return {"full_hypothesis": f"It is {article} {row['hypothesis']}"}


def drawn_again(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """The random negatives of each positive are its similar ones."""
    key = [*kwargs["column_list"][:3]]
    number = rows.groupby([*key, "kind"]).cumcount()
    similar = rows.assign(number=number)[rows["kind"] == "similar"].set_index([*key, "number"])
    places = pd.MultiIndex.from_frame(rows[key].assign(number=number))
    return rows["cui"].where(rows["kind"] != "random", similar["cui"].reindex(places).to_numpy())


def both_sides(tables: Tables, table: str, kwargs: Kwargs) -> None:
    splits = tables[table]
    pairs = splits["example_id"].map(tables["examples"].set_index("example_id")["pair_id"])
    shared = pd.concat([splits[["target", "split"]], pairs], axis=1).duplicated(keep=False)
    first = splits.index[shared & (splits["split"] == "train")][0]
    tables[table] = splits.assign(split=splits["split"].where(splits.index != first, "validation"))


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
    "expect_dates_to_be_past": edit(lambda *_: {"date": "2999-01-01"}),
    "expect_ids_to_be_whole": edit(lambda *_: {"subject_id": "1.23E+12"}),
    "expect_ids_to_tell_apart": edit_all(
        lambda rows: {column: "one" for column in ("id", "subject_id") if column in rows}
    ),
    "expect_relations_to_look_different": edit(
        lambda row, _: {"relation": row["relation"].upper()}, "index == 1"
    ),
    "expect_relations_to_point_forward": edit_all(
        lambda rows: {
            "relation": ["may_treat", *["disease_may_have_finding"] * (len(rows) - 1)],
            "subject_id": "C7",
            "answer_ids": [["C7"]] * len(rows),
        },
        first={"answer_ids": ["C8"]},
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
    "expect_answers_to_be_complete": replace(
        "answers", lambda rows, _: [names[: max(1, len(names) - 1)] for names in rows["answers"]]
    ),
    "expect_answers_to_be_ranked": edit(lambda row, _: {"answers": ["x"] * len(row["answers"])}),
    "expect_articles_to_fit": edit(wrong_article, "label == 0"),
    "expect_both_centres_in_pairs": replace(
        "centre",
        lambda rows, _: rows["centre"].mask(rows["pair_id"] == rows["pair_id"][0], "target"),
    ),
    "expect_candidates_to_have_answers_ids": edit(lambda *_: {"id": "C7777777"}),
    "expect_centres_to_follow_ids": replace(
        "centre",
        lambda rows, _: rows["centre"].replace({"target": "negative", "negative": "target"}),
    ),
    "expect_cuis_to_be_known": edit(lambda _, kwargs: {column(kwargs): "C7777777"}),
    "expect_dates_to_be_later": edit(lambda row, _: {"date": row["cut_off"]}),
    "expect_diseases_to_be_targets": remove(
        lambda splits, _: splits["target"] == splits["target"][0], "splits"
    ),
    "expect_examples_to_be_tested": remove(first_tested, "splits"),
    "expect_examples_to_differ": add(lambda rows, _: rows.tail(1).assign(example_id="again")),
    "expect_facts_to_be_absent_from_table": add(lambda rows, _: rows.head(1)),
    "expect_facts_to_be_in_records": permuted,
    "expect_facts_to_be_in_umls": permuted,
    "expect_families_to_be_whole": family(None),
    "expect_family_prompts_to_differ": family(
        lambda rows: {"wording": "other", "prompt": rows["prompt"][0]}
    ),
    "expect_filled_prompts": edit(lambda _, kwargs: {column(kwargs): "nothing of the kind"}),
    "expect_first_added_to_be_the_target": edit(lambda *_: {"added_id": "C7"}, "step == 1"),
    "expect_group_sizes_to_be_between": add(
        lambda rows, kwargs: copies(rows[rows["subset"] == "full"].head(1), kwargs["max_value"])
    ),
    "expect_groups_to_be_of_like_size": one_tiny_group,
    "expect_hypotheses_to_be_preferred_names": edit(
        lambda row, _: {"hypothesis": row["hypothesis"].upper()}, "label == 1"
    ),
    "expect_item_to_be_in_list": edit(lambda _, kwargs: {first_column(kwargs): "C7777777"}),
    "expect_items_to_be_in_table": edit(other_item),
    "expect_labels_to_follow_kinds": edit(lambda *_: {"label": 1}, "label == 0"),
    "expect_layouts_to_follow_kinds": replace(
        "kind",
        lambda rows, _: rows["kind"].replace(
            {"knowledge-only": "knowledge-sorted", "knowledge-sorted": "knowledge-only"}
        ),
    ),
    "expect_list_items_to_be_unique": edit(
        lambda row, kwargs: {column(kwargs): [*row[column(kwargs)][:1]] * 2}
    ),
    "expect_list_items_to_match_regex": edit(other_item),
    "expect_list_lengths_to_be_between": edit(lambda _, kwargs: {column(kwargs): []}),
    "expect_lists_to_be_aligned": edit(
        lambda row, kwargs: {column(kwargs): [*row[column(kwargs)], "C7777777"]}
    ),
    "expect_named_facts_to_be_absent_from_table": add(known_by_name),
    "expect_names_to_be_of_their_cuis": edit(
        lambda _, kwargs: {first_column(kwargs): "no such name"}
    ),
    "expect_negatives_to_be_of_other_positives": remove(never_right),
    "expect_negatives_to_be_unrelated": edit(
        lambda row, _: {"cui": row["original_cui"]}, "label == 0"
    ),
    "expect_negatives_to_differ_in_the_disease_alone": edit(
        lambda row, _: {"full_hypothesis": f"{row['full_hypothesis']} too"}, "label == 0"
    ),
    "expect_no_disease_leakage": leak(str),
    "expect_no_hidden_leakage": leak(hidden),
    "expect_other_names_to_be_of_one_subject": family(
        lambda rows: {"name_kind": "brand", "subject": rows["subject"][2]}
    ),
    "expect_objects_to_be_counted": replace("objects", lambda *_: 1),
    "expect_other_examples_to_be_trained": remove(
        lambda splits, _: (splits["split"] != "test") & (splits.index % 2 == 0)
    ),
    "expect_pairs_to_be_on_one_side": both_sides,
    "expect_pairs_to_match": remove(
        lambda rows, kwargs: (
            rows.index == (rows[first_column(kwargs)] == kwargs["template_based"]).idxmax()
        )
    ),
    "expect_positives_to_have_negatives": remove(all_negatives_but_one),
    "expect_positives_to_number": remove(too_few),
    "expect_premises_to_be_of_their_pairs": edit(
        lambda row, _: {"premise": f"{row['premise']} ."}, "label == 0"
    ),
    "expect_prompts_to_be_of_examples": edit(lambda *_: {"prompt": "[Y]"}),
    "expect_prompts_to_follow_one_template": edit(
        lambda row, _: {"prompt": f"{row['answers'][0]} . {row['prompt']}"}
    ),
    "expect_prompts_to_have_one_slot": edit(lambda *_: {"prompt": "no slot"}),
    "expect_prompts_to_hold_no_answer": edit(
        lambda row, _: {"prompt": f"{row['answers'][0]} . {row['prompt']}"}
    ),
    "expect_random_negatives_to_be_drawn": replace("cui", drawn_again),
    "expect_real_contexts_to_be_in_their_documents": replace(
        "text", lambda *_: "another text", "documents"
    ),
    "expect_roles_to_follow_ids": edit(
        lambda *_: {"added_role": "incorrect"}, "added_role == 'correct'"
    ),
    "expect_rows_to_be_used": lost,
    "expect_segments_to_hold_one_entity": replace("cui", lambda *_: "C7777777", "mentions"),
    "expect_similar_negatives_to_be_nearest": replace(
        "kind", lambda rows, _: rows["kind"].replace({"similar": "random", "random": "similar"})
    ),
    "expect_steps_to_be_nested": replace("shown", lambda rows, _: [[]] * len(rows)),
    "expect_subset_to_be_within": remove(of_a_part),
    "expect_subset_values_to_be_below": too_high,
    "expect_targets_to_be_trained": remove(lambda splits, _: splits["split"] == "train"),
    "expect_templates_to_differ": replace(
        "prompt", lambda rows, _: rows["subject"] + " is of [Y] ."
    ),
    "expect_test_examples_to_be_of_the_target": replace("target", other_targets),
    "expect_tested_premises_to_be_untrained": premises("x", "x"),
    "expect_tested_premises_to_have_no_near_copies": premises(
        "the man has slept in a cold bed for two nights now",
        "the man has slept in a cold bed for two nights",
    ),
    "expect_texts_to_hold_one_candidate": edit(
        lambda _, kwargs: {column(kwargs): "nothing of the kind"}
    ),
    "expect_wordings_to_hold_no_answer": family(
        lambda rows: {"wording": "other", "prompt": f"{rows['answers'][1][0]} helps: [Y] ."}
    ),
}
