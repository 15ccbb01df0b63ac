"""Computes products and attention with PyTorch from numbers in files.

Every line read is JSON: {"op": "product", "path": "f32" | "tf32" | "bf16" | "f16", "extents": [m, k, n], "inputs": [file, file],
"results": file}, or {"op": "attention", .., "extents": [batch, heads, rows, elements of a head], "inputs": [queries, keys, values], ..}.
Files hold f32 numbers; names of results begin with `results`. The answer is a line: {"made": {back end: file}}, where a product
has the back end "". A back end that does not take attention of a type is left out.
"""
import array
import json
import sys
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
TYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read(file, extents, dtype):
    with open(file, "rb") as numbers:
        values = torch.frombuffer(bytearray(numbers.read()), dtype=torch.float32)
    return values.reshape(extents).to(DEVICE).to(dtype)


def write(file, result):
    with open(file, "wb") as numbers:
        array.array("f", result.float().flatten().tolist()).tofile(numbers)


def product(row):
    m, k, n = row["extents"]
    torch.backends.cuda.matmul.allow_tf32 = row["path"] == "tf32"
    left, right = (read(file, extents, TYPES[row["path"]]) for file, extents in zip(row["inputs"], [(m, k), (k, n)]))
    write(row["results"], left @ right)
    return {"": row["results"]}


def attention(row):
    torch.backends.cuda.matmul.allow_tf32 = False
    tensors = [read(file, row["extents"], TYPES[row["path"]]) for file in row["inputs"]]
    made = {}
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel(backend):
                result = F.scaled_dot_product_attention(*tensors)
        except RuntimeError:
            continue
        made[name] = f"{row['results']}-{name}"
        write(made[name], result)
    return made


def main():
    warnings.simplefilter("ignore")
    compute = {"product": product, "attention": attention}
    for line in sys.stdin:
        row = json.loads(line)
        print(json.dumps({"made": compute[row["op"]](row)}), flush=True)


if __name__ == "__main__":
    main()
