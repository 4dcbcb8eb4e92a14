"""Tiny checkpoints with random weights and small tokenizers, one per architecture."""

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, pre_tokenizers, processors

TEXT = """\
Entecavir may be able to prevent hepatitis B infection in adults and children .
Velotrine treats Karsten syndrome ; it may prevent acute renal failure and chronic pain .
The disease was mapped to gene BRX2 and gene BRX7 in patients with type 2 diabetes mellitus .
Gene product alpha-synuclein protein is encoded by the SNCA gene on chromosome 4 .
Aspirin has physiologic effect : decreased platelet aggregation , anti-inflammatory activity .
Pneumonia occurs after influenza virus infection ; fracture of bone occurs after trauma .
"""
SIZE = 32  # hidden units
LAYERS = 2
POSITIONS = 128

MASKED = ("bert", "roberta", "deberta-v2", "electra", "albert", "distilbert", "modernbert")
CAUSAL = (
    *("gpt2", "llama", "mistral", "qwen3", "gemma3", "gemma3_text"),
    *("gpt_neox", "opt", "phi", "biogpt"),
)
# Causal models that keep other things of a text than keys and values of each token and layer.
RECURRENT = (
    *("mamba", "mamba2", "rwkv", "recurrent_gemma"),
    *("lfm2", "falcon_h1", "qwen3_next", "llama4_text"),
)
SEQ2SEQ = ("t5", "flan-t5", "bart", "pegasus")


def model(arch: str, folder: Path, seed: int = 0) -> Path:
    """Write a tiny random checkpoint of `arch`, a key of _NETWORKS; returns its folder."""
    tokenizer = _TOKENIZERS[arch]()
    torch.manual_seed(seed)
    network = _NETWORKS[arch](tokenizer)
    with torch.no_grad():
        for parameter in network.parameters():  # far from alike, so that scores differ clearly
            parameter.add_(torch.randn_like(parameter) * 0.2)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def with_template(folder: Path, copy: Path, template: str | dict[str, str]) -> Path:
    """Copy a checkpoint, with a template for chats, or several by name."""
    shutil.copytree(folder, copy)
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(copy)
    return copy


def _words(text: str) -> list[str]:
    return sorted(set(text.split()))


def _bert_tokenizer(lower: bool) -> Any:
    """Words of four letters and fewer whole, longer ones in two or three pieces; letters alone."""
    text = TEXT.lower() if lower else TEXT
    pieces = set(text) - set(" \n") | {f"##{letter}" for letter in text if letter.isalnum()}
    for word in _words(re.sub(r"\W", " ", text)):
        pieces |= {word[:4]} | {f"##{word[i : i + 5]}" for i in range(4, len(word), 5)}
    ordered = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(pieces)]
    return transformers.BertTokenizer(
        vocab={piece: place for place, piece in enumerate(ordered)},
        do_lower_case=lower,
        model_max_length=POSITIONS,
    )


def _byte_tokenizer(kind: Any, specials: list[str]) -> Any:
    """Byte-level BPE: all bytes, and words of TEXT (with their blank) joined from the left."""
    vocabulary = [*specials, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    return _joined(kind, vocabulary, [f"Ġ{word}" for word in _words(TEXT) if word.isascii()])


def _joined(kind: Any, vocabulary: list[str], words: list[str]) -> Any:
    """BPE of these characters that joins words from the left, up to six characters."""
    merges = []
    for word in words:
        for end in range(2, min(len(word), 6) + 1):
            if word[:end] not in vocabulary:
                vocabulary.append(word[:end])
                merges.append((word[: end - 1], word[end - 1]))
    places = {piece: place for place, piece in enumerate(vocabulary)}
    return kind(vocab=places, merges=merges, model_max_length=POSITIONS)


def _unigrams(kind: Any, specials: list[str], text: str = TEXT, **more: Any) -> Any:
    """Unigrams: letters, and the words of a text in pieces of up to five letters."""
    words = [f"▁{word}" for word in _words(text)]
    pieces = {word[i : i + 5] for word in words for i in range(0, len(word), 5)}
    letters = {"▁", *text.replace(" ", "").replace("\n", "")}
    vocabulary = [(special, 0.0) for special in specials]
    vocabulary += [(letter, -9.0) for letter in sorted(letters)]
    vocabulary += [(piece, -6.0) for piece in sorted(pieces - letters)]
    return kind(vocab=vocabulary, **more)


def _t5_tokenizer() -> Any:
    return _unigrams(transformers.T5Tokenizer, ["<pad>", "</s>", "<unk>"], extra_ids=100)


def _modernbert_tokenizer() -> Any:
    """Byte-level BPE with BERT's special tokens, as ModernBERT's is saved."""
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    tokenizer = _byte_tokenizer(transformers.GPTNeoXTokenizer, specials)
    pieces = tokenizer.backend_tokenizer
    pieces.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    pieces.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=POSITIONS,
        **{f"{special[1:-1].lower()}_token": special for special in specials},
    )


def _joined_tokenizer(kind: Any, specials: list[str]) -> Any:
    """Return BPE over text whose blanks are "▁", as Llama and Gemma have it.

    Its tokens are bytes, letters, and words of TEXT joined from the left. It begins a text.
    """
    spelled = [f"<0x{byte:02X}>" for byte in range(256)]  # what has no letter
    letters = sorted({*TEXT.replace(" ", "").replace("\n", "")})
    vocabulary = [*specials, *spelled, "▁", *letters]
    tokenizer = _joined(kind, vocabulary, [f"▁{word}" for word in _words(TEXT)])
    tokenizer.add_bos_token = True
    return tokenizer


def _gpt2_tokenizer() -> Any:
    return _byte_tokenizer(transformers.GPT2Tokenizer, ["<|endoftext|>"])


def _llama_tokenizer() -> Any:
    return _joined_tokenizer(transformers.LlamaTokenizer, ["<unk>", "<s>", "</s>"])


def _gemma_tokenizer() -> Any:
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    return _joined_tokenizer(transformers.GemmaTokenizer, specials)


def _roberta_tokenizer() -> Any:
    return _byte_tokenizer(transformers.RobertaTokenizer, _ROBERTA_SPECIALS)


_ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
_TOKENIZERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: _bert_tokenizer(lower=True),
    "bert-cased": lambda: _bert_tokenizer(lower=False),
    "encoder": lambda: _bert_tokenizer(lower=True),
    **dict.fromkeys(("roberta", "bart", "ibert"), _roberta_tokenizer),
    **dict.fromkeys(("gpt2", "bert-generation", *RECURRENT), _gpt2_tokenizer),
    "llama": _llama_tokenizer,
    "mistral": _llama_tokenizer,
    "gemma3_text": _gemma_tokenizer,
    "gemma3": _gemma_tokenizer,
    "qwen3": lambda: _byte_tokenizer(transformers.Qwen2Tokenizer, ["<|endoftext|>"]),
    "gpt_neox": lambda: _byte_tokenizer(transformers.GPTNeoXTokenizer, ["<|endoftext|>"]),
    "opt": _gpt2_tokenizer,
    "phi": _gpt2_tokenizer,
    "biogpt": _gpt2_tokenizer,  # BioGPT's tokenizer is not a fast one
    "t5": _t5_tokenizer,
    "flan-t5": _t5_tokenizer,
    "electra": lambda: _bert_tokenizer(lower=True),
    "distilbert": lambda: _bert_tokenizer(lower=True),
    "deberta-v2": lambda: _unigrams(
        transformers.DebertaV2Tokenizer, ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    ),
    "albert": lambda: _unigrams(
        transformers.AlbertTokenizer, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], TEXT.lower()
    ),
    "modernbert": _modernbert_tokenizer,
    "pegasus": lambda: _unigrams(
        transformers.PegasusTokenizer,
        ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, 103)), "<unk>"],
        model_max_length=POSITIONS,
    ),
}


def _network_of_family(
    auto: str, kind: str, *, start: str = "", **more: Any
) -> Callable[[Any], Any]:
    """A function that makes a network of the family `kind` for a tokenizer.

    `auto` names a class of transformers, which takes long to import, and `start` the special token
    that a decoder begins with. Sizes are set by the names that most families use. Attention
    windows, where a family has them, are shorter than texts.
    """

    def network(tokenizer: Any) -> Any:
        settings = {
            "hidden_size": SIZE,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 2,
            "intermediate_size": 2 * SIZE,
            "max_position_embeddings": POSITIONS,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            **({"decoder_start_token_id": getattr(tokenizer, start)} if start else {}),
            **more,
        }
        config = transformers.AutoConfig.for_model(kind, vocab_size=len(tokenizer), **settings)
        return getattr(transformers, auto).from_config(config)

    return network


_causal = partial(_network_of_family, "AutoModelForCausalLM")
_masked = partial(_network_of_family, "AutoModelForMaskedLM")
_seq2seq = partial(_network_of_family, "AutoModelForSeq2SeqLM")
_T5: dict[str, Any] = {
    "start": "pad_token_id",
    "num_layers": LAYERS,
    "d_kv": SIZE // 2,
    "d_ff": 2 * SIZE,
    "max_position_embeddings": None,  # its positions are relative
}
_BART: dict[str, Any] = {
    **{f"{part}_layers": LAYERS for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 2 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 2 * SIZE for part in ("encoder", "decoder")},
}
_GROUPED: dict[str, Any] = {
    "num_key_value_heads": 1,
    "head_dim": SIZE // 2,
}  # heads that share keys and values


def _gemma3(tokenizer: Any) -> Any:
    """Gemma 3 as it is published: one configuration of text, one of pictures, in a third."""
    text = _causal("gemma3_text", sliding_window=6, **_GROUPED)(tokenizer).config
    pictures = {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "image_size": 8,
        "patch_size": 4,
    }
    config = transformers.Gemma3Config(
        text_config=text.to_dict(), vision_config=pictures, mm_tokens_per_image=4
    )
    return transformers.AutoModelForCausalLM.from_config(config)


_MAMBA: dict[str, Any] = {
    **{"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1},
    "chunk_size": 8,  # texts are filled up to whole chunks
}
_RECURRENT: dict[str, dict[str, Any]] = {
    "mamba": {"state_size": 8},
    "mamba2": _MAMBA,
    "rwkv": {"attention_hidden_size": SIZE, "context_length": POSITIONS},
    "recurrent_gemma": {"lru_width": SIZE, "attention_window_size": 6, "num_hidden_layers": 3},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_multiple_of": 8},
    "falcon_h1": {
        "mamba_d_ssm": SIZE,
        "mamba_n_heads": 4,
        "mamba_d_head": 8,
        "mamba_d_state": 8,
        "mamba_chunk_size": 8,
    },
    "qwen3_next": {
        "layer_types": ["linear_attention", "full_attention"],
        **{f"linear_{part}_head_dim": 8 for part in ("key", "value")},
        **{f"linear_num_{part}_heads": 2 for part in ("key", "value")},
        **{"num_experts": 2, "num_experts_per_tok": 1},
        **{f"{part}intermediate_size": 16 for part in ("moe_", "shared_expert_")},
    },
    "llama4_text": {
        "attention_chunk_size": 6,
        "intermediate_size_mlp": 2 * SIZE,
        "num_local_experts": 2,
    },
}
_NETWORKS: dict[str, Callable[[Any], Any]] = {
    "bert": _masked("bert"),
    "bert-cased": _masked("bert"),
    "encoder": _network_of_family("AutoModel", "bert"),
    "roberta": _masked("roberta", type_vocab_size=1, max_position_embeddings=POSITIONS + 2),
    "bart": _seq2seq("bart", **_BART, start="eos_token_id"),
    "ibert": _masked("ibert", type_vocab_size=1, max_position_embeddings=POSITIONS + 2),
    "bert-generation": _causal("bert-generation", is_decoder=False),
    "gpt2": _causal("gpt2"),
    **{
        kind: _causal(kind, **{**({} if kind in ("mamba", "mamba2") else _GROUPED), **more})
        for kind, more in _RECURRENT.items()
    },
    "llama": _causal("llama", **_GROUPED),
    "mistral": _causal("mistral", sliding_window=6, **_GROUPED),
    "qwen3": _causal("qwen3", **_GROUPED),
    "gemma3_text": _causal("gemma3_text", sliding_window=6, **_GROUPED),
    "gemma3": _gemma3,
    "gpt_neox": _causal("gpt_neox"),
    "opt": _causal("opt", ffn_dim=2 * SIZE, word_embed_proj_dim=SIZE),
    "phi": _causal("phi"),
    "biogpt": _causal("biogpt"),
    "t5": _seq2seq("t5", **_T5),
    "flan-t5": _seq2seq("t5", **_T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "electra": _masked("electra", embedding_size=SIZE // 2),
    "distilbert": _masked("distilbert", dim=SIZE, n_layers=LAYERS, n_heads=2, hidden_dim=2 * SIZE),
    "deberta-v2": _masked(
        "deberta-v2",
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
    ),
    "albert": _masked("albert", embedding_size=SIZE // 2),
    "modernbert": _masked("modernbert", local_attention=8, global_attn_every_n_layers=2),
    "pegasus": _seq2seq("pegasus", **_BART, start="pad_token_id"),
}
