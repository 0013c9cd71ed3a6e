"""From a function to a tool: its schema, its hints, compact answers, and failures as sentences that name a remedy."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from gymnasium_solver.errors import SolverError
from gymnasium_solver.mcp.answers import Answer, as_text, bounded, clipped, rounded
from gymnasium_solver.mcp.quoting import cleaned, with_quotes
from gymnasium_solver.plain import plain
from gymnasium_solver.trust import clean, closed

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
# Whoever starts a process takes cores, disk and time from others, and runs an environment's code.
STARTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
STOPS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

MESSAGE = 1500  # characters of a refusal

Function = Callable[..., Any]


class Toolbox:
    """The tools of a server; one that only reads is given no others."""

    def __init__(self, *, read_only: bool, modules: Sequence[str] = ()) -> None:
        """`modules`: all that may be imported of what runs and requests name."""
        self.read_only, self._modules = read_only, modules
        self.tools: list[Tool] = []

    def reads(self, function: Function) -> Function:
        return self._add(function, READS)

    def starts(self, function: Function) -> Function:
        return function if self.read_only else self._add(function, STARTS)

    def stops(self, function: Function) -> Function:
        return function if self.read_only else self._add(function, STOPS)

    def _add(self, function: Function, hints: ToolAnnotations) -> Function:
        tool = Tool.from_function(
            _answering(function, self._modules), description=inspect.getdoc(function), annotations=hints
        )
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"  # a misspelt argument is an error, not ignored
        arguments.model_rebuild(force=True)
        tool.parameters = _untitled(arguments.model_json_schema(by_alias=True))
        tool.fn_metadata.output_schema = _untitled(tool.fn_metadata.output_schema)
        self.tools.append(tool)
        return function


def _untitled(schema: Any) -> Any:
    """Without the titles pydantic derives from names: they say nothing and every assistant pays for reading them."""
    if isinstance(schema, list):
        return [_untitled(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _untitled(entry) for name, entry in schema.items() if name != "title" or not isinstance(entry, str)}


def _answering(function: Function, modules: Sequence[str]) -> Function:
    """The function with its model as a result of the protocol; it imports no code but of these modules."""

    @functools.wraps(function)
    def call(**arguments: Any) -> CallToolResult:
        try:
            with closed(modules):
                return _result(function(**arguments))
        except (SolverError, OSError) as error:
            raise _failure(error) from error

    @functools.wraps(function)
    async def call_async(**arguments: Any) -> CallToolResult:
        try:
            with closed(modules):
                return _result(await function(**arguments))
        except (SolverError, OSError) as error:
            raise _failure(error) from error

    wrapped: Any = call_async if inspect.iscoroutinefunction(function) else call
    signature = inspect.signature(function, eval_str=True)
    result = Annotated[CallToolResult, signature.return_annotation]
    wrapped.__signature__ = signature.replace(return_annotation=result)
    wrapped.__annotations__ = {name: entry.annotation for name, entry in signature.parameters.items()} | {
        "return": result
    }
    return wrapped


def _result(answer: Answer) -> CallToolResult:
    document = bounded(with_quotes(cleaned(rounded(plain(answer.model_dump(mode="json"))))))
    document["quoted"], document["truncated"] = document.pop("quoted"), document.pop("truncated")  # last
    return CallToolResult(content=[TextContent(type="text", text=as_text(document))], structured_content=document)


def _failure(error: SolverError | OSError) -> ToolError:
    if isinstance(error, SolverError):
        return ToolError(clipped(" ".join(clean(str(error)).split()), MESSAGE))
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return ToolError(
        f"{clipped(clean(what), MESSAGE)}; if that was a run, it may have been deleted meanwhile: call list_runs"
    )
