"""When a training is evaluated, which policy is kept as the best, and when a solution counts."""

from __future__ import annotations

from collections.abc import Callable

from gymnasium_solver.config.schema import Config
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.train.books import Books
from gymnasium_solver.train.checkpoint import from_arrays
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.train.parts import Judge, Numbers
from gymnasium_solver.train.progress import Progress

_RECENT = 20  # training episodes whose mean at the threshold calls for an evaluation


class Evaluations:
    def __init__(self, config: Config, judge: Judge, every: int) -> None:
        """`every`: epochs between evaluations, unless the config says."""
        self.config, self.judge, self._every = config, judge, config.eval_freq_epochs or every

    def is_due(self, progress: Progress, done: int) -> bool:
        """`done`: on the config's clock."""
        threshold, since = self.config.reward_threshold, progress.epoch - progress.last_eval_epoch
        if since >= self._every or done >= self.config.budget:
            return True
        recent = progress.recent_mean(_RECENT)
        promising = not progress.solved and threshold is not None and recent is not None and recent >= threshold
        return promising and since >= max(1, self._every // 4)

    def evaluate(
        self, learner: Learner, progress: Progress, books: Books, done: int, hp: Numbers, stop: Callable[[], bool]
    ) -> Numbers:
        """Evaluate; keep the best; confirm a solution, or the final best, on episodes it was not chosen by."""
        threshold = self.config.reward_threshold
        evaluation = self.judge.evaluate(learner.actor, "evaluation", progress.epoch, hp, stop)
        metrics: Numbers = evaluation.metrics("val/roll")
        is_best = progress.best_eval is None or evaluation.mean > progress.best_eval
        if threshold is not None and evaluation.mean >= threshold and not progress.solved:
            confirmation = self.judge.evaluate(learner.actor, "confirmation", progress.epoch, hp, stop)
            progress.solved = confirmation.mean >= threshold
            metrics |= confirmation.metrics("test/roll")
        if is_best:  # not before: an evaluation that is stopped in its confirmation is made again, and saves its best
            progress.best_eval = evaluation.mean
            books.checkpoint(["best"], learner.snapshot(to_go_on=False))
        if done >= self.config.budget and not progress.solved:
            arrays, _ = Run(books.writer.path).read_checkpoint("best")
            best = learner.algorithm.actor(from_arrays(learner.state, arrays, "best"))
            final = self.judge.evaluate(best, "final", progress.epoch, hp, stop)
            progress.solved = threshold is not None and final.mean >= threshold
            metrics |= final.metrics("test/roll")
        progress.last_eval_epoch = progress.epoch
        books.emit(
            "evaluated",
            ep_rew_mean=evaluation.mean,
            ep_len_mean=evaluation.length_mean,
            **progress.clock._asdict(),
            best=is_best,
            solved=progress.solved,
        )
        return metrics
