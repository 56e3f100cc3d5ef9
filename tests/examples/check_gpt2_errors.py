#!/usr/bin/env python3
"""check_gpt2_errors.py GPT2: what the example gpt2 says of wrong files and words: one sentence each."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import gpt2_reference as reference
from gpt2_program import PROGRAM, expect, failures, make_model, refuse, run


def spoil(work, pattern, name, content):
    """The good folder with that file as bytes, JSON, or tensors, or (None) without it: it is refused."""
    folder = os.path.join(work, "bad")
    path = os.path.join(folder, name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(work, "good"), folder)
    os.remove(path)
    if isinstance(content, dict) and name.endswith(".safetensors"):
        reference.write_safetensors(path, content)
    elif content is not None:
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
    refuse(1, pattern, "--model", folder)


def check_bad_configs(work, config):
    size = config["vocab_size"]
    for change, pattern in [
            ({"n_layer": None}, "n_layer is 0; a number from 1 to"),
            ({"n_head": 3}, "head"),
            ({"n_embd": "x"}, "n_embd is x; a whole number expected"),
            ({"n_embd": 16.5}, "n_embd is 16.5;"),
            ({"n_layer": -2}, "n_layer is -2;"),
            ({"n_layer": 1 << 40}, "n_layer is 1099511627776;"),
            ({"n_positions": None, "n_ctx": None}, "n_positions is 0;"),
            ({"n_inner": [1]}, "n_inner is no number; a whole number expected"),
            ({"activation_function": "swish"}, "activation_function is swish; gelu_new, gelu or relu expected"),
            ({"layer_norm_epsilon": 0}, "layer_norm_epsilon is 0; a number between 0 and 1 expected"),
            ({"layer_norm_epsilon": "1e-5x"}, "layer_norm_epsilon is 1e-5x;"),
            ({"model_type": "gpt_neo"}, "model_type is gpt_neo; gpt2 expected"),
            ({"scale_attn_weights": False}, "scale_attn_weights is false; true expected"),
            ({"scale_attn_by_inverse_layer_idx": True}, "by_inverse_layer_idx is true; false expected"),
            ({"tie_word_embeddings": 1}, "tie_word_embeddings is 1; true or false expected"),
            ({"vocab_size": size - 1}, f"vocab.json has {size} tokens, and config.json says {size - 1}"),
            ({"vocab_size": size + 1}, "transformer.wte.weight"),
            ({"n_positions": 13}, "transformer.wpe.weight"),
            ({"n_inner": 63}, "mlp.c_fc"),
            ({"n_layer": 3}, "transformer.h.2"),
            ({"tie_word_embeddings": False}, "lm_head.weight"),
            ({"n_layer": 1}, r"a tensor 'transformer\.h\.1\..*', and the model of config.json has not$")]:
        spoil(work, pattern, "config.json", {**config, **change})
    for text, pattern in [(b"", "config.json, byte 0: '{' expected"),
                          (b"[]", "byte 0: '{' expected"),
                          (b'{"n_layer": 2', "byte 13: ',' or '}' expected"),
                          (b'{"a": tru}', "byte 6: a value expected"),
                          (b'{"n_head": 2, "n_head": 2}', "config.json says n_head twice"),
                          (json.dumps(config).encode() + b"x", "the end expected")]:
        spoil(work, pattern, "config.json", text)


def check_bad_tokens(work, tokenizer):
    vocabulary = tokenizer.vocabulary
    size, end, first = len(vocabulary), vocabulary["<|endoftext|>"], next(iter(tokenizer.ranks))
    made = "".join(first)

    def instead(token, other):
        return {other if name == token else name: number for name, number in vocabulary.items()}

    for content, pattern in [
            ({**vocabulary, "zz": -1}, "a token's number expected"),
            ({**vocabulary, "zz": size + 1}, f"has {size + 1} tokens, but none of the number {size}$"),
            ({**vocabulary, "zz": 1 << 50}, "the token 'zz' has the number 1125899906842624; each from 0 on"),
            ({**vocabulary, "zz": 5}, "the token 'zz' has the number 5; each from 0 on is expected once"),
            (instead("<|endoftext|>", "Ġa b"), "the token 'Ġa b' is not of GPT-2's alphabet"),
            (instead("<|endoftext|>", "你"), "the token '你' is not of GPT-2's alphabet"),
            (instead("<|endoftext|>", "zz"), "no text is given, and the vocabulary has no <.endoftext.>"),
            (instead("a", "zz"), "vocab.json has no token for the byte 97$"),
            (instead(made, "zz"), f"merges.txt, line 2: vocab.json has no token {made}$"),
            (json.dumps(vocabulary)[:-1].encode() + b', "!": 999}', "vocab.json has the token '!' twice"),
            (json.dumps(vocabulary)[:-5].encode(), "vocab.json, byte"),
            (b'{"\xff": 1}', "byte 2: no UTF-8")]:
        spoil(work, pattern, "vocab.json", content)
    pair = " ".join(first).encode()
    for content, pattern in [(pair + b"\nc", "line 2: two tokens expected, with a space between them$"),
                             (b"#version: 0.2\na b c\n", "line 2: two tokens expected"),
                             (b"\n", "line 1: two tokens expected"),
                             ("t 你\n".encode(), "line 1: vocab.json has no token 你$"),
                             (b"zzq t\n", "line 1: vocab.json has no token zzq$"),
                             (b"q q\n", "line 1: vocab.json has no token qq$"),
                             (pair + b"\r\n" + pair, "line 2: a pair that an earlier line has$")]:
        spoil(work, pattern, "merges.txt", content)
    refuse(1, "^gpt2: the text is not UTF-8 at byte 1$", "--model", os.path.join(work, "good"), b"--prompt=a\xffz")


def check_bad_files(work, weights):
    for name in "config.json", "vocab.json", "merges.txt":
        spoil(work, f"^gpt2: cannot read .*/bad/{name}: No such file", name, None)
    name = "model.safetensors"
    spoil(work, "^gpt2: .*/bad has neither model.safetensors nor model.safetensors.index.json$", name, None)
    spoil(work, "transformer.ln_f.bias", name, {key: weights[key] for key in weights if key != "ln_f.bias"})
    spoil(work, "transformer.ln_f.bias", name, {**weights, "transformer.ln_f.bias": weights["ln_f.bias"]})
    spoil(work, "has a tensor 'transformer.h.0.attn.extra', and the model of config.json has not$", name,
          {**weights, "h.0.attn.extra": ((1,), [0])})
    spoil(work, "model.safetensors", name, b"no tensors")


def check_command_line(good):
    done = run("--help")
    expect("--help", (done.returncode, done.stderr, done.stdout[:17]), (0, b"", b"usage: gpt2 [OPTI"))
    expect("lines of --help", max(map(len, done.stdout.splitlines())) <= 80 and done.stdout.isascii(), True)
    refuse(2, "^gpt2: --model FOLDER is needed", "--prompt=x")
    refuse(2, "^gpt2: --top-k chooses at random, which --temperature 0 does not$", "--model=x", "--temperature=0",
           "--top-k=3")
    refuse(2, "^gpt2: --top-p chooses at random", "--model=x", "--temperature=0", "--top-p=0.5")
    refuse(2, "'--nonsense'", "--nonsense")
    refuse(2, "'stray'", "stray")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "--model", good, "--sample=3"], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        expect("nobody gets the text", (done.returncode, b"standard output" in done.stderr), (1, True))


def main():
    with tempfile.TemporaryDirectory() as work:
        good = os.path.join(work, "good")
        config, tokenizer, weights = make_model(good)
        check_bad_configs(work, config)
        check_bad_tokens(work, tokenizer)
        check_bad_files(work, weights)
        check_command_line(good)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
