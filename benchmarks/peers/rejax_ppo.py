"""rejax's PPO on gymnax's CartPole, environment included in one compiled program; output as peers.sb3.

The settings are rejax's own for this environment. Only CartPole: gymnax has neither Box2D nor MuJoCo.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from typing import Any

import jax
from rejax import PPO

EPISODES, SOLVED_AT = 20, 475.0
N_ENVS, N_STEPS = 5, 100
SETTINGS = {
    "agent_kwargs": {"activation": "tanh"},
    "num_envs": N_ENVS,
    "num_steps": N_STEPS,
    "num_epochs": 5,
    "num_minibatches": 5,
    "learning_rate": 0.00075,
    "max_grad_norm": 0.5,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_eps": 0.2,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
}
CALL = 10  # rollouts in one compiled call: few enough to notice the solution early, many enough to hide the call


def main() -> None:
    parser = argparse.ArgumentParser(description="rejax PPO on CartPole")
    parser.add_argument("--task", choices=["cartpole"], required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="measure throughput over this many env steps; default: until solved")
    parser.add_argument("--max-seconds", type=float, default=240.0)
    arguments = parser.parse_args()

    agent = PPO.create(env="CartPole-v1", **SETTINGS)

    @jax.jit
    def rollouts(state: Any) -> tuple[Any, Any]:
        def one(state: Any, _: None) -> tuple[Any, Any]:
            state = agent.train_iteration(state)
            return state, state.env_state.time  # steps since the last reset, for each environment

        return jax.lax.scan(one, state, None, length=CALL)

    started = time.perf_counter()
    state = jax.jit(agent.init_state)(jax.random.PRNGKey(arguments.seed))
    # CartPole pays 1 per step, so an episode's return is its length: what the time since the last reset fell short of
    # growing by. Several ends in one rollout count as one long episode, in the peer's favour; near 475 there is one.
    returns: deque[int] = deque(maxlen=EPISODES)
    times = [0] * N_ENVS
    env_steps, solved, warm = 0, False, None
    while not solved and time.perf_counter() - started < arguments.max_seconds:
        state, history = rollouts(state)
        for times_now in history.tolist():
            env_steps += N_ENVS * N_STEPS
            lengths = [before + N_STEPS - now for before, now in zip(times, times_now, strict=True)]
            returns.extend(length for length in lengths if length > 0)
            times = times_now
            if arguments.steps is None and len(returns) == EPISODES and sum(returns) / EPISODES >= SOLVED_AT:
                solved = True
                break
        warm = warm or (time.perf_counter(), env_steps)
        if arguments.steps and env_steps >= arguments.steps:
            break
    seconds = time.perf_counter() - started
    result = {
        "env_steps": env_steps,
        "train_seconds": round(seconds, 3),
        "steps_per_second": round(env_steps / seconds, 1),
        "solved": solved,
        "paused_seconds": 0.0,
    }
    if warm and env_steps > warm[1]:
        result["warm_steps_per_second"] = round((env_steps - warm[1]) / (started + seconds - warm[0]), 1)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
