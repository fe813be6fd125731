"""Pickles read as data: a small stack machine that knows containers, numbers, texts, numeric arrays, and calls nothing.

`pickle.Unpickler` with a filter would still run NumPy's constructors on a stranger's arguments and could be made to ask
for any amount of memory. Here a file is a list of instructions to be looked at, and any that is not needed for the
archives of CIFAR is an error.
"""

from __future__ import annotations

import math
import pickletools
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, reading

_RECONSTRUCT = {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "BINFLOAT"),
    *("SHORT_BINSTRING", "BINSTRING", "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES"),
}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Name(NamedTuple):
    """An imported name, which is never imported."""

    dotted: str


class _Array:
    """An array under construction; `value` is there once its state has come."""

    value: NDArray[Any] | None = None


class _DType:
    def __init__(self, code: str) -> None:
        self.code, self.order = code, "|"


def load_plain(content: bytes | memoryview, where: str) -> Any:
    """The object in a pickle of dicts, lists, tuples, texts, numbers and numeric arrays; `where` names it in errors."""
    with reading(where):
        return _Machine(where).run(bytes(content))


class _Machine:
    def __init__(self, where: str) -> None:
        self.where = where
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name == "STOP":
                break
            self.step(opcode.name, argument)
        if len(self.stack) != 1:
            raise DataError(f"{self.where} is corrupt: {len(self.stack)} objects are left where one should be.")
        return _finished(self.stack[0])

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in _TUPLES:
            stack.append(tuple(self.popped(_TUPLES[name])))
        elif name == "TUPLE":
            stack.append(tuple(self.marked()))
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append([] if name == "EMPTY_LIST" else {})
        elif name in ("APPEND", "APPENDS"):
            items = self.popped(1) if name == "APPEND" else self.marked()
            self.top(list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self.popped(2) if name == "SETITEM" else self.marked()
            self.top(dict).update((self.key(k), v) for k, v in zip(items[::2], items[1::2], strict=True))
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            stack.append(_Name(argument or " ".join(self.popped(2))))
        elif name == "REDUCE":
            called, arguments = self.popped(2)
            stack.append(self.call(called, arguments))
        elif name == "BUILD":
            self.build(self.popped(1)[0])
        elif name not in ("PROTO", "FRAME"):
            raise DataError(
                f"{self.where} is refused: it asks for {name}, and only plain containers and arrays are read."
            )

    def call(self, called: Any, arguments: Any) -> Any:
        """The few calls that stand for values: a new array, a dtype, bytes as older protocols write them."""
        match called, arguments:
            case _Name(dotted), (_Name("numpy ndarray"), _, _) if dotted in _RECONSTRUCT:
                return _Array()
            case _Name("numpy dtype"), (str(code), *_) if re.fullmatch("[biuf][1248]", code):
                return _DType(code)
            case _Name("_codecs encode"), (str(text), "latin1"):
                return text.encode("latin1")
        name = called.dotted.replace(" ", ".") if isinstance(called, _Name) else repr(type(called))
        raise DataError(f"{self.where} is refused: it calls {name}, and only plain containers and arrays are read.")

    def build(self, state: Any) -> None:
        match self.stack[-1], state:
            case _DType() as dtype, (int(), str(order), *_) if order in "<>|=":
                dtype.order = order
            case _Array() as array, (int(), tuple(shape), _DType() as dtype, fortran, (bytes() | str()) as data):
                raw = data.encode("latin1") if isinstance(data, str) else data
                kind = np.dtype(dtype.order + dtype.code)
                if any(type(side) is not int or side < 0 for side in shape) or math.prod(shape) * kind.itemsize != len(
                    raw
                ):
                    raise DataError(f"{self.where} is corrupt: an array of shape {shape} {kind} has {len(raw)} bytes.")
                array.value = np.frombuffer(raw, kind).reshape(shape, order="F" if fortran else "C")
            case _:
                raise DataError(f"{self.where} is refused: it sets the state of something that is not a numeric array.")

    def key(self, key: Any) -> str | int:
        text = key.decode("latin1") if isinstance(key, bytes) else key
        if type(text) is not str and type(text) is not int:
            raise DataError(f"{self.where} is refused: a dict in it has a key of type {type(key).__name__}.")
        return text

    def top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise DataError(
                f"{self.where} is corrupt: it fills a {type(self.stack[-1]).__name__} as if it were a {kind.__name__}."
            )
        return self.stack[-1]

    def marked(self) -> list[Any]:
        return self.popped(len(self.stack) - self.marks.pop())

    def popped(self, count: int) -> list[Any]:
        if not 0 <= count <= len(self.stack):
            raise DataError(f"{self.where} is corrupt: it takes {count} objects where {len(self.stack)} are.")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items


def _finished(thing: Any) -> Any:
    """Arrays in place of their stand-ins, in the object or, where it is a dict, its values: as deep as CIFAR goes."""
    if isinstance(thing, dict):
        return {key: value.value if isinstance(value, _Array) else value for key, value in thing.items()}
    return thing.value if isinstance(thing, _Array) else thing
