"""What can go wrong while training, as types to catch or filter."""


class ReclustWarning(UserWarning):
    """Something about a fit that its user should know. Every warning of this package is one."""


class TrainingFailed(RuntimeError):
    """No replica is left whose loss is a number."""


class StopTraining(Exception):
    """A monitor may raise this at the end of an epoch: the checkpoint is written, and training ends with this exception."""


def first_line(error: BaseException) -> str:
    """What an error says, without what it adds."""
    return next(iter(str(error).splitlines()), type(error).__name__)
