"""The answers' shapes, for the OpenAPI description. What is open in nature (a config, a diagnosis) is left open."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Document(BaseModel):
    model_config = ConfigDict(extra="allow")


class Problem(BaseModel):
    error: str = Field(description="What is wrong, in a sentence.")
    next: str = Field(description="What to do about it.")


class Health(BaseModel):
    name: str
    version: str
    runs_dir: str
    read_only: bool


class Summary(Document):
    run_id: str
    env_id: str | None
    algo_id: str | None
    status: str
    seed: int | None
    clock: str | None = Field(description="What progress and budget count: env_steps or updates.")
    progress: int | None
    budget: float | None
    env_steps: int | None
    max_env_steps: float | None
    best_reward: float | None
    last_reward: float | None
    threshold: float | None
    solved: bool
    duration_s: float | None
    started_at: str | None
    group: str | None


class ListedRun(Summary):
    sparkline: list[float | None] = Field(description="The reward in at most 40 points.")


class RunList(BaseModel):
    total: int
    limit: int
    offset: int
    runs: list[ListedRun]
    notice: str | None = None
    is_experiment: bool = Field(description="Whether /api/experiments has the group that was asked for.")


class RunDetails(BaseModel):
    summary: Summary
    config: dict[str, Any]
    environment: dict[str, Any]
    checkpoints: list[str]
    metrics: list[str] = Field(description="Names of the columns of metrics.csv.")
    group: str | None
    files: list[str] = Field(description="What /files/ serves of this run.")


class Curve(BaseModel):
    steps: list[float] = Field(description="On the run's clock.")
    values: list[float]
    total: int = Field(description="Values in the range, before any were left out.")
    downsampled: bool


class Metrics(BaseModel):
    run_id: str
    clock: str = Field(description="What steps count: env_steps, or updates where there is no environment.")
    series: dict[str, Curve]
    missing: list[str] = Field(description="Names that this run has not recorded.")
    exact: bool = Field(description="False while a large file is still being read: then peaks may be missing.")
    notice: str | None = None


class Log(BaseModel):
    lines: list[str]
    next: int = Field(description="Give it as `after` to get what is written from here on.")
    notice: str | None = None


class Episode(BaseModel):
    run_id: str
    checkpoint: str
    frames: list[str | None] | None = Field(
        description="One data URL per step, null where one was left out; null if nothing can be drawn."
    )
    actions: list[Any]
    rewards: list[float | None]
    values: list[float | None] = Field(description="Estimated value of the state before each action.")
    total_reward: float | None = Field(alias="return", description="Sum of all rewards.")
    length: int
    ended: bool = Field(description="False if it was cut off at the longest that is played.")
    notice: str | None = None


class Checkpoint(Document):
    name: str
    bytes: int | None
    progress: dict[str, Any] = Field(description="How far the training was: epoch, env_steps, best_eval …")


class Diagnosis(Document):
    summary: dict[str, Any]
    metrics: Any
    bottlenecks: list[dict[str, Any]]
    recommendations: list[dict[str, Any]]
    next_steps: Any
    outlook: Any
    missing: Any


class Comparison(Document):
    env_id: str | None
    baseline: str
    verdict: Any
    sides: list[dict[str, Any]]


class Stopped(Document):
    status: str
    was_running: bool


class Start(BaseModel):
    model_config = ConfigDict(extra="forbid")

    config_id: str = Field(description="ENV:VARIANT", min_length=1, max_length=300)
    overrides: dict[str, Any] = Field(default_factory=dict, description="Config fields to change.", max_length=100)
    max_env_steps: int | None = Field(default=None, ge=1, le=10**12)
    seeds: int = Field(default=1, ge=1, le=64, description="How many seeds to train, as a group.")


class Started(BaseModel):
    run_id: str = Field(description="Of many seeds, the id of their group.")
    group: str | None


class ConfigEntry(BaseModel):
    config_id: str
    env_id: str
    variant: str = Field(description="Empty for a file that cannot be read.")
    file: str
    problem: str | None = Field(None, description="What is wrong with a file that cannot be read, in a sentence.")


class Configuration(BaseModel):
    config_id: str
    config: dict[str, Any]
    yaml: str


class MetricEntry(BaseModel):
    name: str
    unit: str
    meaning: str
    low: float | None
    high: float | None
    source: str | None


class Catalogue(BaseModel):
    metrics: list[MetricEntry] = Field(description="A name that ends with * stands for all that start with it.")


class Experiment(Document):
    experiment: str
    kind: str | None
    status: str | None


class ExperimentList(BaseModel):
    total: int
    experiments: list[Experiment]
