"""Batches that are made up once and served again and again."""

import torch


class DALIClassificationIterator:
    """As many batches as the files of an epoch make."""

    def __init__(self, pipe, size):
        self._batch_size = pipe.batch_size
        self._batches = -(-size // pipe.batch_size)

    def __iter__(self):
        data = torch.randn(self._batch_size, 3, 224, 224)
        label = torch.randint(0, 1000, (self._batch_size, 1))
        for _ in range(self._batches):
            yield [{"data": data, "label": label}]

    def reset(self):
        """Nothing: each iteration begins anew."""
