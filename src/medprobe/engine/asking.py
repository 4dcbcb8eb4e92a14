"""A prompt as people put it to a model that writes: a text to go on with, or a turn of a chat.

Either is a text with one slot `[Y]`, where the answer is written, and behind it what ends the
answer. Facts that are told before, the *shots*, stand in the same form (Brown et al. 2020,
section 2). A chat's text is made by the tokenizer's own template, which also says how an answer
begins and ends.
"""

from collections.abc import Sequence
from dataclasses import replace

from jinja2 import TemplateError

from medprobe.core.errors import BadInput
from medprobe.core.tables import BLANK, SLOT
from medprobe.engine.causal import start_ids
from medprobe.engine.load import Model
from medprobe.engine.slots import ANCHOR, Slot, split_prompt, text_slots

Turn = tuple[str, str]  # a question and its answer


def decoder_start(model: Model) -> tuple[int, ...]:
    """What a decoder's text begins with."""
    begin = model.tokenizer.bos_token_id
    return (model.model.config.decoder_start_token_id, *([] if begin is None else [begin]))


def has_template(model: Model) -> bool:
    """Does the model's tokenizer have a template for chats?"""
    return bool(model.tokenizer.chat_template)


def completion(prompt: str, told: Sequence[str], separator: str) -> str:
    """The prompt up to its slot, behind the sentences `told`, and what ends the answer.

    Where words stand behind the slot, the whole prompt with a blank comes first, for what goes on
    from left to right would not know them.

    >>> completion("A treats [Y] .", ["C treats D ."], " | ")
    'C treats D . | A treats [Y] .'
    >>> completion("[Y] is treated by A .", [], " | ")
    '____ is treated by A . | [Y] is treated by A .'
    """
    before, after = split_prompt(prompt)
    unseen = [before + BLANK + after] if any(map(str.isalnum, after)) else []
    return separator.join([*told, *unseen, prompt])


def turns(questions: Sequence[Turn], question: str, separator: str) -> str:
    """Questions with their answers, and the last one unanswered, as plain text with a slot.

    >>> turns([("C treats ____ .", "D")], "A treats ____ .", " | ")
    'C treats ____ . | D | A treats ____ . | [Y]'
    """
    answered = [text for turn in questions for text in turn]
    return separator.join([*answered, question, SLOT])


def chat(model: Model, questions: Sequence[Turn], question: str) -> str:
    """The same by the tokenizer's template. Raises BadInput where it has none, or one that takes no
    such turns."""
    if not has_template(model):
        problem = "its tokenizer has no template for chats"
        raise BadInput(model.name, problem, "leave chat out of `templates`")
    said = [text for turn in questions for text in turn] + [question, SLOT]
    roles = ["user", "assistant"] * (len(said) // 2)
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]
    try:
        text: str = model.tokenizer.apply_chat_template(messages, tokenize=False)
    except TemplateError as error:
        raise BadInput(model.name, f"its template refuses the chat: {error}") from error
    if text.count(SLOT) != 1:
        raise BadInput(model.name, "its template does not keep answers as they are")
    return text


def slots(
    model: Model, texts: Sequence[str], where: Sequence[str], separator: str, *, begun: bool
) -> list[Slot]:
    """The tokens of texts with a slot, and the one token that ends each answer: the first behind
    the slot, or of the separator where nothing stands there. `begun`: the text itself has the token
    that a text begins with, as a chat's has."""
    whole = [text + separator + ANCHOR if text.rstrip().endswith(SLOT) else text for text in texts]
    start = [] if begun else start_ids(model)
    made = text_slots(model.tokenizer, whole, where, start)
    marks = {*model.tokenizer.all_special_ids, *model.tokenizer.added_tokens_decoder}
    return [  # behind a mark, such as that of a turn, a text begins
        replace(slot, after=slot.after[:1], left="" if slot.before[-1] in marks else slot.left)
        for slot in made
    ]
