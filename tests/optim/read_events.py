#!/usr/bin/env python3
"""Reads the event files that test_metrics.c wrote: by a reader of its own, and by TensorBoard's where there is one.

    read_events.py FOLDER     status 1 when something is not what was written
"""
import glob
import struct
import sys


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def check(data, stored):
    crc = crc32c(data)
    assert ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF == stored, "a checksum is wrong"


def records(data):
    while data:
        length, crc = struct.unpack_from("<QI", data)
        check(data[:8], crc)
        event = data[12:12 + length]
        check(event, struct.unpack_from("<I", data, 12 + length)[0])
        yield event
        data = data[16 + length:]


def varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def fields(data):
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        if key & 7 == 0:
            value, place = varint(data, place)
        elif key & 7 == 1:
            value, place = struct.unpack_from("<d", data, place)[0], place + 8
        elif key & 7 == 5:
            value, place = struct.unpack_from("<f", data, place)[0], place + 4
        else:
            assert key & 7 == 2
            length, place = varint(data, place)
            value, place = data[place:place + length], place + length
        yield key >> 3, value


def scalars(path):
    """What a file has, as {name: [(step, value)]}."""
    with open(path, "rb") as file:
        events = [list(fields(event)) for event in records(file.read())]
    assert dict(events[0])[3] == b"brain.Event:2"
    found = {}
    has_started = False
    for event in events[1:]:
        event = dict(event)
        assert 1.6e9 < event[1] < 4e9, "a time of the epoch"
        if 7 in event:  # a start: what has this step or a later one is taken back, but not at the first
            assert dict(fields(event[7])) == {1: 1}
            if not has_started:
                has_started = True
                continue
            found = {name: [row for row in rows if row[0] < event[2]] for name, rows in found.items()}
            continue
        for field, value in fields(event[5]):
            assert field == 1
            value = dict(value for value in fields(value))
            found.setdefault(value[1].decode(), []).append((event.get(2, 0), value[2]))
    return found


def tensorboard_scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0})
    accumulator.Reload()
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
            for tag in accumulator.Tags()["scalars"]}


rounded = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
expected = {"loss/training": [(step, rounded(1 / (1 + step))) for step in range(300)] + [(500000, 0.125)],
            "rate": [(step, float(step)) for step in range(300)], "more": [(7, -2.0)]}
files = glob.glob(sys.argv[1] + "/events.out.tfevents.*")
assert len(files) == 2, files
found = {name: values for path in files for name, values in scalars(path).items()}
assert found == expected, "other numbers"
try:
    read = tensorboard_scalars(sys.argv[1])
except ImportError:
    sys.exit(0)
assert read == expected, "TensorBoard reads other numbers"
print("TensorBoard reads the same")
