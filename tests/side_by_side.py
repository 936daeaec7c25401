"""How workers of pytest-xdist are given tests."""

from xdist.scheduler import LoadFileScheduling

CLUSTERS = 3
"""Virtual clusters at a time: bringing one up and preparing its images takes both processors."""


class ByFile(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Whole files to one worker, and those of the virtual cluster to so many workers only."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if not file.startswith("tests/on_cluster/"):
            return file
        clusters: dict[str, str] = self.__dict__.setdefault("clusters", {})
        return clusters.setdefault(file, f"cluster {len(clusters) % CLUSTERS}")
