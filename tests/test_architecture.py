"""The rooms of the house: imports point left only, reading a run needs no JAX, nothing is called utils."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gymnasium_solver"
EVERYWHERE = {"errors", "limits", "plain", "processes", "statistics", "trust"}
MAY_IMPORT = {
    "trust": set(),
    "config": set(),
    "ops": set(),
    "metrics": set(),
    "networks": {"ops"},
    "envs": {"config"},
    "data": {"config"},
    "algorithms": {"config", "ops", "networks"},
    "runs": {"config", "metrics"},
    "train": {"config", "ops", "metrics", "envs", "data", "networks", "algorithms", "runs"},
    "diagnose": {"config", "metrics", "runs"},
    "recommend": {"config", "metrics", "runs", "diagnose"},
    "verify": {
        *("config", "ops", "metrics", "networks", "envs", "data", "algorithms", "train", "runs"),
        *("diagnose", "recommend"),
    },
    "integrations": {"config", "metrics", "runs"},
    "api": {"config", "metrics", "envs", "data", "algorithms", "train", "runs", "diagnose", "recommend", "verify"},
    # The front ends parse, call one function of `api`, and render.
    "mcp": {"api"},
    "web": {"api"},
    # The verbs that start the servers import them; nothing else of the command line does.
    "cli": {"api", "metrics", "mcp", "web"},
}
FRONT_ENDS = {"cli", "mcp", "web"}
ROOMS = [name for name in MAY_IMPORT if (PACKAGE / name).is_dir()]


def imports_of(path: Path, *, at_run_time: bool = False) -> set[str]:
    """Absolute module names a file imports, also inside functions; names for types alone are not there at run time."""
    found, tree = set(), ast.parse(path.read_text(encoding="utf-8"))
    if at_run_time:
        tree.body = [node for node in tree.body if not _is_for_types(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_left_only(room: str) -> None:
    allowed = MAY_IMPORT[room] | EVERYWHERE | {room}
    for path in (PACKAGE / room).rglob("*.py"):
        for name in imports_of(path, at_run_time=room in FRONT_ENDS):
            parts = name.split(".")
            if parts[0] == "gymnasium_solver" and parts[1] != "__version__":
                assert parts[1] in allowed, f"{path.relative_to(PACKAGE.parent)} imports {name}"


def test_every_room_is_watched() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert rooms <= set(MAY_IMPORT)


@pytest.mark.parametrize("room", ["config", "metrics", "envs", "runs", "diagnose", "recommend"])
def test_rooms_that_never_name_jax(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        if path.parent != PACKAGE / "envs" / "compiled":
            assert not any(name.split(".")[0] in ("jax", "optax") for name in imports_of(path)), path


@pytest.mark.integration
def test_choosing_an_engine_loads_no_jax() -> None:
    code = (
        "import sys; from gymnasium_solver.config.schema import PPOConfig; "
        "from gymnasium_solver.envs import describe; from gymnasium_solver.envs.compiled import choice; "
        "config = PPOConfig(env_id='CartPole-v1', engine='compiled'); assert choice.obstacle(config) is None; "
        "describe(config); print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_algorithms_see_no_files_clocks_or_logs() -> None:
    forbidden = {"os", "pathlib", "time", "logging", "gymnasium", "datetime", "io", "json"}
    for path in (PACKAGE / "algorithms").glob("*.py"):
        assert not {name.split(".")[0] for name in imports_of(path)} & forbidden, path


def test_processes_are_started_and_stopped_in_one_place() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "processes.py"]
    for path in others:
        assert not {name for name in imports_of(path) if name.split(".")[0] == "subprocess"}, path
        calls = {
            f"os.{node.attr}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        }
        assert not calls & {"os.kill", "os.killpg", "os.fork", "os.spawnv", "os.posix_spawn", "os.waitpid"}, path


# Who imports by a name that is not written into an import statement, and whose name that is.
IMPORTERS = {
    "__init__.py": "our own",
    "algorithms/__init__.py": "that of a card, which is code",
    "cli/main.py": "our own",
    "config/cards/__init__.py": "our own",
    "config/defaults.py": "minigrid",
    "envs/build.py": "the families of environments",
    "envs/native.py": "an entry point that Gymnasium has registered",
    "integrations/stable_baselines3.py": "stable_baselines3",
    "runs/foreign/checkpoints.py": "torch",
    "runs/reader.py": "our own",
    "train/learner.py": "that of a card, which is code",
    "trust/gate.py": "any, if it may be",
    "verify/compliance/functions.py": "torch",
    "verify/worker.py": "our own",
}
IMPORTING = {
    "import_module",
    "__import__",
    "spec_from_file_location",
    "exec_module",
    "load_env_creator",
    "exec",
    "eval",
}


def test_code_that_text_names_is_imported_in_one_place() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if IMPORTING & {getattr(call, "id", getattr(call, "attr", "")) for call in calls}:
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == set(IMPORTERS), "go through gymnasium_solver.trust"


@pytest.mark.integration
def test_reading_a_run_loads_no_jax_and_no_gymnasium() -> None:
    code = (
        "import sys; import gymnasium_solver, gymnasium_solver.runs.reader, gymnasium_solver.runs.report, "
        "gymnasium_solver.metrics.catalogue, gymnasium_solver.config.schema, gymnasium_solver.cli.main, "
        "gymnasium_solver.recommend.diagnosis, gymnasium_solver.recommend.text, gymnasium_solver.runs.foreign, "
        "gymnasium_solver.verify.comparison.document, gymnasium_solver.verify.comparison.text; "
        "print([m for m in ('jax', 'gymnasium', 'matplotlib', 'optax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_room_without_a_name() -> None:
    vague = {"utils", "util", "common", "helpers", "helper", "misc"}
    assert not [p for p in PACKAGE.rglob("*.py") if p.stem in vague or vague & set(p.parent.parts)]


# Where an algorithm is meant by its name, and why.
NAMED = {
    "config/cards": "where an algorithm says what it is",
    "runs/foreign": "what other libraries call theirs",
    "verify/compliance": "there is a reference for this one",
    "api/measuring.py": "the same, as a verb",
    "mcp/tools/experiments.py": "the same, as a tool",
}


def strings_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_other_file_knows_an_algorithm_by_name() -> None:
    from gymnasium_solver.config.cards import names

    found = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(tuple(NAMED)) and (known := strings_of(path) & set(names())):
            found[place] = known
    assert not found, "ask the card: its family, a trait, a config field"
    for place in NAMED:
        assert any(
            strings_of(path) & set(names())
            for path in [PACKAGE / place, *(PACKAGE / place).rglob("*.py")]
            if path.is_file()
        ), f"{place} names none any more"


def test_the_loop_is_short_and_asks_no_config_what_class_it_is() -> None:
    """A new kind of training is a new part, not a branch."""
    for path in (PACKAGE / "train").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 250, f"{path.name} is too long to be read in one sitting"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                assert "Config" not in ast.unparse(node.args[1]), f"{path.name}: {ast.unparse(node)}"
