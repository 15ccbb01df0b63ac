"""Puts fuse and its peers side by side: runs them on the workloads, or reads their lines, and prints tables in Markdown.

usage: python3 benches/compare.py [--device cuda:0|cpu] [--only P,M1] [--modes eager,default] [--save FOLDER]
                                  [--fuse FILE] [--cold FILE] [--torch FILE] [--torch-cold FILE] [--peer NAME=FILE]
                                  [--burn [PROGRAM]] [--decode [PROGRAM]]

Without FILEs it runs `cargo bench` (workloads, and on a GPU cold and sweep), `benches/peers/torch_peer.py` and
`benches/peers/torch_cold.py`, which need PyTorch, and on a processor `benches/peers/rust`. `--burn` runs `benches/peers/burn` on a GPU as
well, which takes a quarter of an hour to build if it is not there as PROGRAM, `--decode` the benchmark `decode` and
`benches/peers/torch_decode.py`. `--peer` adds the lines of another library.
`ratio` is the best of fuse to the best of PyTorch; below 1 fuse is faster. `goal` is the ratio that the row is to reach. `floor` is the
time the bytes of a row take at the copy ceiling of this run, or its operations at the rate of a large product.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


RUST_PEERS = ["candle", "ndarray"]
# Seconds a row of Burn may take: it tunes each product at its first call.
BURN_LIMIT = 150
MODES = ["eager", "default", "reduce-overhead", "max-autotune"]
# What a product of 8192 x 8192 x 8192 random numbers reaches on an H200, in TFLOP/s, by the word in a row's name.
RATES = {"bf16": 790, "tf32": 395}
# The ratios to reach.
GOALS = {
    "P1": 1.00, "P2": 0.95, "P3": 0.65, "P4": 0.81, "P5": 0.82, "P6": 0.74, "P7": 0.93, "P8": 0.62, "P9": 0.97, "P10": 0.99,
    "M1": 0.51, "M2": 0.67, "M3": 0.53, "M4": 0.88, "M5": 0.52, "M6": 0.27, "M7": 0.59, "A1": 0.74, "A2": 0.91, "A3": 0.78, "A4": 0.47,
    "T1": 0.49, "T2": 0.63, "T3": 0.26, "T4": 0.47, "T5": 0.36, "L1": 0.15, "L2": 0.14, "G1": 0.25, "G2": 0.15, "G3": 0.39,
    "K1": 0.4, "K2": 0.4, "K3": 0.4, "K5": 0.4, "K6": 0.4, "K7": 0.4, "K8": 0.5, "K9": 0.4, "K10": 0.4, "K11": 0.85, "K12": 0.7,
    "K13": 0.75, "K14": 0.6, "K15": 0.15, "K16": 0.3, "K17": 0.5,
}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default="")
    parser.add_argument("--modes", default="")
    parser.add_argument("--save", type=pathlib.Path, help="keep the lines of this run in a folder")
    parser.add_argument("--fuse", type=pathlib.Path, help="lines of the workload benchmark")
    parser.add_argument("--cold", type=pathlib.Path, help="lines of the benchmarks `cold` and `sweep`")
    parser.add_argument("--torch", type=pathlib.Path, help="lines of the peer script")
    parser.add_argument("--torch-cold", type=pathlib.Path, help="lines of the peer's cold starts")
    parser.add_argument("--peer", action="append", default=[], help="NAME=FILE: lines of another library")
    parser.add_argument("--burn", nargs="?", const="", metavar="PROGRAM", help="run Burn, too")
    parser.add_argument("--decode", nargs="?", const="", metavar="PROGRAM", help="write text, too")
    args = parser.parse_args()
    fuse = lines_of("fuse", workloads(args), args.fuse, args.save)
    torch = lines_of("torch", torch_peer(args), args.torch, args.save)
    others = [(name, lines_of(name, [], pathlib.Path(path), None)) for name, path in split(args.peer)]
    if args.device == "cpu" and not args.fuse:
        others += [(name, lines_of(name, [rust_peer(name, args)], None, args.save)) for name in RUST_PEERS]
    if args.burn is not None:
        others.append(("burn", lines_of("burn", [burn(args)], None, args.save)))
    print_ceilings([("fuse", fuse), ("torch", torch), *others])
    print_table(fuse, torch, others)
    if args.decode is not None:
        print_decode(fuse, torch, args)
    if args.device != "cpu" and (args.cold or not args.fuse):
        cold = lines_of("cold", cold_starts(args), args.cold, args.save)
        print_cold(cold, lines_of("torch-cold", torch_cold(), args.torch_cold, args.save))


def split(peers):
    return [peer.split("=", 1) for peer in peers]


def modes(args):
    return args.modes or ",".join(MODES[:2] if args.device == "cpu" else MODES)


def only(args):
    return ["--only", args.only] if args.only else []


def bench(name, args, *more):
    return ["cargo", "bench", "-q", "--bench", name, "--", "--json", "--device", args.device, *more]


def workloads(args):
    return [bench("workloads", args, "--modes", modes(args), *only(args))]


def cold_starts(args):
    return [bench("cold", args), bench("sweep", args)]


def torch_peer(args):
    device = args.device.split(":")[0]
    peer = str(HERE / "peers" / "torch_peer.py")
    return [[sys.executable, peer, "--device", device, "--modes", modes(args), *only(args)]]


def rust_peer(name, args):
    manifest = str(HERE / "peers" / "rust" / "Cargo.toml")
    return ["cargo", "run", "-q", "--release", "--manifest-path", manifest, "--bin", name, "--", *only(args)]


def burn(args):
    manifest = str(HERE / "peers" / "burn" / "Cargo.toml")
    program = [args.burn] if args.burn else ["cargo", "run", "-q", "--release", "--manifest-path", manifest, "--"]
    return [*program, "--limit", str(BURN_LIMIT), *only(args)]


def torch_cold():
    return [[sys.executable, str(HERE / "peers" / "torch_cold.py")]]


def lines_of(name, commands, path, save):
    """The JSON lines of a file, or of commands that are run now."""
    text = path.read_text() if path else "".join(output(command) for command in commands)
    if save and not path:
        save.mkdir(parents=True, exist_ok=True)
        (save / f"{name}.jsonl").write_text(text)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def output(command):
    print(" ".join(command), file=sys.stderr)
    return subprocess.run(command, cwd=HERE.parent, check=True, text=True, stdout=subprocess.PIPE).stdout


def by_workload(lines):
    """workload -> mode -> line, in the order of the lines."""
    table = {}
    for line in lines:
        if "mode" in line:
            table.setdefault(line["workload"], {})[line["mode"]] = line
    return table


def print_ceilings(sources):
    for name, lines in sources:
        found = [f"{line['workload'].replace('_', ' ')} {line['gbps']:.0f} GB/s" for line in lines if "mode" not in line]
        if found:
            print(f"{name}: {', '.join(found)}  ")
    print()


def copy_ceiling(fuse):
    return next((line["gbps"] for line in fuse if line["workload"] == "copy_ceiling"), None)


def print_table(fuse, torch, others):
    ceiling, fuse, torch = copy_ceiling(fuse), by_workload(fuse), by_workload(torch)
    others = [(name, by_workload(lines)) for name, lines in others]
    ours, theirs = used_modes(fuse), used_modes(torch)
    head = ["id", "work", *ours, *(f"torch {mode}" for mode in theirs), *(name for name, _ in others)]
    print_row([*head, "ratio", "goal", "floor", "achieved", "peak, MB (torch)"])
    print_row(["---"] * (len(head) + 5))
    for name, lines in fuse.items():
        row, work = name.split("_", 1)
        peers = torch.get(name, {})
        best, best_mode = fastest(lines)
        peer, peer_mode = fastest(peers)
        cells = [time_of(lines.get(mode)) for mode in ours] + [time_of(peers.get(mode)) for mode in theirs]
        cells += [time_of(table.get(name, {}).get("default")) for _, table in others]
        ratio = f"{best / peer:.2f}" if best and peer else ""
        # Candidates are timed on copies in the first calls of `max-autotune`.
        _, lean_mode = fastest({mode: line for mode, line in lines.items() if mode != "max-autotune"})
        peaks = f"{peak(lines, lean_mode)} ({peak(peers, peer_mode)})"
        goal = f"{GOALS[row]:.2f}" if row in GOALS else ""
        print_row([row, work, *cells, ratio, goal, *speed(work, lines.get(best_mode), ceiling), peaks])


def print_row(cells):
    print(f"| {' | '.join(cells)} |")


def used_modes(table):
    return [mode for mode in MODES if any(mode in lines for lines in table.values())]


def fastest(lines):
    """The time in milliseconds and the name of the fastest mode."""
    timed = [(line["ms"], mode) for mode, line in lines.items() if "ms" in line]
    return min(timed, default=(None, None))


def speed(work, line, ceiling):
    """The floor of a row, and what it achieves."""
    if line and "gbps" in line and ceiling:
        floor = microseconds(line["ms"] * line["gbps"] / ceiling)
        return [floor, f"{line['gbps']:.0f} GB/s, {100 * line['gbps'] / ceiling:.0f}%"]
    if line and "tflops" in line:
        rate = next((rate for word, rate in RATES.items() if f"_{word}_" in work), None)
        floor = microseconds(line["ms"] * line["tflops"] / rate) if rate else ""
        return [floor, f"{line['tflops']:.0f} TFLOP/s"]
    return ["", ""]


def peak(lines, mode):
    megabytes = lines.get(mode, {}).get("peak_mb")
    return "-" if megabytes is None else f"{megabytes:.0f}"


def time_of(line):
    """A cell: the time, or why there is none."""
    if line is None:
        return ""
    return microseconds(line["ms"]) if "ms" in line else line["error"]


def microseconds(ms):
    us = ms * 1e3
    return f"{us:.0f}" if us >= 10 else f"{us:.1f}"


def print_decode(fuse, torch, args):
    """Tokens a second: of text that is written one by one, and of a block that takes 8 x 512 at once."""
    twin = [sys.executable, str(HERE / "peers" / "torch_decode.py"), "--device", args.device.split(":")[0]]
    program = [args.decode, "--json", "--device", args.device] if args.decode else bench("decode", args)
    runs = [("fuse", [program], fuse), ("torch", [twin], torch)]
    print()
    print_row(["work", "", "mode", "tokens/s", "each read by the host, tokens/s"])
    print_row(["---"] * 5)
    for name, commands, workloads_lines in runs:
        for line in lines_of(f"{name}-decode", commands, None, args.save):
            print_row(["decode", name, line["mode"], f"{line['tokens_per_s']:.0f}", f"{line['read_tokens_per_s']:.0f}"])
        block = by_workload(workloads_lines).get("T2_block_eval_bf16_8x512x768", {})
        ms, mode = fastest(block)
        if ms:
            print_row(["prefill of T2's block", name, mode, f"{8 * 512 / ms * 1e3:.0f}", ""])


def print_cold(ours, torch):
    peers = {line["workload"]: line for line in torch}
    print()
    print_row(["id", "work", "start to first result, s", "of it the device, s", "torch, s", "ratio"])
    print_row(["---"] * 6)
    for line in ours:
        row, work = line["workload"].split("_", 1)
        if "start_to_result_s" not in line:
            print_sweep(line)
            continue
        mine, peer = line["start_to_result_s"], peers.get(line["workload"], {}).get("start_to_result_s")
        theirs, ratio = (f"{peer:.2f}", f"{mine / peer:.3f}") if peer else ("", "")
        print_row([row, work, f"{mine:.2f}", f"{line['driver_s']:.2f}", theirs, ratio])


def print_sweep(line):
    print()
    print(
        f"{line['workload']}: {line['calls']} calls in {line['total_s']:.2f} s, the slowest {line['slowest_call_ms']:.0f} ms, "
        f"{line['kernels_compiled']} kernels compiled, at most {line['most_variants_of_a_kernel']} of one"
    )


if __name__ == "__main__":
    main()
