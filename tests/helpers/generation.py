"""A checkpoint's generation settings: fields of transformers' GenerationConfig, of other values."""

import json
import shutil
from pathlib import Path
from typing import Any

from transformers import GenerationConfig

END = "eos_token_id"  # also where a text ends in every method: not a setting, but a fact of a model
RECORDS = ("_from_model_config", "transformers_version")
VALUES: dict[str, Any] = {
    **dict.fromkeys(("max_length", "max_new_tokens", "max_cache_len", "prefill_chunk_size"), 3),
    **dict.fromkeys(("min_length", "min_new_tokens", "num_beams", "num_return_sequences"), 7),
    **dict.fromkeys(("early_stopping", "do_sample", "use_mtp", "remove_invalid_values"), True),
    **dict.fromkeys(("renormalize_logits", "token_healing", "output_attentions"), True),
    **dict.fromkeys(("output_hidden_states", "output_logits", "is_assistant"), True),
    **dict.fromkeys(("output_scores", "return_dict_in_generate", "use_cache"), False),
    **dict.fromkeys(("disable_compile", "low_memory"), True),
    **dict.fromkeys(("top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff"), 0.3),
    **dict.fromkeys(("eta_cutoff", "penalty_alpha", "assistant_confidence_threshold"), 0.3),
    **dict.fromkeys(("temperature", "repetition_penalty", "encoder_repetition_penalty"), 5.0),
    **dict.fromkeys(("length_penalty", "guidance_scale", "diversity_penalty"), 5.0),
    **dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size"), 1),
    **dict.fromkeys(("forced_bos_token_id", "forced_eos_token_id", "pad_token_id"), 9),
    **dict.fromkeys(("bos_token_id", "decoder_start_token_id"), 9),
    **{name: [*range(20, 400)] for name in ("suppress_tokens", "begin_suppress_tokens")},
    **dict.fromkeys(("top_k", "num_assistant_tokens", "prompt_lookup_num_tokens"), 2),
    **dict.fromkeys(("max_matching_ngram_size", "assistant_early_exit"), 2),
    **dict.fromkeys(("assistant_lookbehind", "target_lookbehind", "num_beam_groups"), 2),
    "assistant_ensemble_weight": 0.5,
    "bad_words_ids": [[token] for token in range(20, 400)],
    "cache_config": {"nbits": 4},
    "cache_implementation": "static",
    "compile_config": {"mode": "default"},
    "constraints": [1],
    "continuous_batching_config": {"num_blocks": 2},
    "dola_layers": "low",
    "exponential_decay_length_penalty": [1, 9.0],
    "force_words_ids": [[9]],
    "max_time": 1e-9,
    "num_assistant_tokens_schedule": "heuristic",
    "sequence_bias": [[[token], -50.0] for token in range(20, 400)],
    "speculation_type": "mtp",
    "stop_strings": ["a", "e"],
    "watermarking_config": {"bias": 9.0, "seeding_scheme": "lefthash"},
}
FIELDS = tuple(name for name in GenerationConfig().__dict__ if name not in (END, *RECORDS))


def with_settings(folder: Path, copy: Path, file: str, *fields: str) -> Path:
    """Copy a checkpoint, with other values of fields in one of its files."""
    shutil.copytree(folder, copy)
    if file == "config.json":  # which transformers reads where there is no other
        (copy / "generation_config.json").unlink()
    path = copy / file
    content = json.loads(path.read_text())
    for field in fields:
        assert VALUES[field] != content.get(field)
    path.write_text(json.dumps(content | {field: VALUES[field] for field in fields}))
    return copy
