"""Xids: what the driver's error numbers mean, and what NVIDIA asks for.

Source: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (numbers to 172, immediate actions).
It names no action for 162 to 172: 167, 169, 171 and 172 are treated as 158, 62 and 48, whose words
they share. Azure's node health checks refuse a node for the numbers of _BY_AZURE too.
"""

RECOVERY = 154  # "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_BY_AZURE = frozenset({56, 57, 58, 63, 65, 68, 69, 73, 80, 81, 92})
_RESTART = "run the program again; if it comes back with other programs, have the GPU checked"
_RESET = "reset the GPU (nvidia-smi --gpu-reset) or reboot the node; if it comes back, replace it"
_REBOOT = "reboot the node; if the GPU stays away, reseat or replace it"
_NVLINK = "check the NVLinks (nvidia-smi nvlink -s, -e), then reset all GPUs or reboot the node"
_REPLACE = "ask the vendor of the machine whether the GPU must be replaced"
_CABLE = "check the power cables of the GPU's board"
_WATCH = "nothing for now; look at the other Xids of this GPU"
_URGENT = frozenset({_RESET, _REBOOT, _NVLINK, _CABLE})
_CATALOG = (
    (_RESTART, "GPU stopped processing", (8,)),
    (_RESTART, "invalid push buffer", (11, 25, 32)),
    (_RESTART, "exception in the graphics engine", (13,)),
    (_RESTART, "page fault in GPU memory", (31,)),
    (_RESTART, "exception in a copy engine", (39, 40, 41, 70, 71, 72, 75, 76, 77, 85)),
    (_RESTART, "exception in a copy engine", range(126, 136)),
    (_RESTART, "exception in a video or image engine", (60, 68, 82, 83, 84, 86, 88, 89, 139)),
    (_RESTART, "exception in a video or image engine", range(96, 106)),
    (_RESTART, "error of a graphics class", (69,)),
    (_RESTART, "corrupted data sent to the GPU", (80,)),
    (_RESTART, "memory error, contained in one program", (94,)),
    (_RESET, "GPU stopped processing", (46,)),
    (_RESET, "uncorrectable memory error", (48, 140, 171, 172)),
    (_RESET, "halt of an internal micro-controller", (62, 169)),
    (_RESET, "remapping of a memory row failed", (64,)),
    (_RESET, "memory error, not contained", (95,)),
    (_RESET, "timeout of a context switch", (109,)),
    (_RESET, "security fault", (110,)),
    (_RESET, "error or timeout of the GSP firmware", (119, 120)),
    (_RESET, "training of a link failed", (136,)),
    (_RESET, "GPU could not be initialized", (143,)),
    (_RESET, "NVLink error reported by software", (155,)),
    (_RESET, "a resource was retired", (156,)),
    (_RESET, "fatal timeout", (158, 167)),
    (_REBOOT, "GPU has fallen off the bus", (79,)),
    (_REBOOT, "error at the rotation of keys", (151,)),
    (_NVLINK, "NVLink error", (74, *range(144, 151))),
    (_CABLE, "auxiliary power is not connected", (54,)),
    ("update the driver and the firmware", "vGPU could not be started", (78,)),
    (_REPLACE, "error in a video engine", (142,)),
    (_REPLACE, "no spare resource is left to retire one", (157,)),
    (_REPLACE, "power smoothing is off or at its end", (163, 164, 165)),
    (_REPLACE, "part of the memory is not usable", (168,)),
    (_WATCH, "a fault stopped a program's work", (43, 44)),
    (_WATCH, "cleanup after an earlier error", (45,)),
    (_WATCH, "a row of memory was remapped", (63,)),
    (_WATCH, "many single-bit memory errors", (92,)),
    (_WATCH, "the infoROM is near its limit of writes", (93,)),
    (_WATCH, "error within the driver", (37, 38, 66, 67, 141)),
    (_WATCH, "error of a link, without effect alone", (121, 137, 159)),
    (_WATCH, "a channel was retired, or could not be", (160, 161)),
    (_WATCH, "test message, or event of a rarely used part", (106, 107, 152, 153, 162, 166, 170)),
    (_RESET, "the driver asks for a recovery, which it names last", (RECOVERY,)),
)


_BY_NUMBER = {number: entry[:2] for entry in _CATALOG for number in entry[2]}


def explain(number: int) -> tuple[str, str, bool]:
    """Return a number's meaning and remedy, and True if the GPU is unfit until that was applied.

    A number that the catalog does not explain is never invented.
    """
    unknown = ("see the driver's documentation of Xid errors", f"unknown Xid {number}")
    fix, meaning = _BY_NUMBER.get(number, unknown)
    return meaning, fix, fix in _URGENT or number in _BY_AZURE
