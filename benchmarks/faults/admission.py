"""Which faults bite: clean runs against broken ones, over seeds. Those without a loss belong to the harmless suite;
what hurts on some seeds only is in neither, for nobody can say whether a finding there is right."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from faults.cases import SEEDS, Case, all_cases
from faults.training import Records, read_records

RESULTS = Path(__file__).parent / "results"
TABLE = RESULTS / "admission.json"
_LEAST_DROP = 0.15  # of the way from nothing learnt to solved; a smaller one is no loss
_DEVIATIONS = 3.0


def bites(clean: list[float], broken: list[float]) -> bool:
    drop = statistics.mean(clean) - statistics.mean(broken)
    return drop > _LEAST_DROP and drop > _DEVIATIONS * max(statistics.stdev(clean), statistics.stdev(broken))


def scores_of(case: Case, split: str, records: Records) -> list[float]:
    keys = [(case.name, "", seed) for seed in SEEDS[split]]
    return [records[key]["score"] for key in keys if key in records]


def admit(work: Path) -> list[dict[str, Any]]:
    """Every case that was trained on all seeds of its split, and whether it bites; written to results/."""
    cases, records = all_cases(), read_records(work)
    rows: list[dict[str, Any]] = []
    for case in cases.values():
        split = "calibration" if case.split == "both" else case.split
        broken = scores_of(case, split, records)
        clean = scores_of(cases[f"{case.reference.name}.clean"], split, records)
        if min(len(clean), len(broken)) < len(SEEDS[split]):
            continue
        rows.append(
            {
                "case": case.name,
                "split": case.split,
                "cause": case.cause,
                "clean_mean": round(statistics.mean(clean), 3),
                "clean_sd": round(statistics.stdev(clean), 3),
                "broken_mean": round(statistics.mean(broken), 3),
                "broken_sd": round(statistics.stdev(broken), 3),
                "bites": bites(clean, broken),
                "harmless": statistics.mean(clean) - statistics.mean(broken) <= _LEAST_DROP,
            }
        )
    RESULTS.mkdir(exist_ok=True)
    TABLE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    bitten, quiet = (sum(row[name] for row in rows) for name in ("bites", "harmless"))
    print(f"{len(rows)} cases: {bitten} bite, {quiet} are healthy or harmless, the rest hurts on some seeds only")
    return rows


def admitted() -> dict[str, bool]:
    """Whether a case bites, by its name; those that are neither biting nor harmless are left out."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    return {row["case"]: row["bites"] for row in rows if row["bites"] or row["harmless"]}
