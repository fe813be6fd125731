"""Several processes on this machine, one group each at a time."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from ...utils.device import choose_device
from ...utils.values import check_int, value
from ..execute import (
    Asked,
    Attempt,
    Conditions,
    Failed,
    Stopped,
    Tick,
    attempt,
    attempt_pretraining,
    over,
)
from ..study import Group, Pretraining
from .base import Attempts, missing_pretraining

POLL = 0.5
"""Seconds between two looks at the clock and at Ctrl-C."""

Task = Pretraining | Group


@value
class Processes:
    """`count` workers. One that is killed, for want of memory perhaps, takes nothing along: another goes on with its task from
    the last checkpoint, `retries` times."""

    count: int = 2
    retries: int = 2

    def __post_init__(self) -> None:
        check_int("The number of worker processes", self.count, 1)

    def where(self, conditions: Conditions) -> str:
        return f"{choose_device(conditions.device)} by {self.count} processes"

    def ordered(self, groups: Sequence[Group]) -> list[Group]:
        return sorted(groups, key=lambda group: -group.cost)

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: Asked, tick: Tick) -> Attempts:
        threads = conditions.threads or max(1, torch.get_num_threads() // self.count)
        pool = _Pool(self, replace(conditions, threads=threads), [*missing_pretraining(groups, conditions), *groups])
        try:
            while pool.todo or pool.running:
                if stop() or over(conditions):
                    pool.wind_up()
                pool.start_what_can()
                for task, made in pool.ended():
                    if not isinstance(made, Stopped):
                        tick(task.cost, task.dataset)
                    if isinstance(task, Group):
                        yield task, made
                    elif isinstance(made, Failed):
                        for group in pool.take_dependent(task):
                            yield group, made
        finally:
            pool.end()


class _Pool:
    """The tasks still to do and the processes at work."""

    def __init__(self, backend: Processes, conditions: Conditions, todo: Sequence[Task]) -> None:
        self.backend, self.conditions, self.todo = backend, conditions, list(todo)
        self.context = multiprocessing.get_context("spawn")
        self.asked = self.context.Event()
        self.idle: list[_Worker] = []
        self.running: list[tuple[_Worker, Task]] = []
        self.deaths: Counter[str] = Counter()

    def start_what_can(self) -> None:
        begun = [task for _, task in self.running]
        blocked = {task.key for task in (*self.todo, *begun) if isinstance(task, Pretraining)}
        for task in list(self.todo):
            if len(self.running) == self.backend.count:
                return
            if isinstance(task, Pretraining) or task.pretraining is None or task.pretraining.key not in blocked:
                self.todo.remove(task)
                self.running.append((self._given(task), task))

    def _given(self, task: Task) -> _Worker:
        """A worker that has this task now; idle ones may have been killed."""
        while self.idle:
            worker = self.idle.pop()
            try:
                worker.line.send(task)
                return worker
            except (BrokenPipeError, ConnectionResetError):
                worker.process.join()
        worker = self._hire()
        worker.line.send(task)
        return worker

    def _hire(self) -> _Worker:
        here, there = self.context.Pipe()
        process = self.context.Process(target=_work, args=(there, self.asked, self.conditions), daemon=True)
        process.start()
        there.close()  # so that the death of the worker is the end of the line
        return _Worker(process, here)

    def ended(self) -> Iterator[tuple[Task, Any]]:
        """Tasks that ended, after a short wait, with what came of each; those whose worker died are put back first."""
        ready = wait([worker.line for worker, _ in self.running], timeout=POLL)
        for worker, task in [(worker, task) for worker, task in self.running if worker.line in ready]:
            self.running.remove((worker, task))
            try:
                made = worker.line.recv()
                self.idle.append(worker)
            except (EOFError, ConnectionResetError):
                worker.process.join()
                made = self._death_at(task)
            if made is not None:
                yield task, made

    def _death_at(self, task: Task) -> Attempt | None:
        self.deaths[task.key] += 1
        if self.asked.is_set():
            return Stopped()
        if self.deaths[task.key] > self.backend.retries:
            return Failed(f"The worker died {self.deaths[task.key]} times: it was killed, or ran out of memory.")
        self.todo.insert(0, task)
        return None

    def take_dependent(self, pretraining: Pretraining) -> list[Group]:
        taken = [task for task in self.todo
                 if isinstance(task, Group) and task.pretraining is not None and task.pretraining.key == pretraining.key]
        self.todo = [task for task in self.todo if task not in taken]
        return taken

    def wind_up(self) -> None:
        """Start nothing more, and let what runs write its checkpoints."""
        self.asked.set()
        self.todo.clear()

    def end(self) -> None:
        for worker in (*self.idle, *(worker for worker, _ in self.running)):
            worker.process.kill()
            worker.process.join()


@dataclass(frozen=True)
class _Worker:
    process: BaseProcess
    line: Connection


def _work(line: Connection, asked: Any, conditions: Conditions) -> None:
    """A worker's life: tasks come in, what came of them goes out."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they reach all processes of a terminal or job; the parent passes them on
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def stop() -> bool:
        return asked.is_set() or (parent is not None and not parent.is_alive())

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent was killed: what it began ends with it
        while True:
            task = line.recv()
            work = attempt if isinstance(task, Group) else attempt_pretraining
            line.send(work(task, conditions, stop=stop))
