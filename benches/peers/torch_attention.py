"""Times PyTorch's attention with each of its back ends.

Every line read is a row as JSON: {"dtype": "bf16", "extents": [batch, heads, heads of keys, queries, keys, elements of a head],
"mask": null | "causal" | "bool" | "added"}. The answer is a line of microseconds by back end: {"forward": {..}, "training": {..}}.
A back end that does not take a row is left out.
"""
import json
import statistics
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
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
REPEAT_MS = 8
REPEATS = 3
# The plain back end is passed over where its matrix of scores has more elements: it is never the best there.
MOST_SCORES = 1 << 29


def inputs(dtype, extents):
    batch, heads, groups, queries, keys, depth = extents
    of = lambda heads, rows: torch.randn(batch, heads, rows, depth, device="cuda", dtype=dtype, requires_grad=True)
    return of(heads, queries), of(groups, keys), of(groups, keys)


def options(row):
    """What the row passes beside queries, keys and values."""
    _, heads, groups, queries, keys, _ = row["extents"]
    mask = torch.randn(queries, keys, device="cuda")
    options = {"is_causal": row["mask"] == "causal", "enable_gqa": heads != groups}
    if row["mask"] == "bool":
        options["attn_mask"] = mask > -0.5
    if row["mask"] == "added":
        options["attn_mask"] = mask.to(TYPES[row["dtype"]])
    return options


def measure(call):
    """Microseconds of a call, back to back: the median of some repeats."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def run(calls):
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / calls

    run(3)
    calls = max(3, min(1000, int(REPEAT_MS / run(2))))
    return statistics.median(run(calls) for _ in range(REPEATS)) * 1e3


def attend(tensors, options, repeats):
    """Attention; a back end that knows no groups is given the heads of keys as often as they are read."""
    query, *rest = tensors
    if repeats > 1:
        options = {**options, "enable_gqa": False}
        rest = [heads.repeat_interleave(repeats, dim=1) for heads in rest]
    return F.scaled_dot_product_attention(query, *rest, **options)


def of_backend(name, tensors, options, cotangent):
    """Microseconds forward and in training, or of what there is."""
    times, backend = {}, BACKENDS[name]
    repeats = tensors[0].shape[1] // tensors[1].shape[1] if name == "efficient" else 1
    with sdpa_kernel(backend):
        def forward():
            with torch.no_grad():
                attend(tensors, options, repeats)

        def training():
            torch.autograd.grad(attend(tensors, options, repeats), tensors, cotangent)

        for kind, call in (("forward", forward), ("training", training)):
            try:
                times[kind] = measure(call)
            except RuntimeError:
                torch.cuda.empty_cache()
    return times


def answer(row):
    tensors, beside = inputs(TYPES[row["dtype"]], row["extents"]), options(row)
    batch, heads, _, queries, keys, _ = row["extents"]
    cotangent = torch.randn_like(tensors[0])
    said = {"forward": {}, "training": {}}
    for name in BACKENDS:
        if name == "math" and batch * heads * queries * keys > MOST_SCORES:
            continue
        for kind, us in of_backend(name, tensors, beside, cotangent).items():
            said[kind][name] = round(us, 2)
    torch.cuda.empty_cache()
    return said


def main():
    warnings.simplefilter("ignore")
    torch.backends.cuda.matmul.allow_tf32 = False
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
