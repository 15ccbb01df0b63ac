"""PyTorch on rows C1 and C2: process start to the first result of the block of row T1, with empty and with full caches.

One JSON line a row: {"workload", "mode", "start_to_result_s"}. Needs PyTorch and a GPU.
"""
import json, os, pathlib, subprocess, sys, tempfile, time

ROWS = ["C1_cold_start_block_f32_8x512x768", "C2_warm_cache_block_f32_8x512x768"]


def first_call():
    import torch
    from torch_peer import Block
    torch.manual_seed(0)
    block = torch.compile(Block().to("cuda").eval())
    with torch.no_grad():
        block(torch.randn(8, 512, 768, device="cuda")).sum().item()


def main():
    if "--part" in sys.argv:
        return first_call()
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": f"{folder}/triton"}
        for row in ROWS:
            start = time.perf_counter()
            subprocess.run([sys.executable, __file__, "--part"], env=env, check=True, cwd=pathlib.Path(__file__).parent)
            taken = time.perf_counter() - start
            print(json.dumps({"workload": row, "mode": "default", "start_to_result_s": round(taken, 3)}), flush=True)


if __name__ == "__main__":
    main()
