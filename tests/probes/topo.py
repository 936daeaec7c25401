"""Tables of `nvidia-smi topo -m`, written by hand."""

# Written as drivers 5xx print it: tabs, two of them before the GPU NUMA ID, but one in the titles.
TABLE = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPIX\tSYS\t0-7,16-23\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tPIX\t8-15,24-31\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
# The same node on a driver 4xx: no NUMA columns, the HCAs by name.
OLD_TABLE = """\
\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity
GPU0\t X \tNV2\tPIX\tSYS\t0-7,16-23
GPU1\tNV2\t X \tSYS\tPIX\t8-15,24-31
mlx5_0\tPIX\tSYS\t X \tSYS\t
mlx5_1\tSYS\tPIX\tSYS\t X \t
"""
