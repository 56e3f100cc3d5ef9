"""Safetensors files of numpy arrays: 8 bytes of header length (little-endian), a JSON header, the data."""
import json
import struct

import numpy as np

TYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL"}
DTYPES = {short: dtype for dtype, short in TYPES.items()}


def write(path, arrays, metadata):
    """Writes name → array. The widest elements come first, so that everything is aligned."""
    header, chunks, offset = {"__metadata__": metadata}, [], 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        header[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        chunks.append(array.tobytes())
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def read(path):
    """name → array."""
    with open(path, "rb") as file:
        bytes_ = file.read()
    start = 8 + struct.unpack("<Q", bytes_[:8])[0]
    header = json.loads(bytes_[8:start])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        array = np.frombuffer(bytes_[start + first:start + last], dtype=DTYPES[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return arrays
