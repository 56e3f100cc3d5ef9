"""What check_gpt2.py and check_gpt2_errors.py share: they run the example gpt2, whose path is their argument, on a
small model with random weights."""
import os
import re
import subprocess
import sys

import gpt2_reference as reference

if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} GPT2")
PROGRAM = os.path.abspath(sys.argv[1])

LEARNED = """It's the cat's hat; they're not where we'd left them, and I'm sure you've seen that they'll be there at 10.
The theatre there is theirs. In 1984 and in 2024 the été was an été. naïve café 你好你好世界 привет привет 🙂🙂
    return the_value;\n    return there;\n"""

CONFIG = {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
          "bos_token_id": 300, "layer_norm_epsilon": 5e-02, "model_type": "gpt2", "n_ctx": 12, "n_embd": 16,
          "n_head": 2, "n_layer": 2, "n_positions": 12, "summary_activation": None, "summary_use_proj": True,
          "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 0}

failures = []


def complain(what):
    print(f"FAILED: {what}")
    failures.append(what)


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)


def expect(what, actual, expected):
    if actual != expected:
        complain(f"{what}: {actual!r}, not {expected!r}")


def refuse(status, pattern, *arguments):
    """One sentence on standard error, and nothing beside it."""
    done = run(*arguments)
    said = done.stderr.decode(errors="replace")
    if done.returncode != status or said.count("\n") != 1 or not re.search(pattern, said) or done.stdout:
        complain(f"{arguments}: status {done.returncode}, not {status}, or not one sentence '{pattern}': {said}")


def make_model(folder):
    """Writes the files, and returns what is in them."""
    tokenizer = reference.learn(LEARNED, 200)
    config = {**CONFIG, "vocab_size": len(tokenizer.vocabulary)}
    weights = reference.make_weights(config, 18)
    reference.write_folder(folder, config, tokenizer, weights)
    return config, tokenizer, weights
