"""The rows of bench_bahdanau and bench_transformer in PyTorch, as Dive into Deep Learning writes them down."""
import math

import torch
import torch.nn.functional as F
from torch import nn

import torch_training

BAHDANAU = {"bahdanau_t9_v200": (9, 200), "bahdanau_t9_v10000": (9, 10000), "bahdanau_t30_v200": (30, 200),
            "bahdanau_t30_v10000": (30, 10000)}
# hidden, feed-forward, vocabulary, batch, length, heads, layers
TRANSFORMER = {"transformer_11_7": (256, 64, 200, 128, 9, 4, 2), "transformer_base": (512, 2048, 10000, 32, 64, 8, 6)}
ROWS = BAHDANAU | TRANSFORMER
DROPOUT = 0.2


def draw(batch, length, vocabulary):
    """Sources, their lengths, what the decoder reads, and labels; 0 is padding."""
    lengths = torch.randint(max(2, length // 3), length + 1, (batch,))
    sources, targets = (torch.randint(1, vocabulary, (batch, length)) for _ in range(2))
    is_padding = torch.arange(length) >= lengths[:, None]
    inputs = torch.cat((targets[:, :1], targets[:, :-1]), 1)
    return sources.masked_fill(is_padding, 0), lengths, inputs, targets.masked_fill(is_padding, 0)


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)


def masked_softmax(scores, lengths, is_plain):
    """lengths (B) or (B, queries); -1e6 for keys beyond them, in place if plain."""
    lengths = lengths.reshape(len(lengths), *[1] * (scores.dim() - 3), -1, 1)
    hidden = (torch.arange(scores.shape[-1]) >= lengths).expand_as(scores)
    if is_plain:
        scores[hidden] = -1e6
    else:
        scores = scores.masked_fill(hidden, -1e6)
    return torch.softmax(scores, -1)


# --- Bahdanau's model


class Bahdanau(nn.Module):
    def __init__(self, vocabulary, is_plain, hidden=256, layers=2):
        super().__init__()
        self.is_plain = is_plain
        self.source, self.target = nn.Embedding(vocabulary, hidden), nn.Embedding(vocabulary, hidden)
        self.encoder = nn.GRU(hidden, hidden, layers, dropout=DROPOUT)
        self.decoder = nn.GRU(2 * hidden, hidden, layers, dropout=DROPOUT)
        self.query, self.key = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.dropout = nn.Dropout(DROPOUT)
        self.out = nn.Linear(hidden, vocabulary)

    def attend(self, query, keys, values, lengths):
        """query (B, 1, hidden), keys as prepared (B, K, hidden)."""
        scores = self.score(torch.tanh(self.query(query).unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)
        return torch.bmm(self.dropout(masked_softmax(scores, lengths, self.is_plain)), values)

    def forward(self, sources, lengths, inputs, labels):
        values, state = self.encoder(self.source(sources.t()))
        values = values.permute(1, 0, 2)
        keys = self.key(values)
        outputs = []
        for x in self.target(inputs.t()):
            context = self.attend(state[-1].unsqueeze(1), keys, values, lengths)
            output, state = self.decoder(torch.cat((context, x.unsqueeze(1)), -1).permute(1, 0, 2), state)
            outputs.append(output)
        return loss_of(self.out(torch.cat(outputs)).permute(1, 0, 2), labels)


# --- the Transformer


class Attention(nn.Module):
    def __init__(self, hidden, heads, is_plain):
        super().__init__()
        self.heads, self.is_plain = heads, is_plain
        self.projections = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, query, key, value, lengths):
        """lengths (B), or (B, queries)."""
        query, key, value = (projection(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                             for projection, x in zip(self.projections, (query, key, value)))
        if self.is_plain:
            scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
            pooled = self.dropout(masked_softmax(scores, lengths, True)) @ value
        else:
            limits = lengths[:, None, None, None] if lengths.dim() == 1 else lengths[:, None, :, None]
            pooled = F.scaled_dot_product_attention(query, key, value, torch.arange(key.shape[2]) < limits,
                                                    DROPOUT if self.training else 0)
        return self.projections[3](pooled.transpose(1, 2).flatten(2))


class AddNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.dropout, self.norm = nn.Dropout(DROPOUT), nn.LayerNorm(hidden)

    def forward(self, x, y):
        return self.norm(self.dropout(y) + x)


class Layer(nn.Module):
    """Of an encoder, or of a decoder, which attends to a memory too."""

    def __init__(self, hidden, feed_forward, heads, is_plain, is_decoder):
        super().__init__()
        self.attention, self.norm = Attention(hidden, heads, is_plain), AddNorm(hidden)
        if is_decoder:
            self.memory_attention, self.memory_norm = Attention(hidden, heads, is_plain), AddNorm(hidden)
        self.expand, self.contract = nn.Linear(hidden, feed_forward), nn.Linear(feed_forward, hidden)
        self.last_norm = AddNorm(hidden)

    def forward(self, x, lengths, memory=None, memory_lengths=None):
        x = self.norm(x, self.attention(x, x, x, lengths))
        if memory is not None:
            x = self.memory_norm(x, self.memory_attention(x, memory, memory, memory_lengths))
        return self.last_norm(x, self.contract(torch.relu(self.expand(x))))


class Transformer(nn.Module):
    def __init__(self, hidden, feed_forward, vocabulary, heads, layers, is_plain):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, hidden), nn.Embedding(vocabulary, hidden)
        angles = torch.arange(1000.)[:, None] / 10000 ** (torch.arange(0, hidden, 2) / hidden)
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), -1).flatten(1))
        self.dropout = nn.Dropout(DROPOUT)
        self.encoder, self.decoder = (
            nn.ModuleList(Layer(hidden, feed_forward, heads, is_plain, is_decoder) for _ in range(layers))
            for is_decoder in (False, True))
        self.out = nn.Linear(hidden, vocabulary)

    def embed(self, embedding, words):
        x = embedding(words)
        return self.dropout(x * math.sqrt(x.shape[-1]) + self.positions[:x.shape[1]])

    def forward(self, sources, lengths, inputs, labels):
        memory = self.embed(self.source, sources)
        for layer in self.encoder:
            memory = layer(memory, lengths)
        seen = torch.arange(1, inputs.shape[1] + 1).expand_as(inputs)
        y = self.embed(self.target, inputs)
        for layer in self.decoder:
            y = layer(y, seen, memory, lengths)
        return loss_of(self.out(y), labels)


def make(row, phase, compiled, is_plain):
    if row in BAHDANAU:
        length, vocabulary = BAHDANAU[row]
        model, batch, learning_rate = Bahdanau(vocabulary, is_plain), draw(128, length, vocabulary), 0.005
    else:
        hidden, feed_forward, vocabulary, batch, length, heads, layers = TRANSFORMER[row]
        model, learning_rate = Transformer(hidden, feed_forward, vocabulary, heads, layers, is_plain), 0.001
        batch = draw(batch, length, vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    return torch_training.make(phase, compiled(model), batch, model.parameters(), optimizer)
