"""Says what binds the kernels of the workloads: profiles each row with Nsight Compute and prints a table in Markdown.

usage: python3 benches/profile.py [--only P,M6] [--bench PROGRAM] [--ncu PROGRAM] [--device cuda:0] [--ceiling GB/s] [--save FILE]
       python3 benches/profile.py --launches [--only T]

PROGRAM is the workload benchmark as `cargo bench --bench workloads --no-run` builds it, which is done if it is left out. Every row has
a process of its own that ends after its first launches. Times are the profiler's, of one launch on an empty cache; `of ceiling` is the
share of what a copy of a gigabyte reaches (`--ceiling`, else the `copy_ceiling` that the benchmark prints).

`--launches` says how many launches a call of a row is in one CUDA graph.
"""
import argparse
import csv
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Launches of a process that are profiled: those that draw its inputs, and the first calls.
LAUNCHES = 24

TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"
ISSUE, WARPS = "smsp__issue_active.avg.pct_of_peak_sustained_active", "sm__warps_active.avg.pct_of_peak_sustained_active"
HITS, REGISTERS = "lts__t_sector_hit_rate.pct", "launch__registers_per_thread"
STALLS = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
WAITS = [
    "long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "lg_throttle", "math_pipe_throttle", "wait", "not_selected",
    "no_instruction", "branch_resolve", "dispatch_stall", "drain", "membar", "sleeping", "tex_throttle",
]
METRICS = [TIME, READ, WRITTEN, ISSUE, WARPS, HITS, REGISTERS, *(STALLS.format(wait) for wait in WAITS)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--bench", type=pathlib.Path)
    parser.add_argument("--ncu", default=newest("/opt/nvidia/nsight-compute/*/ncu") or "ncu")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--ceiling", type=float, help="GB/s")
    parser.add_argument("--save", type=pathlib.Path, help="keep what was measured as JSON lines")
    parser.add_argument("--launches", action="store_true")
    args = parser.parse_args()
    bench = (args.bench or built()).resolve()
    rows = names(args.only or ("T" if args.launches else "P"))
    if args.launches:
        return print_launches(bench, rows, args)
    print_kernels(bench, rows, args)


def newest(pattern):
    return max(glob.glob(pattern), default=None)


def built():
    """The benchmark, built now."""
    command = ["cargo", "bench", "-q", "--bench", "workloads", "--no-run", "--message-format", "json"]
    lines = subprocess.run(command, cwd=HERE.parent, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    programs = (json.loads(line).get("executable") for line in lines if line.startswith("{"))
    return pathlib.Path([program for program in programs if program][-1])


def names(only):
    """The rows of a GPU whose names begin so, in the order of the table."""
    text = (HERE / "workloads" / "rows.rs").read_text()
    found = re.findall(r'row!?\("([A-JL-Z]\w+)"', text)
    return [name for name in found if any(name.startswith(start) for start in only.split(","))]


def process(bench, row, args, mode="default"):
    return [str(bench), "--part", "--modes", mode, "--device", args.device, "--only", row]


def print_kernels(bench, rows, args):
    ceiling = args.ceiling or copy_ceiling(bench, args)
    print(f"copy ceiling {ceiling:.0f} GB/s\n")
    print("| id | kernel | us | DRAM, GB/s | of ceiling | issue slots | occupancy | L2 hits | registers | waits for |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        for kernel, values in profiled(bench, row, args).items():
            print(line_of(row, kernel, values, ceiling), flush=True)
            if args.save:
                with args.save.open("a") as file:
                    file.write(json.dumps({"workload": row, "kernel": kernel, **values}) + "\n")


def copy_ceiling(bench, args):
    """What the benchmark measures before its rows, with none asked for."""
    command = [str(bench), "--json", "--modes", "default", "--device", args.device, "--only", "none"]
    lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    return next(line["gbps"] for line in map(json.loads, lines) if line["workload"] == "copy_ceiling")


def profiled(bench, row, args):
    """kernel -> metric -> value, of the last launch of each kernel that a call of the row makes."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.csv"
        command = [
            args.ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--log-file", str(log),
            "--launch-count", str(LAUNCHES), "--kill", "yes", "--metrics", ",".join(METRICS), *process(bench, row, args),
        ]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        text = log.read_text() if log.exists() else ""
    lines = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
    if not lines:
        sys.exit(f"{row}: {text.strip() or 'the profiler says nothing'}")
    # The line below the head has the units.
    launches = [line for line in lines if line["ID"]]
    return {launch["Kernel Name"]: values_of(launch) for launch in launches if makes_no_inputs(launch["Kernel Name"])}


def makes_no_inputs(kernel):
    return kernel != "k0_random"


def values_of(launch):
    number = lambda text: float(text.replace(",", ""))
    return {metric: number(launch[metric]) for metric in METRICS if launch.get(metric)}


def line_of(row, kernel, values, ceiling):
    ns, moved = values[TIME], values[READ] + values[WRITTEN]
    gbps = moved / ns
    waits = {wait: values.get(STALLS.format(wait), 0.0) for wait in WAITS}
    most = sorted(waits, key=waits.get, reverse=True)[:2]
    cells = [
        row.split("_")[0], f"`{kernel.split('(')[0]}`", f"{ns / 1e3:.1f}", f"{gbps:.0f}", f"{100 * gbps / ceiling:.0f}%",
        f"{values[ISSUE]:.0f}%", f"{values[WARPS]:.0f}%", f"{values[HITS]:.0f}%", f"{values[REGISTERS]:.0f}",
        ", ".join(f"{wait.replace('_', ' ')} {waits[wait]:.1f}" for wait in most),
    ]
    return f"| {' | '.join(cells)} |"


def print_launches(bench, rows, args):
    """The runtime tells how many launches a graph has as soon as a call has been made one."""
    print("| id | work | launches in a call |\n|---|---|---|")
    for row in rows:
        told = subprocess.Popen(
            process(bench, row, args, "reduce-overhead"), text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "FUSE_LOG": "launch", "FUSE_MODE": "reduce-overhead"},
        )
        found = (re.search(r"a graph of (\d+) launches", line) for line in told.stderr)
        count = next((match.group(1) for match in found if match), "-")
        told.kill()
        told.wait()
        print(f"| {' | '.join([*row.split('_', 1), count])} |", flush=True)


if __name__ == "__main__":
    main()
