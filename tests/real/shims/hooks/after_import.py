"""Lets code run once, right after a module was imported for the first time."""

import importlib.abc
import importlib.util
import sys


class _Once(importlib.abc.MetaPathFinder):
    def __init__(self, name, action):
        self._name = name
        self._action = action

    def find_spec(self, name, path, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)  # the others find the module itself
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_act(module):
            execute(module)
            self._action(module)

        spec.loader.exec_module = execute_and_act
        return spec


def after_import(name, action):
    """Call ``action`` with the module of that name once it is there."""
    sys.meta_path.insert(0, _Once(name, action))
