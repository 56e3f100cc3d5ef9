"""Cases of Bahdanau's encoder and decoder, written out."""
import torch
from torch import nn

from attention import Additive, lengths, masked_softmax, seen_keys
from cases import family, integers, normal

add = family("seq2seq")


class Encoder(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, layers):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(vocabulary, embedding), nn.GRU(embedding, hidden, layers)

    def forward(self, tokens):
        return self.rnn(self.embedding(tokens).transpose(0, 1))


class Decoder(nn.Module):
    """Bahdanau's, with GRUs: the query is the last layer's state, the input of a step [context, embedding]."""
    def __init__(self, vocabulary, embedding, hidden, layers):
        super().__init__()
        self.attention = Additive(hidden, hidden, hidden)
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.GRU(embedding + hidden, hidden, layers)
        self.dense = nn.Linear(hidden, vocabulary)

    def forward(self, tokens, encoded, state, valid_lengths):
        keys, outputs, kept = encoded.transpose(0, 1), [], []
        for x in self.embedding(tokens).unbind(1):
            scores = self.attention(state[-1].unsqueeze(1), keys)
            weights = masked_softmax(scores, seen_keys(scores, valid_lengths))
            step = torch.cat([(weights @ keys).squeeze(1), x], -1)
            output, state = self.rnn(step.unsqueeze(0), state)
            outputs.append(self.dense(output.squeeze(0)))
            kept.append(weights)
        return {"y": torch.stack(outputs, 1), "state": state, "weights": torch.cat(kept, 1)}


def translate(module, source, target, valid_lengths):
    return module["decoder"](target, *module["encoder"](source), valid_lengths)


config = {"vocabulary": 9, "embedding": 4, "hidden": 6, "layers": 2}
# large enough for states that differ: else the attention's gradients nearly cancel
large = {"encoder.embedding.weight": normal(9, 4), "encoder.rnn.weight_ih_l0": normal(18, 4),
         "encoder.rnn.weight_ih_l1": normal(18, 6), "decoder.attention.W_q.weight": normal(6, 6),
         "decoder.attention.W_k.weight": normal(6, 6), "decoder.attention.w_v.weight": normal(1, 6)}
add("bahdanau", nn.ModuleDict({"encoder": Encoder(**config), "decoder": Decoder(**config)}), translate,
    {"valid_lengths": lengths}, large, source=integers(0, 9, 2, 5), target=integers(0, 9, 2, 4))
