"""Tables that are broken for one of context variance's expectations each."""

from helpers.broken_tables import Mutation, edit, replace

MUTATIONS: dict[str, Mutation] = {
    "expect_both_centres_in_pairs": replace(
        "centre",
        lambda rows, _: rows["centre"].mask(rows["pair_id"] == rows["pair_id"][0], "target"),
    ),
    "expect_centres_to_follow_ids": replace(
        "centre",
        lambda rows, _: rows["centre"].replace({"target": "negative", "negative": "target"}),
    ),
    "expect_first_added_to_be_the_target": edit(lambda *_: {"added_id": "C7"}, "step == 1"),
    "expect_layouts_to_follow_kinds": replace(
        "kind",
        lambda rows, _: rows["kind"].replace(
            {"knowledge-only": "knowledge-sorted", "knowledge-sorted": "knowledge-only"}
        ),
    ),
    "expect_objects_to_be_counted": replace("objects", lambda *_: 1),
    "expect_real_contexts_to_be_in_their_documents": replace(
        "text", lambda *_: "another text", "documents"
    ),
    "expect_roles_to_follow_ids": edit(
        lambda *_: {"added_role": "incorrect"}, "added_role == 'correct'"
    ),
    "expect_segments_to_hold_one_entity": replace("cui", lambda *_: "C7777777", "mentions"),
    "expect_steps_to_be_nested": replace("shown", lambda rows, _: [[]] * len(rows)),
}
