"""Lets NVIDIA's ConvNets train on CPUs, whose convolutions know one order of the axes alone."""

import os
import sys

from after_import import after_import


def _channels_last(tensorflow):
    """The program parses its options after this import."""
    if os.path.basename(sys.argv[0]) == "main.py":
        sys.argv.append("--data_format=NHWC")


after_import("tensorflow", _channels_last)
