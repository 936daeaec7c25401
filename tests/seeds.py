"""What the seeds print of DLPerf's own measurements."""

RN50_AMP = {
    "1x1": (803.69, 793.9, 803.66, 802.4, 802.9),
    "1x4": (3129.63, 3119.23, 3137.44, 3137.67, 3144.55),
    "1x8": (6135.08, 6130.69, 6154.66, 6173.05, 6160.56),
    "2x8": (12046.71, 11896.95, 11991.94, 11999.35, 11964.81),
    "4x8": (22364.13, 22551.16, 22978.13, 23049.75, 22053.98),
}
"""Seed 003, section 3: samples/s of each log, by placement and in the order of the logs' numbers,
as extract_pytorch_logs_time.py printed them for AMP with dynamic loss scale, batch 256."""
