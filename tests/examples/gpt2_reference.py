"""GPT-2 in plain Python, as its release has it, and the files in which it is published: for check_gpt2.py."""
import json
import math
import os
import random
import re
import struct
import unicodedata

WHITE_SPACE = set("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
PATTERN = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[a-z]+| ?[0-9]+| ?[^\sa-z0-9]+|\s+(?!\S)|\s+")


def kind(character):
    """One of the characters by which PATTERN, which knows no \\p{L}, sees what kind this one is of."""
    if character in WHITE_SPACE:
        return character if character == " " else "\n"
    category = unicodedata.category(character)[0]
    if category == "L":
        return character if character in "stremvld" else "x"
    return "0" if category == "N" else "'" if character == "'" else "!"


def pieces(text):
    return [text[found.start():found.end()] for found in PATTERN.finditer("".join(map(kind, text)))]


def alphabet():
    """The character of each byte (bytes_to_unicode of the release)."""
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    spelled = {byte: chr(byte) for byte in printed}
    others = [byte for byte in range(256) if byte not in spelled]
    spelled.update((byte, chr(256 + i)) for i, byte in enumerate(others))
    return printed + others, spelled


def merge_pair(word, pair):
    merged, i = [], 0
    while i < len(word):
        joins = tuple(word[i:i + 2]) == pair
        merged.append("".join(pair) if joins else word[i])
        i += 2 if joins else 1
    return merged


class Tokenizer:
    """The release's encoder."""

    def __init__(self, vocabulary, merges):
        self.vocabulary = vocabulary
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.spelled = alphabet()[1]
        self.byte_of = {character: byte for byte, character in self.spelled.items()}
        self.names = {number: token for token, number in vocabulary.items()}

    def encode(self, text):
        tokens = []
        for piece in pieces(text):
            word = [self.spelled[byte] for byte in piece.encode()]
            while len(word) > 1:
                pair = min(zip(word, word[1:]), key=lambda pair: self.ranks.get(pair, math.inf))
                if pair not in self.ranks:
                    break
                word = merge_pair(word, pair)
            tokens += [self.vocabulary[token] for token in word]
        return tokens

    def decode(self, tokens):
        return bytes(self.byte_of[character] for token in tokens for character in self.names[token])


def learn(text, count):
    """A vocabulary of the bytes, so many merges of what the text has most often, and the end."""
    order, spelled = alphabet()
    words = [[spelled[byte] for byte in piece.encode()] for piece in pieces(text)]
    merges = []
    for _ in range(count):
        seen = {}
        for word in words:
            for pair in zip(word, word[1:]):
                seen[pair] = seen.get(pair, 0) + 1
        if not seen:
            break
        merges.append(max(seen, key=lambda pair: (seen[pair], pair)))
        words = [merge_pair(word, merges[-1]) for word in words]
    names = [spelled[byte] for byte in order]
    names += [name for name in map("".join, merges) if name not in names]
    names.append("<|endoftext|>")
    return Tokenizer({name: number for number, name in enumerate(names)}, merges)


# --- the model ---

def make_weights(config, seed):
    """{name: (shape, numbers)} by the names of Hugging Face, large enough that the likeliest token is one of many."""
    draw = random.Random(seed)
    hidden, weights = config["n_embd"], {}

    def add(name, *shape, scale=0.5, mean=0.0):
        numbers = [mean + draw.gauss(0, scale) for _ in range(math.prod(shape))]
        weights[name] = shape, [struct.unpack("f", struct.pack("f", number))[0] for number in numbers]

    add("wte.weight", config["vocab_size"], hidden)
    add("wpe.weight", config["n_positions"], hidden)
    for layer in range(config["n_layer"]):
        for name, inputs, outputs in [("attn.c_attn", hidden, 3 * hidden), ("attn.c_proj", hidden, hidden),
                                      ("mlp.c_fc", hidden, 4 * hidden), ("mlp.c_proj", 4 * hidden, hidden)]:
            add(f"h.{layer}.{name}.weight", inputs, outputs)
            add(f"h.{layer}.{name}.bias", outputs)
        for name in "ln_1", "ln_2":
            add(f"h.{layer}.{name}.weight", hidden, mean=1)
            add(f"h.{layer}.{name}.bias", hidden)
    add("ln_f.weight", hidden, mean=1)
    add("ln_f.bias", hidden)
    return weights


def write_safetensors(path, weights, types=None):
    """types: {name: "U8"} for what are no float32 numbers."""
    header, data = {}, b""
    for name, (shape, numbers) in weights.items():
        type_name = (types or {}).get(name, "F32")
        part = bytes(numbers) if type_name == "U8" else struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": type_name, "shape": list(shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_folder(folder, config, tokenizer, weights):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
    with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as file:
        json.dump(tokenizer.vocabulary, file)
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8") as file:
        file.write("#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in tokenizer.ranks))
    write_safetensors(os.path.join(folder, "model.safetensors"), weights)


def linear(weights, name, rows):
    (inputs, outputs), matrix = weights[name + ".weight"]
    bias = weights[name + ".bias"][1]
    return [[bias[j] + sum(row[i] * matrix[i * outputs + j] for i in range(inputs)) for j in range(outputs)]
            for row in rows]


def norm(weights, name, rows, epsilon):
    scale, shift = weights[name + ".weight"][1], weights[name + ".bias"][1]
    result = []
    for row in rows:
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + epsilon)
        result.append([(x - mean) / deviation * a + b for x, a, b in zip(row, scale, shift)])
    return result


ACTIVATIONS = {"gelu_new": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
               "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), "relu": lambda x: max(x, 0.0)}


def attend(rows, heads):
    hidden = len(rows[0]) // 3
    size, result = hidden // heads, []
    for i, row in enumerate(rows):
        outputs = []
        for start in range(0, hidden, size):
            query = row[start:start + size]
            scores = [sum(q * k for q, k in zip(query, rows[j][hidden + start:])) / math.sqrt(size)
                      for j in range(i + 1)]
            powers = [math.exp(score - max(scores)) for score in scores]
            outputs += [sum(power * rows[j][2 * hidden + start + c] for j, power in enumerate(powers)) / sum(powers)
                        for c in range(size)]
        result.append(outputs)
    return result


def logits(config, weights, tokens):
    """Of what comes behind the tokens, all of which are read anew."""
    hidden, epsilon = config["n_embd"], config["layer_norm_epsilon"]
    activate = ACTIVATIONS[config["activation_function"]]
    embedding, places = weights["wte.weight"][1], weights["wpe.weight"][1]
    add = lambda a, b: [[x + y for x, y in zip(*rows)] for rows in zip(a, b)]
    row = lambda table, i: table[i * hidden:(i + 1) * hidden]
    states = add([row(embedding, token) for token in tokens], [row(places, i) for i in range(len(tokens))])
    for layer in range(config["n_layer"]):
        part = f"h.{layer}."
        qkv = linear(weights, part + "attn.c_attn", norm(weights, part + "ln_1", states, epsilon))
        states = add(states, linear(weights, part + "attn.c_proj", attend(qkv, config["n_head"])))
        inner = linear(weights, part + "mlp.c_fc", norm(weights, part + "ln_2", states, epsilon))
        inner = [[activate(x) for x in numbers] for numbers in inner]
        states = add(states, linear(weights, part + "mlp.c_proj", inner))
    last = norm(weights, "ln_f", states[-1:], epsilon)[0]
    return [sum(x * y for x, y in zip(last, row(embedding, token))) for token in range(config["vocab_size"])]


def continue_greedily(config, weights, tokens, count):
    """The tokens that come next, and the least distance between the likeliest and the second. What grows beyond the
    context goes on with its latter half, as rapt_gpt does."""
    read, written, margin = list(tokens), [], math.inf
    context = config["n_positions"]
    for _ in range(count):
        if len(read) > context:
            read = read[-(context // 2):]
        numbers = logits(config, weights, read)
        second, first = sorted(numbers)[-2:]
        margin = min(margin, first - second)
        written.append(numbers.index(first))
        read.append(written[-1])
    return written, margin
