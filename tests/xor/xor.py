"""Exclusive or in Python: the program of xor.c."""
import struct

import rapt


def print_bits(number):
    print(struct.pack(">d", number).hex().upper())


rapt.seed(1)
x = rapt.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], rapt.float32)
target = rapt.tensor([[0], [1], [1], [0]], rapt.float32)
model = rapt.Sequential(rapt.Linear(2, 16), rapt.Activation("tanh"), rapt.Linear(16, 1))
adam = rapt.Adam(model, learning_rate=1e-2)
for step in range(300):
    loss = rapt.mse_loss(model(x), target)
    loss.backward()
    adam.step()
    print_bits(loss.item())
for row in model(x):
    print_bits(row.item())
