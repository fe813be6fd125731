"""Interface of backends, and those that compute on this machine: in this process or in several."""

import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, Protocol

import torch

from ...utils.device import choose_device
from ...utils.values import integer, value
from .. import execute
from ..execute import Attempt, Conditions, Failed, Stopped, StopRequested, Task, Tick
from ..study import Group, Pretraining

POLL_SECONDS = 0.5
Attempts = Iterator[tuple[Group, Attempt]]


class Backend(Protocol):
    def where(self, conditions: Conditions) -> str:
        """Describe the place; raise if it is not available."""

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: StopRequested,
                 tick: Tick) -> Attempts:
        """Yield groups and their outcomes as they arrive; skip groups that were not started."""


@value
class InProcess:
    """Computes one group after another, the cheapest first, so that tables fill early."""

    def where(self, conditions: Conditions) -> str:
        return str(choose_device(conditions.device))

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: StopRequested,
                 tick: Tick) -> Attempts:
        failed: dict[str, Failed] = {}
        for group in sorted(groups, key=lambda group: group.cost):
            if stop() or conditions.out_of_time:
                return
            attempt: Attempt | None = None
            for start in missing_pretraining([group], conditions):
                attempt = failed.get(start.key) or execute.attempt(
                    start, conditions, stop=stop, tick=tick)
                if isinstance(attempt, Failed):
                    failed[start.key] = attempt  # for all groups that start from it
            if not isinstance(attempt, Failed | Stopped):
                attempt = execute.attempt(group, conditions, stop=stop, tick=tick)
            yield group, attempt
            if isinstance(attempt, Stopped):
                return


def missing_pretraining(groups: Iterable[Group], conditions: Conditions) -> list[Pretraining]:
    shared = {group.pretraining.key: group.pretraining for group in groups
              if group.pretraining is not None}
    return [start for start in shared.values()
            if not execute.pretrained_path(start, conditions).is_file()]


@value
class Processes:
    """Computes in worker processes; another one continues the task of a killed worker."""

    count: int = integer(default=2, least=1)
    retries: int = integer(default=2)  # of a task whose worker was killed

    def where(self, conditions: Conditions) -> str:
        return f"{choose_device(conditions.device)} by {self.count} processes"

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: StopRequested,
                 tick: Tick) -> Attempts:
        threads = conditions.threads or max(1, torch.get_num_threads() // self.count)
        tasks: list[Task] = [*missing_pretraining(groups, conditions),
                             *sorted(groups, key=lambda group: -group.cost)]
        pool = _Pool(self, replace(conditions, threads=threads), tasks)
        try:
            while pool.tasks or pool.running:
                if stop() or conditions.out_of_time:
                    pool.stop.set()  # running tasks write their checkpoints
                    pool.tasks.clear()
                pool.start_tasks()
                for task, attempt in pool.wait():
                    if not isinstance(attempt, Stopped):
                        tick(task.cost, task.dataset)
                    if isinstance(task, Group):
                        yield task, attempt
                    elif isinstance(attempt, Failed):
                        for group in pool.remove_dependent(task):
                            yield group, attempt
        finally:
            pool.close()


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class _Pool:
    def __init__(self, backend: Processes, conditions: Conditions, tasks: Sequence[Task]) -> None:
        self.backend, self.conditions, self.tasks = backend, conditions, list(tasks)
        self.context = multiprocessing.get_context("spawn")
        self.stop = self.context.Event()
        self.idle: list[_Worker] = []
        self.running: list[tuple[_Worker, Task]] = []
        self.deaths: Counter[str] = Counter()

    def start_tasks(self) -> None:
        unfinished = (*self.tasks, *(task for _, task in self.running))
        blocked = {task.key for task in unfinished if isinstance(task, Pretraining)}
        for task in list(self.tasks):
            if len(self.running) == self.backend.count:
                return
            start = None if isinstance(task, Pretraining) else task.pretraining
            if start is None or start.key not in blocked:
                self.tasks.remove(task)
                self.running.append((self._assign(task), task))

    def _assign(self, task: Task) -> _Worker:
        while self.idle:
            worker = self.idle.pop()
            try:
                worker.pipe.send(task)
                return worker
            except (BrokenPipeError, ConnectionResetError):  # it was killed while idle
                worker.process.join()
        worker = self._start_worker()
        worker.pipe.send(task)
        return worker

    def _start_worker(self) -> _Worker:
        here, there = self.context.Pipe()
        arguments = (there, self.stop, self.conditions)
        process = self.context.Process(target=_work, args=arguments, daemon=True)
        process.start()
        there.close()  # so that the pipe ends when the worker dies
        return _Worker(process, here)

    def wait(self) -> Iterator[tuple[Task, Any]]:
        """Wait briefly, and yield the tasks that ended with their results."""
        ready = wait([worker.pipe for worker, _ in self.running], timeout=POLL_SECONDS)
        for worker, task in [pair for pair in self.running if pair[0].pipe in ready]:
            self.running.remove((worker, task))
            try:
                attempt = worker.pipe.recv()
                self.idle.append(worker)
            except (EOFError, ConnectionResetError):
                worker.process.join()
                self.deaths[task.key] += 1
                if self.deaths[task.key] <= self.backend.retries and not self.stop.is_set():
                    self.tasks.insert(0, task)
                    continue
                attempt = Stopped() if self.stop.is_set() else Failed(
                    f"The worker died {self.deaths[task.key]} times, perhaps for lack of memory.")
            yield task, attempt

    def remove_dependent(self, pretraining: Pretraining) -> list[Group]:
        removed = [task for task in self.tasks if isinstance(task, Group)
                   and task.pretraining is not None and task.pretraining.key == pretraining.key]
        self.tasks = [task for task in self.tasks if task not in removed]
        return removed

    def close(self) -> None:
        for worker in (*self.idle, *(worker for worker, _ in self.running)):
            worker.process.kill()
            worker.process.join()


def _work(pipe: Connection, stop_event: Any, conditions: Conditions) -> None:
    """Receive tasks and send their results, until the parent process ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all processes; the parent handles them
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def stop() -> bool:
        return stop_event.is_set() or (parent is not None and not parent.is_alive())

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent was killed
        while True:
            pipe.send(execute.attempt(pipe.recv(), conditions, stop=stop))
