"""Prompts for models that write: a text to continue, or a turn of a chat.

Either is a text with one slot `[Y]`, where the answer is written, followed by what ends the answer.
Facts given before the question, the *shots*, have the same form (Brown et al. 2020, section 2). A
chat's text is made by the tokenizer's own template, which also begins and ends an answer.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Any, Final, NamedTuple

import jinja2

from medprobe.core.errors import BadInput
from medprobe.core.tables import BLANK, SLOT
from medprobe.engine.causal import prompt_slots
from medprobe.engine.load import Model
from medprobe.engine.slots import ANCHOR, Slot, split_prompt, text_slots

Turn = tuple[str, str]  # a question and its answer


class StepsError(Exception):
    """A template runs longer than any chat needs."""


DATE: Final = date(2024, 7, 26)  # of a chat; Llama 3's templates have it where none is given
DIRECTIVES: Final = "aAbBcdeHIjmMpSuUVwWxXyYZ"  # of strftime
RANDOM: Final = frozenset({"random", "lipsum"})  # what draws by chance in Jinja
LONGEST_CHAT: Final = 1_000_000  # characters, far more than any model reads
CORRECT_TEMPLATE: Final = "correct chat_template in the model's folder"
MOST_STEPS: Final = 1_000_000  # lines of code that a template runs; those of Llama 3 take thousands


class Chat(NamedTuple):
    """A question, the questions and answers before it, for the chat template of the model.

    `today` is the date for a template that asks for one. A server has a clock of its own. `system`
    comes before all turns.
    """

    turns: tuple[Turn, ...]
    question: str
    today: date = DATE
    system: str = ""


Prompt = Chat | str  # or a text with one slot `[Y]`


def decoder_start(model: Model) -> tuple[int, ...]:
    """Return the token ids that a decoder's text begins with."""
    begin = model.tokenizer.bos_token_id
    return (model.model.config.decoder_start_token_id, *([] if begin is None else [begin]))


def has_template(model: Model) -> bool:
    """Return whether the model's tokenizer has a template for chats."""
    return bool(model.tokenizer.chat_template)


def completion(prompt: str, facts: Sequence[str], separator: str) -> str:
    """Return a text to continue: facts, then the prompt up to its slot, then what ends the answer.

    Where words follow the slot, the whole prompt with a blank comes first: a model that writes from
    left to right would not know these words.

    >>> completion("A treats [Y] .", ["C treats D ."], " | ")
    'C treats D . | A treats [Y] .'
    >>> completion("[Y] is treated by A .", [], " | ")
    '____ is treated by A . | [Y] is treated by A .'
    """
    before, after = split_prompt(prompt)
    full_prompt = [before + BLANK + after] if any(map(str.isalnum, after)) else []
    return separator.join([*facts, *full_prompt, prompt])


def turns(questions: Sequence[Turn], question: str, separator: str) -> str:
    """Return questions with their answers and a last question with a slot, as plain text.

    >>> turns([("C treats ____ .", "D")], "A treats ____ .", " | ")
    'C treats ____ . | D | A treats ____ . | [Y]'
    """
    texts = [text for turn in questions for text in turn]
    return separator.join([*texts, question, SLOT])


def chat(
    model: Model,
    questions: Sequence[Turn],
    question: str,
    today: date = DATE,
    system: str = "",
    *,
    thinks: bool = False,
) -> str:
    """Return the text of `turns` in the form of the tokenizer's chat template."""
    if not has_template(model):
        problem = "its tokenizer has no template for chats"
        raise BadInput(model.name, problem, "leave chat out of `templates`")
    template = _dated_template(model, today)
    messages = chat_messages(questions, question, system)
    messages += [] if thinks else [{"role": "assistant", "content": SLOT}]
    try:
        with _bounded():
            text: str = model.tokenizer.apply_chat_template(
                messages, chat_template=template, tokenize=False, add_generation_prompt=thinks
            )
    except Exception as error:  # a template is a program: it can fail in any way
        problem = f"its template refuses the chat ({type(error).__name__})"
        raise BadInput(model.name, problem, CORRECT_TEMPLATE) from error
    text += SLOT if thinks else ""
    if len(text) > LONGEST_CHAT:
        problem = f"its template makes {len(text):,} characters of a chat, at most {LONGEST_CHAT:,}"
        raise BadInput(model.name, problem, CORRECT_TEMPLATE)
    if text.count(SLOT) != 1:
        raise BadInput(model.name, "its template does not keep answers as they are")
    if any(message["content"].strip() not in text for message in messages):
        raise BadInput(model.name, "its template does not keep what is asked as it is")
    return text


def chat_messages(
    questions: Sequence[Turn], question: str, system: str = ""
) -> list[dict[str, str]]:
    """Return the messages of a chat up to its last question, as templates and servers read them.

    >>> [message["role"] for message in chat_messages([("a", "b")], "c", "d")]
    ['system', 'user', 'assistant', 'user']
    """
    pairs = [("system", system)] if system else []
    for asked, answer in questions:
        pairs += [("user", asked), ("assistant", answer)]
    pairs.append(("user", question))
    return [{"role": role, "content": text} for role, text in pairs]


def _dated_template(model: Model, today: date) -> str:
    """Return the tokenizer's template with a clock that stands still at a date.

    transformers gives templates the function `strftime_now`. A macro of this name, which replaces
    each directive by its value at the date, hides it.
    """
    try:
        template: str = model.tokenizer.get_chat_template()
    except ValueError as error:  # several templates
        problem = "its tokenizer has templates for chats with names, and no default"
        raise BadInput(model.name, problem, CORRECT_TEMPLATE) from error
    try:
        tokens = [*jinja2.Environment().lex(template)]
    except jinja2.TemplateSyntaxError as error:
        problem = f"its template is not Jinja ({type(error).__name__})"
        raise BadInput(model.name, problem, CORRECT_TEMPLATE) from error
    if any(text.strip("'\"") in RANDOM for _, kind, text in tokens if kind in ("name", "string")):
        problem = "its template draws by chance, which no result can be repeated with"
        raise BadInput(model.name, problem, CORRECT_TEMPLATE)
    values = "".join(
        f".replace({f'%{letter}'!r}, {today.strftime(f'%{letter}')!r})" for letter in DIRECTIVES
    )
    macro = f"{{%- macro strftime_now(format) -%}}{{{{ format{values} }}}}{{%- endmacro %}}"
    return f"{macro}\n{template}"  # transformers' Jinja drops the line end after a block


@contextmanager
def _bounded() -> Iterator[None]:
    """Raise `StepsError` in code of more lines than `MOST_STEPS`, always at the same line."""
    steps, previous = 0, sys.gettrace()

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise StepsError
        return count

    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(previous)


def slots(
    model: Model, texts: Sequence[str], where: Sequence[str], separator: str, *, has_start: bool
) -> list[Slot]:
    """Tokenise texts with a slot, each with the one token that ends its answer.

    The end is the first token after the slot, or that of the separator where no text follows.
    """
    complete_texts = [
        text + separator + ANCHOR if text.rstrip().endswith(SLOT) else text for text in texts
    ]
    if has_start:
        slots = text_slots(model.tokenizer, complete_texts, where)
    else:
        slots = prompt_slots(model, complete_texts, where)
    marks = {*model.tokenizer.all_special_ids, *model.tokenizer.added_tokens_decoder}
    return [  # behind a mark, such as that of a turn, a text begins
        replace(
            slot, after=slot.after[:1], preceding="" if slot.before[-1] in marks else slot.preceding
        )
        for slot in slots
    ]


def text_of(model: Model, prompt: Prompt) -> str:
    """Return a prompt as text, a chat by the tokenizer's template."""
    return prompt if isinstance(prompt, str) else chat(model, *prompt)


def answer_slots(
    model: Model, prompts: Sequence[Prompt], where: Sequence[str], separator: str
) -> list[Slot]:
    """Return the slots of prompts under a tokenizer, each with the one token that ends an answer.

    All prompts are chats, or all are texts.
    """
    has_start = any(isinstance(prompt, Chat) for prompt in prompts)
    texts = [text_of(model, prompt) for prompt in prompts]
    return slots(model, texts, where, separator, has_start=has_start)
