"""Log-probabilities of whole texts: of each token given those before it, or given all others."""

from collections.abc import Sequence

from medprobe.core.errors import BadInput
from medprobe.engine import causal, masked
from medprobe.engine.load import Model
from medprobe.engine.masked import Masking, Word


def pseudo_log_probs(
    model: Model, texts: Sequence[str], where: Sequence[str], maskings: Sequence[Masking]
) -> dict[Masking, list[list[float]]]:
    """Return by each masking, for each text, the log-probability of each token given all others.

    Special tokens have none.
    """
    encoded_rows, words = masked_rows(model, texts)
    rows = check_lengths(model, encoded_rows, where)
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    log_probs = masked.token_log_probs(
        model, [rows[i] for i in order], [words[i] for i in order], maskings
    )
    return {
        masking: [row for _, row in sorted(zip(order, ordered_rows, strict=True))]
        for masking, ordered_rows in log_probs.items()
    }


def masked_rows(model: Model, texts: Sequence[str]) -> tuple[list[list[int]], list[list[Word]]]:
    """Return the token ids of each text, and its words without special tokens."""
    encoded = model.tokenizer(list(texts), verbose=False)
    rows: list[list[int]] = encoded["input_ids"]
    words = []
    for i in range(len(rows)):
        positions = enumerate(encoded.word_ids(i))
        word_tokens = [(position, word) for position, word in positions if word is not None]
        words.append(masked.group_by_word(word_tokens))
    return rows, words


def causal_log_probs(
    model: Model, texts: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
) -> list[list[float]]:
    """Return for each text the log-probability of each token given those before it."""
    rows = causal_rows(model, texts, where, answers_first)
    return drop_start(model, causal.log_likelihood(model, rows, model.token_budget))


def causal_rows(
    model: Model, texts: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
) -> list[list[int]]:
    """Return the token ids of each text; all but the first can be scored.

    A text begins as the tokenizer begins it. Where the tokenizer adds nothing, the text's first
    token has no probability and is not scored, unless it is an answer's or the only one:
    `causal.prefix_ids` are before such a text.
    """
    start = causal.start_ids(model)
    encoded = model.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    rows = []
    for ids, name, is_first in zip(
        encoded, where, answers_first or [False] * len(encoded), strict=True
    ):
        needs_prefix = is_first or len(ids) == 1
        begin = causal.prefix_ids(model, name) if needs_prefix and not start else start
        rows.append([*begin, *ids] if ids else [])
    return check_lengths(model, rows, where)


def drop_start(model: Model, log_probs: list[list[float]]) -> list[list[float]]:
    """Return the log-probabilities of texts without those of the tokenizer's start tokens.

    The first token of a row has none.
    """
    further = max(len(causal.start_ids(model)) - 1, 0)
    return [row[further:] for row in log_probs]


def check_lengths(model: Model, rows: list[list[int]], where: Sequence[str]) -> list[list[int]]:
    """Return the rows; raise BadInput for one that is too long or has no token to score."""
    special = model.tokenizer.num_special_tokens_to_add() if model.tokenizer.mask_token else 1
    for row, name in zip(rows, where, strict=True):
        if len(row) > model.max_length:
            problem = f"the filled prompt has {len(row)} tokens, the model reads {model.max_length}"
            raise BadInput(name, problem, "shorten or remove it")
        if len(row) <= special:
            raise BadInput(name, "the filled prompt has no token to score", "remove it")
    return rows
