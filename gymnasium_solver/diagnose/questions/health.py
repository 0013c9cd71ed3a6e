"""Whether the run itself is sound: finite numbers, the log, the checkpoint, where its time goes."""

from __future__ import annotations

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions.asking import Answer, Evidence, Test, above
from gymnasium_solver.diagnose.readings import Readings


def _any_non_finite(r: Readings, _: Performance) -> Answer | None:
    if not r.curves and not r.non_finite:
        return None
    if not r.non_finite:
        holds = r.status == "diverged"
        return Answer(holds, None, "finite numbers only", None)
    return Answer(
        True, None, f"finite numbers only, unlike {', '.join(sorted(r.non_finite)[:3])}", min(r.non_finite.values())
    )


def _logged(pattern: str) -> Test:
    def test(r: Readings, _: Performance) -> Answer | None:
        if not r.log and not r.curves:
            return None
        found = [message for _, message in r.log if pattern in message]
        return Answer(bool(found), float(len(found)), "none in the log")

    return test


def _failed(r: Readings, _: Performance) -> Answer | None:
    return Answer(r.status == "failed", None, "a run that ends without an error") if r.record else None


def _audited(*kinds: str) -> Test:
    def test(r: Readings, _: Performance) -> Answer | None:
        if r.audit is None:
            return None
        return Answer(any(f["kind"] in kinds for f in r.audit), None, "none in the checkpoint")

    return test


def _share_of_time(name: str, text: str, part: str, bound: float) -> Evidence:
    def test(r: Readings, _: Performance) -> Answer | None:
        spent = {n: r.series(f"train/sys/time_{n}") for n in ("rollout", "update", "eval")}
        sums = {n: float(c.values.sum()) for n, c in spent.items() if c is not None}
        total = sum(sums.values())
        return above(sums[part] / total, bound) if part in sums and total > 30 else None  # short runs need no speed

    return Evidence(name, text, f"train/sys/time_{part}", test)


QUESTIONS = (
    Evidence("non-finite", "a metric is NaN or infinite", "any", _any_non_finite, invariant=True),
    Evidence("traceback-logged", "the log contains a stack trace", "run.log", _logged("Traceback"), "log"),
    Evidence("environment-failed", "the run ended with an error", "run.log", _failed, "log", invariant=True),
    Evidence(
        "checkpoint-non-finite",
        "parameters are NaN or infinite",
        "checkpoint",
        _audited("non-finite-parameters", "non-finite-state", "non-finite-optimizer-state"),
        "checkpoint",
        invariant=True,
    ),
    Evidence(
        "units-identical",
        "hidden units are copies of each other",
        "checkpoint",
        _audited("duplicate-units", "zero-layer"),
        "checkpoint",
    ),
    _share_of_time("stepping-dominates", "most of the time goes into stepping environments", "rollout", 0.8),
    _share_of_time("evaluation-dominates", "most of the time goes into evaluations", "eval", 0.5),
)
