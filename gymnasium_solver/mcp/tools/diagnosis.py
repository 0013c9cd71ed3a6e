"""What is wrong, and what to change: `diagnose_run recommend_changes inspect_checkpoint get_insights import_run`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gymnasium_solver import api
from gymnasium_solver.api.reading import source_of
from gymnasium_solver.mcp.answers import Answer, short
from gymnasium_solver.mcp.arguments import RunOrGroupId
from gymnasium_solver.mcp.place import Place, next_call
from gymnasium_solver.mcp.quoting import without_commands
from gymnasium_solver.mcp.toolbox import Toolbox


class Diagnosis(Answer):
    summary: dict[str, Any] = Field(description="1. Run, status, steps, rewards, gap to the threshold, verdict.")
    metrics: dict[str, Any] = Field(description="2. Curves: shape in words, range, change point, anomalies.")
    bottlenecks: list[dict[str, Any]] = Field(description="3. Primary first: cause, confidence, evidence, against.")
    recommendations: list[dict[str, Any]] = Field(description="4. Exact changes: `set` goes into overrides.")
    next_steps: Any = Field(description="5. What to do now.")
    outlook: dict[str, Any] | None = Field(description="Of a run in progress: continue, stop or adjust, with odds.")
    missing: Any = Field(description="What was not recorded and so is unknown.")


class Recommendations(Answer):
    run_id: str
    verdict: str
    primary_cause: str | None
    recommendations: list[dict[str, Any]] = Field(description="`set` goes into overrides of apply_and_verify.")
    next_call: str


class Inspection(Answer):
    checkpoint: str
    report: dict[str, Any] = Field(description="Parts, and findings with severity, meaning and remedy.")


class Insights(Answer):
    env_id: str
    report: dict[str, Any] = Field(
        description="`best` configurations, settings `separating` runs, results `over_time`."
    )


class Imported(Answer):
    run_id: str
    library: str | None
    summary: dict[str, Any]
    missing: list[str] = Field(description="What the files did not say.")
    notes: list[str]
    next_call: str


def register(tools: Toolbox, place: Place) -> None:
    @tools.reads
    def diagnose_run(run_id: RunOrGroupId) -> Diagnosis:
        """What is wrong with a run, why, and exactly what to change, in five sections; finished, failed or in progress.
        Of a group: its worst seed. Use it for every question about how a run did. Report causes with their confidence
        and what speaks against them. Next: apply_and_verify with a recommendation's `set`; probe_run if two causes are
        close."""
        with place.reading_telling(run_id) as run:
            document = without_commands(api.diagnose(run), run.config)
            for entry in document["metrics"].values():
                entry.pop("points", None)  # get_run_metrics has the curves
            document, cut = short(document, f"the whole: gsolve diagnose {run.run_id} --json")
            return Diagnosis(
                **{name: document[name] for name in Diagnosis.model_fields if name not in Answer.model_fields},
                truncated=cut,
            )

    @tools.reads
    def recommend_changes(run_id: RunOrGroupId) -> Recommendations:
        """Only the changes a diagnosis advises: config fields (valid by construction), YAML, command, reason, expected
        impact with its source, risk, priority. Next: apply_and_verify proves one over seeds."""
        with place.reading_telling(run_id) as run:
            document = without_commands(api.diagnose(run), run.config)
            advised, cut = short(document["recommendations"], f"the whole: gsolve diagnose {run.run_id} --json")
            causes = document["bottlenecks"]
            change = next((entry["set"] for entry in advised if entry["set"]), None)
            call = (
                f"apply_and_verify(run_id={run.run_id!r}, overrides={change})"
                if change
                else f"no change of settings is recommended: probe_run(run_id={run.run_id!r}) or optimize_config"
            )
            return Recommendations(
                run_id=run.run_id,
                verdict=document["summary"]["verdict"],
                primary_cause=causes[0]["cause"] if causes else None,
                recommendations=advised,
                next_call=call,
                truncated=cut,
            )

    @tools.reads
    def inspect_checkpoint(
        checkpoint: Annotated[str, Field(description="RUN (its best), RUN/@best, RUN/@last or RUN/epoch=N.")],
    ) -> Inspection:
        """Look into a checkpoint: NaN, dead units, optimiser moments, target network, normalisation statistics. Use it
        when a run diverged, collapsed or resumes badly. Refs: list_checkpoints."""
        ref = place.checkpoint(checkpoint)
        report, cut = short(api.inspect(ref, runs_dir=place.runs_dir), f"the whole: gsolve inspect {ref} --json")
        return Inspection(checkpoint=ref, report=report, truncated=cut)

    @tools.reads
    def get_insights(
        env_id: Annotated[str, Field(description="Environment id, e.g. CartPole-v1.")],
        metric: Annotated[
            Literal["frames", "seconds", "return"], Field(description="What runs are judged by.")
        ] = "frames",
    ) -> Insights:
        """What all runs of an environment show together: best configurations over seeds, settings that separate solved
        from failed runs, results over time. Use it before a new search, to know what was tried."""
        with next_call("list_runs for the environments that have runs, or start_training"):
            document = api.insights(env_id, metric=metric, runs_dir=place.runs_dir)
        report, cut = short(document, f"the whole: gsolve insights {env_id} --json")
        return Insights(env_id=env_id, report=report, truncated=cut)

    @tools.starts
    def import_run(
        path: Annotated[str, Field(description="Directory or file of a run of another library.")],
        library: Annotated[
            str | None,
            Field(description="sb3, cleanrl, rllib, tianshou, tensorboard, wandb, csv or json [recognised]."),
        ] = None,
        mapping: Annotated[dict[str, str] | None, Field(description="Our metric → their column.")] = None,
        env_id: Annotated[str | None, Field(description="Where the files do not say.")] = None,
        algo_id: Annotated[str | None, Field(description="Where the files do not say.")] = None,
    ) -> Imported:
        """Bring a run of Stable-Baselines3, CleanRL, RLlib, Tianshou, TensorBoard, W&B or a CSV/JSON log into the runs
        directory; the original is only read. Next: diagnose_run, whose advice is also in the library's own words."""
        options = {"source": library, "mapping": mapping, "env_id": env_id, "algo_id": algo_id}
        given = {name: value for name, value in options.items() if value is not None}
        run = api.import_run(path, runs_dir=place.runs_dir, **given)
        found = source_of(run)
        return Imported(
            run_id=run.run_id,
            library=found.get("library"),
            summary=run.summary(),
            missing=found.get("missing", []),
            notes=found.get("notes", []),
            next_call=f"diagnose_run(run_id={run.run_id!r})",
        )
