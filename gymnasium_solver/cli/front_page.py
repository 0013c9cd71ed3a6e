"""What `gsolve` shows of itself: alone, the way in; with --help, every verb by what it is for."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from typer.core import TyperGroup

GROUPS = {
    "Train": ("train", "watch", "status", "stop", "envs", "config"),
    "Look at runs": ("runs", "show", "logs", "report", "checkpoints", "inspect", "evaluate", "play", "import"),
    "Find out what is wrong": ("diagnose", "compare", "insights", "noise-scale", "profile", "validate"),
    "Make it better, and prove it": ("verify", "optimize", "solve", "sweep", "score", "regress"),
    "Other ways in": ("serve", "mcp"),
}
START = """\
Trains reinforcement-learning agents, says what is wrong with a run, and proves
what helps.

Start with:
  gsolve train CartPole-v1:ppo   train an agent; takes a few seconds
  gsolve diagnose @last          what is wrong with it, and what to change
  gsolve optimize @last          a better configuration, proven over seeds
"""


def start_page() -> str:
    """Fits a terminal of 80 columns and 24 lines."""
    width = max(map(len, GROUPS))
    verbs = []
    for title, names in GROUPS.items():
        first, *rest = wrap(" ".join(names), 76 - width, break_on_hyphens=False)
        verbs += [f"  {title:<{width}}  {first}", *(f"  {'':<{width}}  {line}" for line in rest)]
    more = "gsolve --help says what each verb does, gsolve VERB --help how it is used."
    return "\n".join([START, "Verbs:", *verbs, "", more])


class Verbs(TyperGroup):
    """Its help lists the verbs in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        limit = formatter.width - 6 - max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in names])
