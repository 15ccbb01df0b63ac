"""Writing text with PyTorch: the model of `benches/decode` with a cache of fixed size, tokens per second at batch 1.

usage: python3 torch_decode.py [--device cuda|cpu] [--tokens 512] [--modes eager,graph,reduce-overhead,max-autotune]
`graph` is eager code captured once in a CUDA graph, the others are `torch.compile`. One JSON line a mode.
"""
import argparse, json, statistics, time
import torch, torch.nn as nn, torch.nn.functional as F

WIDTH, HEADS, HIDDEN, VOCABULARY, CONTEXT, LAYERS = 768, 12, 3072, 32000, 1024, 6
REPEATS = 5


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.register_buffer("keys", torch.zeros(1, HEADS, CONTEXT, WIDTH // HEADS))
        self.register_buffer("values", torch.zeros(1, HEADS, CONTEXT, WIDTH // HEADS))

    def forward(self, x, place, seen):
        q, k, v = (part.view(1, 1, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        attended = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.out(attended.transpose(1, 2).reshape(1, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("places", torch.arange(CONTEXT), persistent=False)

    def forward(self, token, place):
        seen = (self.places <= place).unsqueeze(0)
        x = self.tokens(token) + self.positions(place)
        for layer in self.layers:
            x = layer(x, place, seen)
        return self.head(self.norm(x)).argmax(-1), place + 1


def captured(model, token, place):
    """A step as one CUDA graph over tensors of its own, which it updates."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(token, place)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        following, after = model(token, place)
        token.copy_(following)
        place.copy_(after)

    def step(start_token, start_place):
        if start_token is not token:
            token.copy_(start_token)
            place.copy_(start_place)
        graph.replay()
        return token, place

    return step


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--modes", default="eager,graph,reduce-overhead")
    args = parser.parse_args()
    for mode in args.modes.split(","):
        with torch.no_grad():
            print(json.dumps(in_mode(mode, args)), flush=True)


def in_mode(mode, args):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model().to(args.device).to(torch.bfloat16)
    number = lambda value: torch.tensor([value], device=args.device)
    start = time.perf_counter()
    if mode == "graph":
        step = captured(model, number(1), number(0))
    else:
        step = model if mode == "eager" else torch.compile(model, mode=mode)

    def write(tokens, read):
        token, place = number(1), number(0)
        wait(args.device)
        begin = time.perf_counter()
        for _ in range(tokens):
            if "graph" not in mode and mode != "eager":
                # What a step of a compiled graph returns is overwritten by the next one.
                torch.compiler.cudagraph_mark_step_begin()
                token, place = token.clone(), place.clone()
            token, place = step(token, place)
            if read:
                token.item()
        wait(args.device)
        return time.perf_counter() - begin

    write(min(args.tokens, 8), True)
    first = time.perf_counter() - start
    speed = lambda read: round(args.tokens / statistics.median(write(args.tokens, read) for _ in range(REPEATS)))
    return {
        "workload": "decode_bf16_6x768", "mode": mode, "tokens_per_s": speed(False), "read_tokens_per_s": speed(True),
        "first_tokens_s": round(first, 3),
    }


def wait(device):
    device == "cuda" and torch.cuda.synchronize()


if __name__ == "__main__":
    main()
