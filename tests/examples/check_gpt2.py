#!/usr/bin/env python3
"""check_gpt2.py GPT2: the example gpt2 against GPT-2 in plain Python (gpt2_reference.py), on a small model with random
weights: tokens and continuations. What it says of wrong files is in check_gpt2_errors.py."""
import json
import os
import random
import sys
import tempfile

import gpt2_reference as reference
from gpt2_program import complain, expect, failures, make_model, run

TEXTS = ["Hello, my dog is cute", "It's 10 o'clock; they'll say we'd've left. I'M HERE, DON'T", "the theatre's there",
         "x86_64 costs $3.14 (½ of ⅷ, or ٣٤)", "été naïve e\u0301te\u0301 Ünïcödé", "你好，世界。ひらがな カタカナ 한국어",
         "привет мир שלום عالم नमस्ते", "🙂🙂 👋🏽 👩‍👩‍👧 ❤️", "a  b   c    d",
         "\n\nline\n\n\nnext \n last\n", "tab\t\tend\r\n",
         " leading and trailing ", "trailing  ", "   ", " ", "\u00a0no-break\u3000ideographic\u2028line\u0085next",
         "zero\u200bwidth \x1c separator \x7f", "<|endoftext|> is text here", "    return the_value;\n", "'",
         "''s 's' '", "a" * 5000, "ab " * 500, " " * 3000 + "x",
         "\U0010ffff\ufdd0\ue000", "!?.,;:'s", " 'twas the 'night's 'sleep",
         "".join(random.Random(1).choices("theatrs'l \n", k=3000))]


def check_tokens(folder, tokenizer, texts=TEXTS):
    for text in texts:
        done = run("--model", folder, "--tokens", f"--prompt={text}".encode())
        tokens = tokenizer.encode(text)
        expect(f"tokens of {text[:60]!r}", done.stdout.decode().split(), [str(token) for token in tokens])
        expect("decoded", tokenizer.decode(tokens), text.encode())


def check_written(what, folder, prompt, expected, *options):
    done = run("--model", folder, *([f"--prompt={prompt}".encode()] if prompt else []), *options)
    expect(f"{what}: status", (done.returncode, done.stderr.count(b"\n")), (0, 1))
    expect(what, done.stdout, prompt.encode() + expected + b"\n")


def check_greedy(folder, config, tokenizer, weights):
    """As PyTorch's loop without a cache would: within the context, beyond it, and from a prompt that is too long."""
    for prompt in "the theatre", "", "é":
        begin = tokenizer.encode(prompt) or [tokenizer.vocabulary["<|endoftext|>"]]
        tokens, margin = reference.continue_greedily(config, weights, begin, 30)
        if margin < 1e-3 or len(set(tokens)) < 5:
            complain(f"the test chose badly: margin {margin}, tokens {tokens}")
        check_written(f"continuation of {prompt!r}", folder, prompt, tokenizer.decode(tokens), "--temperature=0",
                      "--sample=30")
    prompt = "one two three four five six"
    tokens, margin = reference.continue_greedily(config, weights, tokenizer.encode(prompt), 3)
    done = run("--model", folder, "--prompt", prompt, "--temperature=0", "--sample=3")
    expect("a long prompt", done.stdout, prompt.encode() + tokenizer.decode(tokens) + b"\n")
    count = len(tokenizer.encode(prompt))
    expect("of a long prompt", f"gpt2: the prompt has {count} tokens, and the context 12: only the last 6 are read\n"
           in done.stderr.decode(), True)


def check_activations(work, config, tokenizer, weights):
    """Where the two kinds of GELU differ most, by a twentieth of their values near -3, before a large matrix."""
    far = dict(weights)
    for layer in range(config["n_layer"]):
        for name, factor, shift in ("c_fc.weight", 0.2, 0), ("c_fc.bias", 1, -3), ("c_proj.weight", 1000, 0):
            shape, numbers = weights[f"h.{layer}.mlp.{name}"]
            far[f"h.{layer}.mlp.{name}"] = shape, [factor * x + shift for x in numbers]
    prompt, seen = "the theatre", []
    for activation in reference.ACTIVATIONS:
        folder = os.path.join(work, activation)
        changed = {**config, "activation_function": activation}
        reference.write_folder(folder, changed, tokenizer, far)
        tokens, margin = reference.continue_greedily(changed, far, tokenizer.encode(prompt), 20)
        seen.append(tokens)
        if margin < 1e-3 or seen.count(tokens) > 1:
            complain(f"the test chose badly: margin {margin}, tokens {seen}")
        check_written(activation, folder, prompt, tokenizer.decode(tokens), "--temperature=0", "--sample=20")


def check_sampled(folder):
    def sample(*options):
        return run("--model", folder, "--prompt=the", "--sample=20", *options).stdout
    expect("the same seed", sample("--seed=1", "--threads=2"), sample())
    if sample("--seed=2") == sample():
        complain("another seed gives the same text")
    expect("the likeliest of one", sample("--top-k=1"), sample("--temperature=0"))
    expect("the most probable one", sample("--top-p=1e-9"), sample("--temperature=0"))
    expect("nothing", sample("--sample=0"), b"the\n")


def check_published_forms(work, config, tokenizer, weights):
    """The names and buffers that files have or have not, and shards; all are one model."""
    prompt = "the cat"
    tokens, _ = reference.continue_greedily(config, weights, tokenizer.encode(prompt), 8)
    written = tokenizer.decode(tokens)
    context = config["n_positions"]
    triangle = [int(j <= i) for i in range(context) for j in range(context)]
    forms = {"prefixed": {"transformer." + name: weight for name, weight in weights.items()},
             "masked": {**weights, **{f"h.{n}.attn.bias": ((1, 1, context, context), triangle) for n in range(2)},
                        **{f"h.{n}.attn.masked_bias": ((), [-1e4]) for n in range(2)}}}
    forms["tied"] = {**forms["prefixed"], "lm_head.weight": weights["wte.weight"],
                     "transformer.h.1.attn.bias": ((1, 1, context, context), triangle)}
    for form, tensors in forms.items():
        folder = os.path.join(work, form)
        reference.write_folder(folder, config, tokenizer, tensors)
        types = {name: "U8" for name in tensors if form == "tied" and name.endswith(".attn.bias")}
        reference.write_safetensors(os.path.join(folder, "model.safetensors"), tensors, types)
        check_written(form, folder, prompt, written, "--temperature=0", "--sample=8")
    folder = os.path.join(work, "shards")
    reference.write_folder(folder, config, tokenizer, weights)
    os.remove(os.path.join(folder, "model.safetensors"))
    shards = {f"model-0000{n}-of-00002.safetensors": dict(list(weights.items())[n - 1::2]) for n in (1, 2)}
    for name, tensors in shards.items():
        reference.write_safetensors(os.path.join(folder, name), tensors)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": {key: name for name in shards for key in shards[name]}}, file)
    check_written("shards", folder, prompt, written, "--temperature=0", "--sample=8")
    folder = os.path.join(work, "untied")
    head = {"lm_head.weight": (weights["wte.weight"][0], [-x for x in weights["wte.weight"][1]])}
    reference.write_folder(folder, {**config, "tie_word_embeddings": False}, tokenizer, {**weights, **head})
    least = reference.logits(config, weights, tokenizer.encode(prompt))
    unlikeliest = tokenizer.decode([least.index(min(least))])
    check_written("untied", folder, prompt, unlikeliest, "--temperature=0", "--sample=1")


def check_ends(work, config, tokenizer, weights):
    """Models that always give one token: the last norm gives its embedding, the longest."""
    def give(name, token, vocabulary):
        hidden, embedding = config["n_embd"], list(weights["wte.weight"][1])
        embedding += [0.0] * (hidden * (vocabulary - config["vocab_size"]))
        embedding[token * hidden:(token + 1) * hidden] = [9.0] * hidden
        folder = os.path.join(work, name)
        constant = {"wte.weight": ((vocabulary, hidden), embedding), "ln_f.weight": ((hidden,), [0.0] * hidden),
                    "ln_f.bias": ((hidden,), [1.0] * hidden)}
        reference.write_folder(folder, {**config, "vocab_size": vocabulary}, tokenizer, {**weights, **constant})
        return folder
    count = config["vocab_size"]
    end = give("end", tokenizer.vocabulary["<|endoftext|>"], count)
    check_written("the end", end, "the", b"", "--temperature=0", "--sample=5")
    half = give("half", tokenizer.vocabulary["ð"], count)  # the byte 0xF0, which begins a character of four
    check_written("halves of characters", half, "é", b"\xf0" * 5, "--temperature=0", "--sample=5")
    done = run("--model", give("beyond", count + 2, count + 3), "--prompt=the", "--temperature=0")
    expect("a token without a name", (done.returncode, done.stdout, done.stderr.decode()),
           (1, b"the\n", f"gpt2: the model gives token {count + 2}; the vocabulary has {count}\n"))


def main():
    with tempfile.TemporaryDirectory() as work:
        good = os.path.join(work, "good")
        config, tokenizer, weights = make_model(good)
        check_tokens(good, tokenizer)
        check_greedy(good, config, tokenizer, weights)
        check_activations(work, config, tokenizer, weights)
        check_sampled(good)
        check_published_forms(work, config, tokenizer, weights)
        check_ends(work, config, tokenizer, weights)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
