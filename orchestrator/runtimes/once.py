"""What is asked for once, by the first that needs it, while others wait."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """What ``make`` returns, made at the first use; what it raises is not kept.

    Python 3.11's ``cached_property`` has one lock for all objects, so that a node that is silent
    would hold up every other one; that of later versions has none.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: tuple[T, ...] = ()

    def get(self) -> T:
        """The thing.

        Raises:
            Exception: what making it raised.
        """
        with self._lock:
            if not self._made:
                self._made = (self._make(),)
            return self._made[0]
