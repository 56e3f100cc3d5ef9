#!/usr/bin/env python3
"""The Python package's layers, fused ops, models, optimizers and schedules, and README's program."""
import contextlib
import copy
import io
import os
import pickle
import re
import tempfile

from harness import fails, passed, rapt, root, test


@test
def layers_and_training():
    with open(os.path.join(root, "README.md"), encoding="utf-8") as readme:
        program = re.search(r"```python\n(.*?)```", readme.read(), re.S).group(1)
    assert len([line for line in program.splitlines() if line.strip()]) <= 20
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(program, names)
    assert [round(y[0]) for y in names["model"](names["x"]).tolist()] == [0, 1, 1, 0], printed.getvalue()
    model = names["model"]
    names.clear()
    assert list(model.parameters()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    other = rapt.Sequential(rapt.Linear(2, 16), rapt.Activation("tanh"), rapt.Linear(16, 1))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "model.safetensors")
        model.save(path)
        other.load(path)
        assert rapt.load(path)["2.bias"].tolist() == other.parameters()["2.bias"].tolist()
    x = rapt.ones((1, 2))
    assert model(x).item() == other(x).item()
    layer = rapt.Linear(3, 3)
    both = rapt.Sequential(layer, rapt.Sequential(layer, layer))
    del layer
    assert both(rapt.ones((1, 3))).shape == (1, 3)
    adam = rapt.AdamW(both, learning_rate=0.5, weight_decay=0)
    assert adam.learning_rate == 0.5
    both(rapt.ones((1, 3))).sum().backward()
    assert adam.clip_gradient_norm(1.0) > 1
    adam.learning_rate = 0
    before = both.parameters()["0.weight"].tolist()
    adam.step()
    assert both.parameters()["0.weight"].tolist() == before
    both(rapt.ones((1, 3))).sum().backward()
    assert adam.step(clip=1.0) > 1 and both.parameters()["0.weight"].gradient is None
    assert rapt.Embedding(3, 2)(rapt.tensor([0, 2])).shape == (2, 2)
    assert rapt.Dropout(0.5).train(False)(x).tolist() == x.tolist() and rapt.LayerNorm(2)(x).shape == (1, 2)
    assert rapt.RMSNorm(2)(x).shape == rapt.BatchNorm(2).train(False)(x).shape == (1, 2)
    small = rapt.full((1, 2), 1e-3)
    assert rapt.rms_normalize(small).tolist() == rapt.RMSNorm(2)(small).tolist()
    assert rapt.layer_normalize(x * 2 - small).tolist() == rapt.LayerNorm(2)(x * 2 - small).tolist()


@test
def models_of_float64():
    model = rapt.Sequential(rapt.Linear(2, 3), rapt.BatchNorm(3)).cast(rapt.float64)
    assert {tensor.dtype for tensor in model.parameters(3).values()} <= {rapt.float64, rapt.int64}
    assert model(rapt.ones((2, 2), rapt.float64)).dtype is rapt.float64
    fails("int64 is not floating", model.cast, rapt.int64)
    fails("a dtype such as rapt.float32 expected", model.cast, "float64", kind=TypeError)


@test
def an_optimizer_goes_on_from_a_file():
    with tempfile.TemporaryDirectory() as directory:
        path, ends = os.path.join(directory, "adam.safetensors"), []
        for stops in (False, True):
            rapt.seed(1)
            model, x = rapt.Linear(2, 2), rapt.randn((3, 2))
            adam = rapt.Adam(model, learning_rate=0.1)
            for step in range(4):
                if stops and step == 2:
                    adam.save(path)
                    adam = rapt.Adam(model).load(path)
                (model(x) * model(x)).sum().backward()
                adam.step()
            ends.append((adam.steps, adam.learning_rate, model.parameters()["weight"].tolist()))
        assert ends[0] == ends[1] and "weight.exp_avg" in rapt.load(path)
        fails("Adam", rapt.SGD(model, momentum=0.5).load, path)


@test
def an_optimizer_takes_leaves_and_several_modules():
    a, b, leaf = rapt.Linear(2, 2), rapt.GRU(2, 2), rapt.ones((2,)).require_gradient()
    sgd = rapt.SGD(rapt.Sequential(a, b), learning_rate=0.5)
    sgd.add("scale", leaf)
    before = [a.parameters()["bias"].tolist(), b.parameters()["bias_ih_l0"].tolist()]
    ((a(b(rapt.ones((3, 1, 2)))[0]) * leaf).sum() + leaf.sum()).backward()
    sgd.step()
    after = [a.parameters()["bias"].tolist(), b.parameters()["bias_ih_l0"].tolist()]
    assert before[0] != after[0] and before[1] != after[1] and leaf.tolist() != [1, 1]
    fails("scale", sgd.add, "scale", rapt.ones((2,)).require_gradient())
    alone = rapt.SGD(rapt.Sequential(), learning_rate=0.5)
    alone.add("leaf", leaf.fill(1))
    (leaf * 2).sum().backward()
    alone.step()
    assert leaf.tolist() == [0, 0]


@test
def attention():
    rapt.seed(1)
    q, k, v = (rapt.randn((2, 4, 8)) for _ in range(3))
    weights = (q @ k.transpose() / 8 ** 0.5).softmax()
    pool = rapt.DotProductAttention()

    def near(a, b):
        return (a - b).abs().max().item() < 1e-5

    assert near(pool(q, k, v), weights @ v)
    first = pool(q, k, v, valid_lengths=[1, 4])
    assert near(first[0, 2], v[0, 0]) and near(first[1], (weights @ v)[1])
    assert near(pool(q, k, v, causal=True)[:, 0], v[:, 0]) and near(pool(q, k, v, causal=True, window=1), v)
    assert near(pool(q, k, v, causal=True, dilation=4), v)
    bias = rapt.zeros((2, 4, 4)).require_gradient()
    pool(q, k, v, bias=bias).sum().backward()
    assert bias.gradient.shape == (2, 4, 4)
    heads = rapt.MultiHeadAttention(8, 2, groups=1, pooling=rapt.AdditiveAttention(4, 4, 6))
    assert heads(q, k, v, causal=True).shape == (2, 4, 8)
    assert "attention.w_v.weight" in map(str.lower, heads.parameters())
    turn = rapt.Rotary()
    turned = [rapt.MultiHeadAttention(8, 2, rotary=turn) for _ in range(2)]
    plain = rapt.MultiHeadAttention(8, 2)
    for name, value in turned[0].parameters().items():
        plain.parameters()[name].copy_from(value)
    turned_of, plain_of = (layer(q, k, v, causal=True) for layer in (turned[0], plain))
    assert near(turned_of[:, 0], plain_of[:, 0]) and not near(turned_of, plain_of)
    assert turned[1](q, k, v).shape == (2, 4, 8)
    fails("a rapt.Rotary expected, not Linear", rapt.MultiHeadAttention, 8, 2, rotary=rapt.Linear(2, 2), kind=TypeError)
    fails("no such field: casual", pool, q, k, v, casual=True, kind=TypeError)
    fails("one length of keys and values", pool, q, k, v[:, :3])
    fails("heads", rapt.MultiHeadAttention, 8, 3)


@test
def optimizers_and_schedules():
    made = (rapt.SGD, rapt.Adam, rapt.AdamW, rapt.RMSprop, rapt.Adagrad, rapt.Lion, rapt.Muon, rapt.Adafactor)
    x, y = rapt.tensor([[1.0, 2], [3, 4]]), rapt.tensor([[1.0], [-1]])
    for make in made:
        rapt.seed(1)
        model = rapt.Linear(2, 1)
        optimizer = make(model, learning_rate=0.01)
        losses = []
        for _ in range(5):
            loss = rapt.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses == sorted(losses, reverse=True) and optimizer.steps == 5, (make, losses)
    muon = rapt.Muon(model, adamw={"learning_rate": 0.25, "weight_decay": 0})
    muon.by_adamw("weight")
    fails("adamw has no momentum", rapt.Muon, model, adamw={"momentum": 1}, kind=TypeError)
    fails("nothing", muon.by_adamw, "nothing")
    muon.group("bias", learning_rate=0, weight_decay=0)
    before = model.parameters()["bias"].tolist()
    rapt.mse_loss(model(x), y).backward()
    muon.step()
    assert model.parameters()["bias"].tolist() == before
    cosine = rapt.Schedule("cosine", warm_up=2, total=10, final=0.5)
    assert (cosine(0), cosine(1), cosine(10), cosine(99)) == (0.5, 1, 0.5, 0.5)
    assert rapt.Schedule("step", period=2, factor=0)(2) == 0
    assert rapt.Schedule("linear", total=4, final=0)(2) == 0.5 and rapt.Schedule("cosine", total=4, final=0)(4) == 0
    fails("one of constant, step", rapt.Schedule, "cosines", kind=ValueError)
    fails("Schedule has no warmup", rapt.Schedule, "cosine", warmup=2, kind=TypeError)
    fails("schedule", rapt.Schedule("cosine", total=10), -1)
    for copied in (copy.deepcopy(cosine), pickle.loads(pickle.dumps(cosine))):
        assert [copied(step) for step in range(12)] == [cosine(step) for step in range(12)]


@test
def recurrent_layers():
    x = rapt.randn((5, 2, 3))
    gru, lstm = rapt.GRU(3, 4, layers=2), rapt.LSTM(3, 4)
    outputs, state = gru(x)
    assert outputs.shape == (5, 2, 4) and state.shape == (2, 2, 4)
    assert outputs[4].tolist() == state[1].tolist()
    first, state = gru(x[:2])
    assert (gru(x[2:], state)[0] - outputs[2:]).abs().max().item() < 1e-6
    outputs, (hidden, cell) = lstm(x)
    assert outputs[4].tolist() == hidden[0].tolist() and cell.shape == (1, 2, 4)
    (outputs.sum() + cell.sum()).backward()
    assert lstm.parameters()["weight_hh_l0"].gradient.shape == (16, 4)
    fails("both or neither", lstm, x, hidden)
    fails("not list", gru, [1], kind=TypeError)
    both = rapt.GRU(3, 4, layers=2, bidirectional=True)
    outputs, state = both(x)
    assert outputs.shape == (5, 2, 8) and state.shape == (4, 2, 4)
    assert "weight_ih_l1_reverse" in both.parameters()
    for layer in both, rapt.LSTM(3, 4, bidirectional=True):
        outputs, states = layer(x, lengths=[5, 2])
        short, ends = layer(x[:2, 1:])
        assert (outputs[:2, 1:] - short).abs().max().item() < 1e-6 and outputs[2:, 1].abs().max().item() == 0
        state, end = (states, ends) if layer is both else (states[1], ends[1])
        assert (state[:, 1:] - end).abs().max().item() < 1e-6
    fails("lengths (2)", both, x, lengths=[[5, 2]])


@test
def convolutions_and_pools():
    x = rapt.arange(0, 12, dtype=rapt.float32).reshape((1, 2, 6))
    ones = rapt.ones((1, 2, 3))
    assert rapt.conv1d(x, ones).tolist() == [[[24, 30, 36, 42]]]
    assert rapt.conv1d(x, ones, rapt.ones((1,)), stride=2, padding=1).tolist() == [[[15, 31, 43]]]
    assert rapt.conv1d(x, rapt.ones((2, 1, 2)), dilation=2, groups=2).shape == (1, 2, 4)
    assert rapt.max_pool1d(x, 2).tolist() == [[[1, 3, 5], [7, 9, 11]]]
    assert rapt.avg_pool1d(x, 4, stride=2).tolist() == [[[1.5, 3.5], [7.5, 9.5]]]
    image = x.reshape((1, 1, 3, 4))
    assert rapt.conv2d(image, rapt.ones((1, 1, 2, 3)), stride=(1, 2)).tolist() == [[[[18], [42]]]]
    assert rapt.max_pool2d(image, (3, 2)).tolist() == [[[[9, 11]]]]
    assert rapt.max_pool2d(image, 2, ceil=True).shape == (1, 1, 2, 2)
    assert rapt.avg_pool2d(image, 3, stride=1, padding=1, leaves_padding_out=True)[0, 0, 0, 0].item() == 2.5
    layer, short = rapt.Conv2d(1, 3, (3, 1), padding=(1, 0)), rapt.Conv1d(2, 4, 3, stride=2, groups=2, bias=False)
    model = rapt.Sequential(layer, rapt.BatchNorm(3), rapt.Activation("relu"))
    model(image).sum().backward()
    assert layer.parameters()["weight"].gradient.shape == (3, 1, 3, 1) and model(image).shape == (1, 3, 3, 4)
    assert short(x).shape == (1, 4, 2) and list(short.parameters()) == ["weight"]
    assert (short(x) - rapt.conv1d(x, short.parameters()["weight"], stride=2, groups=2)).abs().max().item() == 0
    fails("size: 3 numbers for 2 axes", rapt.Conv2d, 1, 1, (1, 2, 3), kind=ValueError)
    fails("half of that at most", rapt.max_pool1d, x, 2, padding=2)
    fails("not list", rapt.conv1d, [1], ones, kind=TypeError)


@test
def transformers_and_gpt():
    config = {"hidden": 8, "heads": 2, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 1}
    source, target = rapt.randn((2, 5, 8)), rapt.randn((2, 3, 8))
    encoder, decoder = rapt.TransformerEncoder(**config, kind="gelu"), rapt.TransformerDecoder(**config)
    memory = encoder(source, valid_lengths=[5, 2])
    assert (encoder(source[:, :2]) - memory[:, :2])[1].abs().max().item() < 1e-5
    causal = {"causal": True}
    out = decoder(target, memory, causal, {"valid_lengths": [5, 2]})
    assert (decoder(target[:, :1], memory, None, {"valid_lengths": [5, 2]}) - out[:, :1]).abs().max().item() < 1e-5
    transformer = rapt.Transformer(**config, norm_first=True)
    transformer(source, target, target_mask=causal).sum().backward()
    assert transformer.parameters()["encoder.layers.0.linear1.weight"].gradient.shape == (16, 8)
    fails("kind is 'tanh'; one of relu, gelu, swiglu, gelu_tanh expected",
          lambda: rapt.Transformer(**config, kind="tanh"), kind=ValueError)
    rapt.seed(1)
    gpt = rapt.GPT(vocabulary=7, context=12, hidden=16, layers=1, heads=2, positions="rotary", kind="swiglu")
    tokens = rapt.tensor([[0, 1, 2, 3, 4, 5, 6, 0]])
    adam = rapt.AdamW(gpt, learning_rate=0.02)
    for _ in range(60):
        loss = gpt.loss(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        adam.step()
    gpt.train(False)
    head = gpt.parameters()["transformer.wte.weight"]
    assert gpt.hidden(tokens).affine(head).tolist() == gpt(tokens).tolist()
    llama = rapt.GPT(7, 12, 16, 1, 2, positions="rotary", kind="swiglu", rms_norm=True, rotary_halves=True,
                     rotary_base=5e5, norm_epsilon=1e-5, untied=True, feed_forward=24, window=4)
    assert llama.parameters()["lm_head.weight"].shape == (7, 16)
    assert llama.parameters()["transformer.h.0.mlp.c_fc.weight"].shape == (24, 16)
    qwen = rapt.GPT(7, 12, 16, 1, 2, positions="rotary", kind="swiglu", rms_norm=True, head_size=6, norm_heads=True,
                    rotary_scaling_factor=8, rotary_scaling_low_turns=1, rotary_scaling_high_turns=4,
                    rotary_scaling_context=64)
    assert qwen.parameters()["transformer.h.0.attn.q_norm.weight"].shape == (6,)
    assert qwen.parameters()["transformer.h.0.attn.c_attn.weight"].shape == (36, 16)
    fails("low_turns 4 and high_turns 1 in a context of 64", rapt.GPT, 7, 12, 16, 1, 2, positions="rotary",
          rotary_scaling_factor=8, rotary_scaling_low_turns=4, rotary_scaling_high_turns=1, rotary_scaling_context=64)
    assert llama.hidden(tokens).affine(llama.parameters()["lm_head.weight"]).tolist() == llama(tokens).tolist()
    assert gpt.generate([[2, 3]], 3).tolist() == [[4, 5, 6]] == gpt.generate([[2, 3]], 3, beams=2).tolist()
    assert gpt(tokens)[0].argmax(-1).tolist()[:6] == [1, 2, 3, 4, 5, 6]
    fails("no such field: topk", gpt.generate, [[1]], 2, topk=1, kind=TypeError)
    fails("index 9", gpt.generate, [[9]], 1)


@test
def fused_ops_are_their_definitions():
    x, weight, bias = rapt.randn((4, 3)), rapt.randn((5, 3)), rapt.randn((5,))
    for word in ("relu", "gelu", "gelu_tanh", "silu"):
        assert x.affine_activation(weight, None, word).tolist() == getattr(rapt, word)(x.affine(weight)).tolist()
    assert set(rapt.affine_activation(x, weight, bias, "relu", 1.0).sum(1).tolist()) == {0}
    fails("activation is 'tanh'; one of relu, gelu", rapt.affine_activation, x, weight, None, "tanh", kind=ValueError)
    targets, named = rapt.tensor([0, 4, 2, 4]), {"ignore_index": 4, "label_smoothing": 0.25, "reduction": "sum"}
    loss = rapt.linear_cross_entropy(x, weight, bias, targets, **named).item()
    assert abs(loss - x.affine(weight, bias).cross_entropy(targets, **named).item()) < 1e-5 < loss
    y, mean, variance = rapt.tensor([[1.0, 10], [3, 30]]).batch_normalize(rapt.tensor([2.0, 1]), epsilon=0)
    assert (mean.tolist(), variance.tolist(), y.tolist()) == ([2, 20], [1, 100], [[-2, -1], [2, 1]])


print(f"{len(passed)} tests passed")
