"""`gsolve sweep`: search a space of configs with Optuna, check the winner on fresh seeds, and write the report."""

from __future__ import annotations

from typing import Any

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.processes import working_on
from gymnasium_solver.runs.layout import new_id
from gymnasium_solver.verify.objective import OBJECTIVES
from gymnasium_solver.verify.sweeping import report, studies
from gymnasium_solver.verify.sweeping.search import Plan, Search, Watch
from gymnasium_solver.verify.sweeping.space import grid_points, read_space
from gymnasium_solver.verify.sweeping.storage import require_optuna
from gymnasium_solver.verify.sweeping.studies import Study
from gymnasium_solver.verify.sweeping.usual_space import usual_space


def sweep(plan: Plan, watch: Watch = lambda _: None) -> dict[str, Any]:
    """Search, check the winner, write report.md with its pictures, and return the document of it all."""
    require_optuna()
    if plan.ref is None:
        if plan.name is None:
            raise ConfigError("what to search is missing; give ENV:VARIANT, or --resume NAME")
        study = studies.resume_study(plan.name, plan.storage, plan.runs_dir, plan.sampler, plan.pruner)
        base = load_config(study.ref, study.overrides, asked=study.admit_code(trust=plan.trust))
    else:
        base = load_config(plan.ref, plan.overrides, asked=True)
        study = _begin(plan, base)
    search = Search(plan, study, base, watch)
    search.open()
    interrupted = False
    with working_on(study.directory):
        try:
            search.run()
            confirmation = search.check_winner()
        except KeyboardInterrupt:
            interrupted, confirmation = True, None
        document = report.document_of(study, search.aim, base, confirmation)
        document |= {"interrupted": interrupted, "report": str(report.write(study, document))}
    return document


def _begin(plan: Plan, base: Config) -> Study:
    from gymnasium_solver.envs import describe

    fields = to_dict(base)
    space = usual_space(fields) if plan.space is None else read_space(plan.space, fields)
    if plan.sampler == "grid":
        grid_points(space)  # before anything is written
    threshold = describe(base).reward_threshold
    objective = plan.objective or ("return" if threshold is None else "steps")
    if objective not in OBJECTIVES:
        raise ConfigError(f"--objective {objective!r} is not one of {', '.join(OBJECTIVES)}")
    if objective != "return" and threshold is None:
        raise ConfigError(
            f"--objective {objective}: {base.env_id} has no known threshold; set one with -s reward_threshold=…, or "
            "use --objective return"
        )
    settings = {
        "ref": plan.ref,
        "overrides": list(plan.overrides),
        "objective": objective,
        "threshold": threshold,
        "seeds": plan.seeds,
        "space": [parameter.to_dict() for parameter in space],
    }
    name = plan.name or new_id("sweep")
    return studies.create_study(name, plan.storage, plan.runs_dir, settings, plan.sampler, plan.pruner)
