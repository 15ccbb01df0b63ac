"""Writes reference.json: what PyTorch's optimisers make of two parameters in six steps, in f64.

    python3 tests/optim/reference.py > tests/optim/reference.json
"""

import json
import math

import torch

STEPS = 6
SHAPES = [[2, 3], [5]]


def value(k, step):
    """A number of moderate size that is easy to make again."""
    return math.sin(1.7 * k + 0.9 * step)


def gradient(shape, first, step):
    n = math.prod(shape)
    return torch.tensor([value(first + k, step) for k in range(n)], dtype=torch.float64).reshape(shape)


def run(make, clip=None):
    params = [gradient(shape, 10 * i, 100).requires_grad_() for i, shape in enumerate(SHAPES)]
    opt = make(params)
    trace = []
    for step in range(STEPS):
        for i, param in enumerate(params):
            param.grad = gradient(SHAPES[i], 10 * i, step) * (1 + step)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(params, clip)
        opt.step()
        trace.append([x for param in params for x in param.detach().flatten().tolist()])
    return trace


optim = torch.optim
cases = {
    "sgd": run(lambda p: optim.SGD(p, lr=0.1, weight_decay=0.2)),
    "momentum": run(lambda p: optim.SGD(p, lr=0.1, momentum=0.9)),
    "dampened": run(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1)),
    "nesterov": run(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)),
    "adam": run(lambda p: optim.Adam(p, lr=0.1)),
    "adam_decayed": run(lambda p: optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3)),
    "adamw": run(lambda p: optim.AdamW(p, lr=0.1)),
    "adamw_decayed": run(lambda p: optim.AdamW(p, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3)),
    "clipped": run(lambda p: optim.SGD(p, lr=0.1), clip=0.7),
}
print(json.dumps({"torch": torch.__version__.split("+")[0], "cases": cases}))
