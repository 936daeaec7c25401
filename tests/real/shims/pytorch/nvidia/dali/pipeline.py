"""A pipeline that is never built: it knows its batch size and how many files there are."""


class Pipeline:
    """The base of the program's pipelines; ``input`` is the reader that they make."""

    def __init__(self, batch_size, num_threads, device_id, seed=0):
        self.batch_size = batch_size

    def build(self):
        """Nothing."""

    def epoch_size(self, name):
        """How many files the reader found."""
        return self.input.files
