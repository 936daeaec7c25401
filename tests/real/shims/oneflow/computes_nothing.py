"""Makes a module oneflow that takes every name of OneFlow-Benchmark's and computes nothing.

What describes a network runs once, as OneFlow compiles it, and describes nothing. A step then takes
``STEP_S`` and gives random outputs, of the shapes that the readers' batch size asks for.
"""

import importlib.abc
import importlib.machinery
import random
import sys
import time
import types

import numpy

STEP_S = 0.02
numpy.float = float  # of 2020: a name that GPT's code still knows
_COMPILED_WITHOUT = {"oneflow_gpt": ("loss",)}  # it looks into shapes, which nothing here has
_asked = {"batch_size": 1, "micro_batches": 1}


class _Array(numpy.ndarray):
    """An output: an array that also has the method by which OneFlow's give theirs."""

    def numpy(self):
        return numpy.asarray(self)


class _Anything:
    """A name of OneFlow's, or what comes of calling it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name)

    def __call__(self, *args, **kwargs):
        if self._name == "global_function":
            return _Job
        if "batch_size" in kwargs:  # of a reader
            _asked["batch_size"] = kwargs["batch_size"]
        if self._name == "num_gradient_accumulation_steps":
            _asked["micro_batches"] = args[0]
        return _Anything(self._name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __iter__(self):
        return iter((self, self))  # images and labels

    def __getitem__(self, key):
        return self

    def _itself(self, *others):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _itself
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __pow__ = _itself


class _Job:
    """A function that OneFlow would compile when it is called for the first time."""

    def __init__(self, body):
        self._body = body
        self._outputs = _COMPILED_WITHOUT.get(body.__globals__.get("__package__"))

    def __call__(self, *args):
        if self._outputs is None:
            self._outputs = tuple(self._body(*map(_Anything, args)))
        return self

    def async_get(self, callback):
        """One step, and the callback with its outputs."""
        time.sleep(STEP_S)
        callback({name: self._output(name) for name in self._outputs})

    def _output(self, name):
        batch_size = _asked["batch_size"]
        if name == "predictions":
            values = numpy.random.rand(batch_size, 1000)
        elif name == "labels":
            values = numpy.random.randint(0, 1000, batch_size)
        elif self._outputs == ("loss",):
            values = numpy.full(_asked["micro_batches"], 10 + random.random())
        else:
            values = numpy.full(batch_size, 7 + random.random())
        return values.view(_Array)


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name)


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """oneflow.core.anything can be imported, too."""

    def find_spec(self, name, path, target=None):
        if not name.startswith("oneflow."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def take_over(name):
    """Make the module of that name, and every module below it, one that takes everything."""
    sys.meta_path.insert(0, _Submodules())
    sys.modules[name].__class__ = _Module
