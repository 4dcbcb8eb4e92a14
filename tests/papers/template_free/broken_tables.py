"""Tables that are broken for one of LIPID's expectations each."""

from helpers.broken_tables import Mutation, column, edit, first_column, remove, replace

MUTATIONS: dict[str, Mutation] = {
    "expect_dates_to_be_past": edit(lambda *_: {"date": "2999-01-01"}),
    "expect_dates_to_be_later": edit(lambda row, _: {"date": row["cut_off"]}),
    "expect_filled_prompts": edit(lambda _, kwargs: {column(kwargs): "nothing of the kind"}),
    "expect_prompts_not_to_begin_with_answers": replace(
        "prompt",
        lambda rows, _: [
            f"{names[0]} : {text}"
            for names, text in zip(rows["answers"], rows["prompt"], strict=True)
        ],
    ),
    "expect_pairs_to_match": remove(
        lambda rows, kwargs: (
            rows.index == (rows[first_column(kwargs)] == kwargs["template_based"]).idxmax()
        )
    ),
    "expect_texts_to_hold_one_candidate": edit(
        lambda _, kwargs: {column(kwargs): "nothing of the kind"}
    ),
}
