"""The rows of bench_gpt in PyTorch: GPT-2 of 124 million parameters."""
import torch
import torch.nn.functional as F
from torch import nn

import torch_training

ROWS = {"gpt2_b4_t64": (4, 64), "gpt2_b1_t1024": (1, 1024), "gpt2_decoding": (1, 64)}
WORDS_WRITTEN, VOCABULARY, CONTEXT, HIDDEN, LAYERS, HEADS = 128, 50304, 1024, 768, 12, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.project, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.expand, self.contract = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x, attend):
        """attend: queries, keys and values (B, heads, T, size) to the pooled values."""
        batch, length, _ = x.shape
        parts = self.project(self.norm1(x)).split(HIDDEN, dim=2)
        pooled = attend(*(part.view(batch, length, HEADS, -1).transpose(1, 2) for part in parts))
        x = x + self.out(pooled.transpose(1, 2).reshape(batch, length, HIDDEN))
        return x + self.contract(F.gelu(self.expand(self.norm2(x))))


def attend_causally(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(CONTEXT, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def states(self, words, places, attends):
        x = self.words(words) + self.positions(places)
        for block, attend in zip(self.blocks, attends):
            x = block(x, attend)
        return self.norm(x)

    def logits(self, states):
        return F.linear(states, self.words.weight)

    def forward(self, words, labels):
        states = self.states(words, torch.arange(words.shape[1]), [attend_causally] * LAYERS)
        return F.cross_entropy(self.logits(states).view(-1, VOCABULARY), labels.view(-1))


def make_training(row, phase, compiled):
    model = Gpt()
    words, labels = (torch.randint(0, 50257, ROWS[row]) for _ in range(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    return torch_training.make(phase, compiled(model), (words, labels), model.parameters(), optimizer)


class Writer:
    """Reads a prompt and writes words, with keys and values of all places kept."""

    def __init__(self, batch, prompt, compiled):
        self.model = Gpt().eval()
        self.prompt = torch.randint(0, 50257, (batch, prompt))
        self.places = prompt + WORDS_WRITTEN
        shape = batch, HEADS, self.places, HIDDEN // HEADS
        self.caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(LAYERS)]
        static = self.next_static
        self.next = compiled(static)
        if self.next is static:
            self.next = self.next_growing
        self.length = 0

    def prefill(self):
        def reads(cache):
            def attend(query, key, value):
                for kept, new in zip(cache, (key, value)):
                    kept[:, :, :new.shape[2]] = new
                return attend_causally(query, key, value)
            return attend
        self.length = self.prompt.shape[1]
        states = self.model.states(self.prompt, torch.arange(self.length), [reads(cache) for cache in self.caches])
        self.word = self.model.logits(states[:, -1]).argmax(-1, keepdim=True)

    def next_growing(self, word, place):
        """Attention over the places that are filled."""
        last = int(place)

        def reads(cache):
            def attend(query, key, value):
                for kept, new in zip(cache, (key, value)):
                    kept[:, :, last:last + 1] = new
                return F.scaled_dot_product_attention(query, *(kept[:, :, :last + 1] for kept in cache))
            return attend
        return self.model.logits(self.model.states(word, place, [reads(cache) for cache in self.caches])[:, -1])

    def next_static(self, word, place):
        """Attention over all places under a mask: one graph for every place."""
        seen = (torch.arange(self.places) <= place)[None, None]

        def reads(cache):
            def attend(query, key, value):
                for kept, new in zip(cache, (key, value)):
                    kept.index_copy_(2, place, new)
                return F.scaled_dot_product_attention(query, *cache, attn_mask=seen)
            return attend
        return self.model.logits(self.model.states(word, place, [reads(cache) for cache in self.caches])[:, -1])

    def write_word(self):
        """One word more; of so many runs one reads the prompt again, which no median shows."""
        if not self.prompt.shape[1] <= self.length < self.places:
            self.prefill()
        self.word = self.next(self.word, torch.tensor([self.length])).argmax(-1, keepdim=True)
        self.length += 1

    def generate(self):
        self.prefill()
        while self.length < self.places - 1:
            self.write_word()


def make(row, phase, compiled, is_plain):
    if row != "gpt2_decoding":
        return make_training(row, phase, compiled)
    writer = Writer(*ROWS[row], compiled)
    run = {"prefill": writer.prefill, "word": writer.write_word, "generate": writer.generate}[phase]
    return torch.no_grad()(run)
