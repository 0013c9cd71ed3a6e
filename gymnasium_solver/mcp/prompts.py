"""Common questions, with the order of investigation."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

SECTIONS = (
    "Answer in five sections: run summary; key metrics; diagnosed bottlenecks (primary first, with evidence, "
    "confidence and what speaks against it); recommendations (exact YAML, expected impact with its source, risk); "
    "next steps. Claim no more than the seeds allow."
)


def register(server: MCPServer) -> None:
    @server.prompt()
    def why_does_it_not_learn(run_id: str = "@last") -> str:
        """Why does my run not learn, and what do I change?"""
        return (
            f"Find out why the run {run_id} does not learn. Call diagnose_run first. If it failed or crashed, read "
            "get_run_logs; if it diverged, inspect_checkpoint. Look at the curves the primary cause points to with "
            "get_run_metrics. If two causes are close, start probe_run and follow it with get_job_status. Then offer "
            f"to prove the first recommendation with apply_and_verify. {SECTIONS}"
        )

    @server.prompt()
    def make_it_faster(run_id: str = "@last") -> str:
        """Reach the threshold in fewer steps or seconds."""
        return (
            f"Make the run {run_id} reach its threshold sooner. Call get_run_info and diagnose_run. If steps are the "
            "trouble: recommend_changes, then apply_and_verify, or optimize_config when one change is not enough. If "
            "seconds are: profile_config with its configuration. Look at get_insights for what was tried before. "
            f"Report the measured difference with its interval. {SECTIONS}"
        )

    @server.prompt()
    def compare_two_runs(first: str, second: str) -> str:
        """Which of two runs or groups of seeds is better, and why?"""
        return (
            f"Compare {first} with {second}. Call compare_runs with both. Report its verdict word for word, then the "
            "config differences with their assessments, then what the losses and gradients add. With fewer than five "
            "seeds per side say so, and offer apply_and_verify or start_training with seeds=5."
        )

    @server.prompt()
    def watch_my_training(run_id: str = "@last") -> str:
        """Continue, stop, or change a training that is in progress?"""
        return (
            f"Say whether the training {run_id} should continue. Call get_training_status, then diagnose_run: "
            "`outlook` has the action and the odds of reaching the threshold. Advise stop_training only with its "
            "evidence, and ask before you call it."
        )

    @server.prompt()
    def solve_this(env_id: str) -> str:
        """From an environment to a policy that passes."""
        return (
            f"Get to a policy that solves {env_id}. Call list_variants; get_insights if there are runs already. Start "
            "solve_environment and follow it with get_job_status until it is not running. When it is solved, call "
            "score_run on the run it names. Report the history, the configuration and the score card."
        )

    @server.prompt()
    def is_it_done(run_id: str = "@last") -> str:
        """Is this policy good enough to use?"""
        return (
            f"Judge the policy of {run_id}. Call get_run_info, inspect_checkpoint and score_run (a job). Report "
            "each figure of the score card against its target with its interval, and what is not known."
        )
