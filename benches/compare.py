"""Puts fuse and PyTorch side by side: runs both on the workloads, or reads their lines, and prints a table in Markdown.

usage: python3 benches/compare.py [--device cuda:0|cpu] [--only P,M1] [--fuse FILE] [--torch FILE] [--save FOLDER]

Without --fuse it runs `cargo bench --bench workloads`, without --torch `benches/peers/torch_peer.py` (which needs PyTorch).
`ratio` is the best of fuse to the best of PyTorch; below 1 fuse is faster.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default="")
    parser.add_argument("--fuse", type=pathlib.Path, help="lines of the workload benchmark")
    parser.add_argument("--torch", type=pathlib.Path, help="lines of the peer script")
    parser.add_argument("--save", type=pathlib.Path, help="keep the lines of this run in a folder")
    args = parser.parse_args()
    fuse = lines_of("fuse", fuse_command(args), args.fuse, args.save)
    torch = lines_of("torch", torch_command(args), args.torch, args.save)
    print_ceilings(fuse, torch)
    print_table(by_workload(fuse), by_workload(torch))


def fuse_command(args):
    only = ["--only", args.only] if args.only else []
    return ["cargo", "bench", "-q", "--bench", "workloads", "--", "--json", "--device", args.device, *only]


def torch_command(args):
    modes = "eager,default" if args.device == "cpu" else "eager,default,reduce-overhead,max-autotune"
    device = args.device.split(":")[0]
    only = ["--only", args.only] if args.only else []
    return [sys.executable, str(HERE / "peers" / "torch_peer.py"), "--device", device, "--modes", modes, *only]


def lines_of(name, command, path, save):
    """The JSON lines of a file, or of a command that is run now."""
    if path:
        text = path.read_text()
    else:
        print(" ".join(command), file=sys.stderr)
        text = subprocess.run(command, cwd=HERE.parent, check=True, text=True, stdout=subprocess.PIPE).stdout
    if save and not path:
        save.mkdir(parents=True, exist_ok=True)
        (save / f"{name}.jsonl").write_text(text)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def by_workload(lines):
    """workload -> mode -> line, in the order of the lines."""
    table = {}
    for line in lines:
        if "mode" in line:
            table.setdefault(line["workload"], {})[line["mode"]] = line
    return table


def print_ceilings(fuse, torch):
    for name, lines in (("fuse", fuse), ("torch", torch)):
        found = [f"{line['workload'].replace('_', ' ')} {line['gbps']:.0f} GB/s" for line in lines if "mode" not in line]
        if found:
            print(f"{name}: {', '.join(found)}  ")
    print()


def print_table(fuse, torch):
    print("| id | work | eager, us | compiled, us | best torch, us (mode) | ratio | peak, MB (torch) |")
    print("|---|---|---|---|---|---|---|")
    for name, modes in fuse.items():
        row, work = name.split("_", 1)
        best, best_mode = fastest(modes)
        peer, peer_mode = fastest(torch.get(name, {}))
        ratio = f"{best / peer:.2f}" if best and peer else ""
        peer_text = f"{microseconds(peer)} ({peer_mode})" if peer else ""
        peaks = f"{peak(modes, best_mode)} ({peak(torch.get(name, {}), peer_mode)})"
        cells = [row, work, time_of(modes.get("eager")), time_of(modes.get("default")), peer_text, ratio, peaks]
        print(f"| {' | '.join(cells)} |")


def fastest(modes):
    """The time in milliseconds and the name of the fastest mode."""
    timed = [(line["ms"], mode) for mode, line in modes.items() if "ms" in line]
    return min(timed, default=(None, None))


def peak(modes, mode):
    megabytes = modes.get(mode, {}).get("peak_mb")
    return "-" if megabytes is None else f"{megabytes:.0f}"


def time_of(line):
    """A cell: the time, or why there is none."""
    if line is None:
        return ""
    return microseconds(line["ms"]) if "ms" in line else line["error"]


def microseconds(ms):
    us = ms * 1e3
    return f"{us:.0f}" if us >= 10 else f"{us:.1f}"


if __name__ == "__main__":
    main()
