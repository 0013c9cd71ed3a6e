"""How the server does under load: many clients on loopback, asking without a pause.

    python benchmarks/serving.py --clients 50 --seconds 60

Makes runs (one of a million rows), starts `gsolve serve` on them, and prints latencies by kind of request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.made_runs import FAILING, HEALTHY, write_run

NAMES = ["train/roll/ep_rew_mean", "val/roll/ep_rew_mean", "train/loss/value", "train/metrics/kl_divergence"]
SMALL_RUNS = 30


def make_runs(directory: Path, rows: int) -> str:
    for seed in range(SMALL_RUNS):
        write_run(directory, HEALTHY if seed % 2 else FAILING, seed=seed)
    large = write_run(directory, HEALTHY, seed=SMALL_RUNS, max_env_steps=10**9)
    table = large.path / "metrics.csv"
    header = table.read_text().splitlines()[0].split(",")
    rng, chunk = np.random.default_rng(0), 10_000
    with table.open("w") as file:
        file.write(",".join(header) + "\n")
        for start in range(0, rows, chunk):
            values = np.round(rng.normal(1, 0.1, (min(chunk, rows - start), len(header))), 6)
            values[:, header.index("train/cnt/env_steps")] = (np.arange(len(values)) + start + 1) * 256
            file.writelines(",".join(map(repr, row)) + "\n" for row in values.tolist())
    return large.run_id


def start_server(directory: Path) -> tuple[subprocess.Popen[str], int]:
    words = [sys.executable, "-m", "gymnasium_solver", "serve", "--port", "0", "--runs-dir", str(directory)]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    line = server.stderr.readline()
    if "http://" not in line:
        raise SystemExit(line)
    return server, int(line.split("http://127.0.0.1:")[1].split("/")[0])


class Client:
    """One connection that is kept open, with as little work of its own as possible."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def get(self, path: str) -> tuple[int, bytes]:
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(head.split()[1]), await self._reader.readexactly(length)


def processor_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


async def warm_up(port: int, large: str) -> list[str]:
    """Ids of all runs, once the large file has been read."""
    async with Client(port) as first:
        runs = [row["run_id"] for row in json.loads((await first.get("/api/runs?limit=500"))[1])["runs"]]
        exact = False
        while not exact:  # the large file is read in the background
            answer = json.loads((await first.get(f"/api/runs/{large}/metrics?names={','.join(NAMES)}"))[1])
            exact = answer["exact"]
            await asyncio.sleep(0.5)
    return runs


async def measure(
    port: int, clients: int, seconds: float, runs: list[str], large: str
) -> dict[str, list[tuple[float, int]]]:
    found: dict[str, list[tuple[float, int]]] = {"metrics": [], "metrics of 1 M rows": [], "list": [], "run": []}
    end = time.monotonic() + seconds

    async def work(seed: int) -> None:
        rng = random.Random(seed)
        async with Client(port) as client:
            while time.monotonic() < end:
                kind = rng.choices(list(found), (50, 20, 15, 15))[0]
                began = time.monotonic()
                status, _ = await client.get(_path(kind, rng, runs, large))
                found[kind].append((time.monotonic() - began, status))

    await asyncio.gather(*(work(seed) for seed in range(clients)))
    return found


def _path(kind: str, rng: random.Random, runs: list[str], large: str) -> str:
    names = ",".join(rng.sample(NAMES, 2))
    match kind:
        case "metrics":
            return f"/api/runs/{rng.choice(runs)}/metrics?names={names}"
        case "metrics of 1 M rows":  # some of the ranges are new every time
            start = rng.choice([0, 0, rng.randrange(10**8)])
            return f"/api/runs/{large}/metrics?names={names}&from={start}"
        case "list":
            return f"/api/runs?limit=50&search={rng.choice(['', 'ppo', 's1'])}"
    return f"/api/runs/{rng.choice(runs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=1_000_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "runs"
        large = make_runs(directory, chosen.rows)
        server, port = start_server(directory)
        try:
            runs = asyncio.run(warm_up(port, large))
            before = processor_seconds(server.pid)
            found = asyncio.run(measure(port, chosen.clients, chosen.seconds, runs, large))
            used = processor_seconds(server.pid) - before
        finally:
            server.terminate()
            server.wait(timeout=20)
    every = [one for answers in found.values() for one in answers]
    for kind, answers in {**found, "all": every}.items():
        times = np.array([seconds for seconds, _ in answers]) * 1000
        wrong = sum(status != 200 for _, status in answers)
        shown = " ".join(f"p{share} {np.percentile(times, share):6.1f} ms" for share in (50, 95, 99))
        print(f"{kind:20} {len(answers):6} requests  {wrong} errors  {shown}")
    each = 1000 * used / len(every)
    print(
        f"{len(every) / chosen.seconds:.0f} requests per second; {each:.2f} ms of the server's processor time for each"
    )


if __name__ == "__main__":
    main()
