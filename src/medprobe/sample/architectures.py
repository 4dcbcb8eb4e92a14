"""The sample models' tokenizers and architectures: as the published models have, but small."""

import string
from pathlib import Path
from typing import Any

import torch
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.models.bart.modeling_bart import BartAttention

from medprobe.sample.settings import SampleKind, TrainingRecipe

POSITIONS = 256  # the longest input, in pieces
IDENTITY_SCALE = 0.7  # before training, attention hands on this share of what it reads
ADDED = 0.6  # of what its other layers add to that by default, what they add before training
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAIR_SPECIAL = ["<pad>", "</s>", "<unk>", "<s>", "<mask>"]
ROLES = {"user": "<user>", "assistant": "<model>"}  # what a turn of a chat begins with
CHAT = (
    "{{ bos_token }}{% for turn in messages %}"
    "{{ {'user': '<user>', 'assistant': '<model>'}[turn['role']] }}"
    "{{ turn['content'] }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<model>{% endif %}"
)


def tokenizer(kind: SampleKind, texts: list[Path], vocabulary: int) -> Any:
    """Train a fast tokenizer of `vocabulary` pieces on all corpora; models of a kind share it.

    Masked models have lower-case word pieces, as BERT has; the others have byte-level pairs, as
    GPT-2 and BART have.
    """
    files = [str(path) for path in sorted(texts)]
    return _word_pieces(files, vocabulary) if kind == "masked" else _pairs(files, vocabulary, kind)


def _word_pieces(files: list[str], vocabulary: int) -> Any:
    """BERT's tokenizer.

    Its pieces are learnt as byte pairs and then divided by whether they begin a word: the
    library's own trainer of word pieces draws other pieces in each run.
    """
    lower, words = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    learner = Tokenizer(models.BPE())
    learner.normalizer, learner.pre_tokenizer = lower, words
    text = "".join(Path(file).read_text(encoding="utf-8") for file in files)
    letters = sorted({*lower.normalize_str(text + string.printable)} - {*string.whitespace})
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=letters, show_progress=False
    )
    learner.train(files, trainer)
    learnt = sorted(learner.get_vocab())
    all_pieces = [*BERT_SPECIAL, *learnt, *(f"##{piece}" for piece in learnt)]
    return BertTokenizer(
        vocab={piece: number for number, piece in enumerate(all_pieces)}, model_max_length=POSITIONS
    )


def _pairs(files: list[str], vocabulary: int, kind: SampleKind) -> Any:
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=PAIR_SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pieces.train(files, trainer)
    pieces.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    if kind in ("causal", "chat"):
        begin, text, more = "</s>", "</s> $A", {}  # they learn texts after their start token
    else:
        begin, text, more = "<s>", "<s> $A </s>", {"mask_token": "<mask>"}
    pieces.post_processor = processors.TemplateProcessing(
        single=text, special_tokens=[("<s>", 3), ("</s>", 1)]
    )
    pair_tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=POSITIONS,
        pad_token="<pad>",
        bos_token=begin,
        eos_token="</s>",
        unk_token="<unk>",
        **more,
    )
    if kind == "chat":
        pair_tokenizer.add_tokens([*ROLES.values()], special_tokens=True)
        pair_tokenizer.chat_template = CHAT
    return pair_tokenizer


def build_untrained(recipe: TrainingRecipe, vocabulary: int) -> Any:
    """Build a model of the recipe's kind and size, its weights drawn from torch's generator."""
    builders = {"masked": _bert, "causal": _gpt2, "chat": _llama, "seq2seq": _bart}
    return builders[recipe.kind](recipe, vocabulary)


def load_trained(kind: SampleKind, folder: Path) -> Any:
    """Load the sample model of a kind from its checkpoint in `folder`."""
    kinds: dict[SampleKind, Any] = {
        "masked": BertForMaskedLM,
        "causal": GPT2LMHeadModel,
        "chat": LlamaForCausalLM,
        "seq2seq": BartForConditionalGeneration,
    }
    return kinds[kind].from_pretrained(folder)


def _bert(recipe: TrainingRecipe, vocabulary: int) -> Any:
    """Its head begins by handing on what it reads, too, and its other layers by adding little."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=recipe.hidden,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.hidden // 64,
        intermediate_size=2 * recipe.hidden,  # half of BERT's share: it learns as much in less
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=recipe.dropout,
        attention_probs_dropout_prob=recipe.dropout,
    )
    model: Any = BertForMaskedLM(config)
    for layer in model.bert.encoder.layer:
        _start_as_identity(layer.attention.self.value.weight, layer.attention.output.dense.weight)
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.output.dense.weight.mul_(ADDED)
        model.cls.predictions.transform.dense.weight.add_(torch.eye(recipe.hidden))
    return model


@torch.no_grad()
def _start_as_identity(*maps: torch.Tensor) -> None:
    """Let an attention begin by passing on what it reads, as that of large models does.

    This sets the maps from what it reads to values and from values to what it adds. A small model
    then learns in half the steps.

    Source: Trockman and Kolter 2023, "Mimetic Initialization of Self-Attention Layers", section 3.
    """
    for weight in maps:
        weight.copy_(IDENTITY_SCALE**0.5 * torch.eye(len(weight)))


def _gpt2(recipe: TrainingRecipe, vocabulary: int) -> Any:
    config = GPT2Config(
        vocab_size=vocabulary,
        n_embd=recipe.hidden,
        n_layer=recipe.layers,
        n_head=recipe.hidden // 64,
        n_positions=POSITIONS,
        resid_pdrop=recipe.dropout,
        embd_pdrop=recipe.dropout,
        attn_pdrop=recipe.dropout,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    model: Any = GPT2LMHeadModel(config)
    for layer in model.transformer.h:
        *_, values = layer.attn.c_attn.weight.chunk(3, dim=1)
        _start_as_identity(values, layer.attn.c_proj.weight)
    return model


def _llama(recipe: TrainingRecipe, vocabulary: int) -> Any:
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=recipe.hidden,
        intermediate_size=8 * recipe.hidden // 3,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.hidden // 64,
        max_position_embeddings=POSITIONS,
        attention_dropout=recipe.dropout,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    model: Any = LlamaForCausalLM(config)
    for layer in model.model.layers:
        _start_as_identity(layer.self_attn.v_proj.weight, layer.self_attn.o_proj.weight)
    return model


def _bart(recipe: TrainingRecipe, vocabulary: int) -> Any:
    config = BartConfig(
        vocab_size=vocabulary,
        d_model=recipe.hidden,
        encoder_layers=recipe.layers,
        decoder_layers=recipe.layers,
        encoder_attention_heads=recipe.hidden // 64,
        decoder_attention_heads=recipe.hidden // 64,
        encoder_ffn_dim=4 * recipe.hidden,
        decoder_ffn_dim=4 * recipe.hidden,
        max_position_embeddings=POSITIONS,
        dropout=recipe.dropout,
        attention_dropout=recipe.dropout,
        pad_token_id=0,
        bos_token_id=3,
        eos_token_id=1,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    model: Any = BartForConditionalGeneration(config)
    for part in model.modules():
        if isinstance(part, BartAttention):
            _start_as_identity(part.v_proj.weight, part.out_proj.weight)
    return model
