"""Every shipped configuration over seeds: how many are solved, in how many steps and seconds.

    python benchmarks/shipped.py                 # all of them; about an hour on two cores
    python benchmarks/shipped.py CartPole Lunar  # those whose name contains a word; other rows are kept
    python benchmarks/shipped.py --render        # measure nothing, write the page again

Each seed is a process pinned to a core (`gsolve train --seeds`). Seconds run from the start of training to its end,
compilation and evaluations included. Writes benchmarks/results/shipped.json and docs/results.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speed import machine as describe_machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "shipped.json"
PAGE = ROOT / "docs" / "results.md"


def measure(ref: str, seeds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "gymnasium_solver", "train", ref, "--seeds", str(seeds), "--json"]
        done = subprocess.run([*command, "--runs-dir", directory], stdout=subprocess.PIPE, text=True, check=False)
    runs = json.loads(done.stdout)["seeds"]
    if any(run["error"] for run in runs):
        raise SystemExit(f"{ref}: {next(run['error'] for run in runs if run['error'])}")
    return {
        "threshold": runs[0]["threshold"],
        "max_env_steps": runs[0]["max_env_steps"],
        "seeds": len(runs),
        "solved": sum(bool(run["solved"]) for run in runs),
        "env_steps": [run["env_steps"] for run in runs],
        "seconds": [round(run["duration_s"], 1) for run in runs],
        "reward": [round(run["test_reward"], 2) for run in runs],
        "date": datetime.now(UTC).date().isoformat(),
    }


def render(document: dict[str, Any]) -> str:
    machine = document["machine"]
    lines = [
        "# What the shipped configurations reach",
        "",
        f"Measured with `python benchmarks/shipped.py` on {machine['cpu']}, {machine['cores']} cores, two seeds at a",
        "time, one core each. A seed is solved when an evaluation reaches the threshold and fresh episodes on the",
        "Gymnasium environment confirm it; training stops there. Otherwise it ends after its budget of steps, and the",
        "reward is that of its best checkpoint on fresh episodes. Steps, seconds (with compilation and evaluations)",
        "and reward are medians over the seeds.",
        "",
        "| configuration | threshold | solved | env steps | of at most | seconds | reward (min to max) | measured |",
        "|---|---|---|---|---|---|---|---|",
    ]
    if document.get("note"):  # written by hand into the JSON: what to know of how these rows came about
        lines[-2:-2] = [document["note"], ""]
    for ref, row in sorted(document["rows"].items()):
        reward = f"{statistics.median(row['reward']):g} ({min(row['reward']):g} to {max(row['reward']):g})"
        lines.append(
            f"| `{ref}` | {row['threshold']:g} | {row['solved']} of {row['seeds']} "
            f"| {statistics.median(row['env_steps']):,.0f} | {row['max_env_steps']:,} "
            f"| {statistics.median(row['seconds']):.1f} | {reward} | {row['date']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    from gymnasium_solver.config.load import shipped

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only configurations whose name contains one of these")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--render", action="store_true", help="only write the page from the stored results")
    options = parser.parse_args()
    document: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    document["machine"] = describe_machine()
    refs = [f"{env}:{variant}" for env, variant, _ in shipped()]
    document["rows"] = {ref: row for ref, row in document["rows"].items() if ref in refs}
    for ref in refs:
        if options.render or (options.words and not any(word.lower() in ref.lower() for word in options.words)):
            continue
        document["rows"][ref] = measure(ref, options.seeds)
        print(ref, document["rows"][ref], file=sys.stderr, flush=True)
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    PAGE.write_text(render(document), encoding="utf-8")


if __name__ == "__main__":
    main()
