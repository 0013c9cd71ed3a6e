"""Speed and memory of gymnasium-solver next to its peers, in one run: ratios, not seconds.

    python benchmarks/speed.py                              # everything but --memory; about an hour and a half
    python benchmarks/speed.py --quick --only cartpole-throughput
    python benchmarks/speed.py --only memory                # measure this again, keep the rest of the table
    python benchmarks/speed.py --markdown docs/speed.md     # render the last results, measure nothing

Every measurement is a fresh process, timed from outside from its start, ours and the peers' taking turns. Nothing is
installed here: the peers (Stable-Baselines3, SBX, rejax) come from the [bench] extra of the interpreter given by
--peer-python; one that cannot be imported is reported as missing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import measurements
import table
from measurements import Bench

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "speed.json"
REMEDY = "pip install 'gymnasium-solver[bench]' (pip, not uv or poetry: they find no small build of torch)"
IMPORTS = {"sb3": "stable_baselines3, torch", "sbx": "sbx", "rejax": "rejax"}
OUR_PACKAGES = ("gymnasium-solver", "jax", "gymnasium", "envpool", "numpy")
PEER_PACKAGES = ("stable-baselines3", "torch", "sbx-rl", "rejax", "jax", "gymnasium", "numpy")


def main() -> None:
    options = parse()
    if options.markdown:
        table.write_markdown(table.load(options.output or RESULTS), options.markdown)
        return
    names = options.only or [name for name in measurements.ALL if name != "memory" or options.memory]
    missing = {name: REMEDY for name, modules in IMPORTS.items() if not importable(options.peer_python, modules)}
    for name, remedy in missing.items():
        print(f"{name} is missing: {remedy}", file=sys.stderr)

    document: dict[str, Any] = {
        "machine": machine(),
        "versions": {
            "ours": versions(options.our_python, OUR_PACKAGES),
            "peers": versions(options.peer_python, PEER_PACKAGES),
        },
        "quick": options.quick,
        "seeds": 1 if options.quick else options.seeds,
        "missing": missing,
        "measurements": {},
    }
    # A quick run does not replace the measured table unless asked to.
    output = options.output or (None if options.quick else RESULTS)
    if options.only and output and output.exists():
        document["measurements"] = kept_measurements(table.load(output), document)
    with tempfile.TemporaryDirectory(prefix="gsolve-bench-") as scratch:
        bench = Bench(
            our_python=options.our_python,
            peer_python=options.peer_python,
            peers=[name for name in IMPORTS if name not in missing],
            seeds=document["seeds"],
            quick=options.quick,
            scratch=Path(scratch),
        )
        for name in names:
            rows = measurements.ALL[name](bench)
            document["measurements"][name] = {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "rows": [row.to_json() for row in rows],
                "runs": bench.take_runs(),
            }
            if output:
                table.save(document, output)  # after each: an hour's work survives an interruption
    print(table.as_text(document))


def kept_measurements(earlier: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Measurements that one of `--only` stands beside: those of the same machine, versions and seeds, of any day."""
    same = all(earlier[key] == document[key] for key in ("machine", "versions", "seeds", "quick"))
    return dict(earlier["measurements"]) if same else {}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--our-python",
        default=sys.executable,
        type=os.path.abspath,
        metavar="PATH",
        help="interpreter with gymnasium-solver",
    )
    parser.add_argument(
        "--peer-python",
        default=sys.executable,
        type=os.path.abspath,
        metavar="PATH",
        help="interpreter with the [bench] extra",
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each measurement (default 5)")
    parser.add_argument("--quick", action="store_true", help="one seed, short runs: does it work, not how fast is it")
    parser.add_argument("--only", action="append", choices=measurements.ALL, help="this measurement; may be repeated")
    parser.add_argument("--memory", action="store_true", help="also whether memory stays flat over 10 M steps")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"results (default {RESULTS.relative_to(HERE.parent)})"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="render the results into FILE and stop")
    return parser.parse_args()


def importable(python: str, modules: str) -> bool:
    return subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode == 0


def versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of those packages that the interpreter has."""
    code = (
        "import json, sys, importlib.metadata as m\n"
        "have = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}\n"
        "print(json.dumps({p: have[p] for p in sys.argv[1:] if p in have}))"
    )
    output = subprocess.run([python, "-c", code, *packages], capture_output=True, text=True, check=True).stdout
    found: dict[str, str] = json.loads(output)
    return found


def machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    models = (
        [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        if cpuinfo.exists()
        else []
    )
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()}, Python {platform.python_version()}",
    }


if __name__ == "__main__":
    main()
