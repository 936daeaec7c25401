"""The short look at data sets before any count, as programs read them: names, then first bytes.

It tells a mount that hangs from a long count, and what root of a node may read from what a
container may, whose root has no right to pass over permissions.
"""

from orchestrator.model.site import DataState
from orchestrator.probes.sections import Output, Section

LIMIT_S = 10
# $1: a folder or a file. Prints its state, and the first path below it that cannot be opened: of
# at most 100 names, 20 below each of those, and one below each of these. `[ -r ]` of older shells
# takes root for one who may read everything, so files and folders are opened.
SCRIPT = r"""
look() {
    if [ -f "$1" ] || [ -d "$1" ]; then { true <"$1"; } 2>/dev/null && return; fi
    printf 'unreadable\n%s\n' "$1"
    exit 0
}
[ "$1" = . ] || [ -e "$1" ] || { echo missing; exit 0; }
look "$1"
[ -d "$1" ] || { echo present; exit 0; }
[ -n "$(ls -AU -- "$1" 2>/dev/null)" ] || { echo empty; exit 0; }
tops=0
for top in "$1"/*; do
    [ "$top" != "$1/*" ] && [ $((tops += 1)) -le 100 ] || break
    look "$top"
    middles=0
    for middle in "$top"/*; do
        [ "$middle" != "$top/*" ] && [ $((middles += 1)) -le 20 ] || break
        look "$middle"
        for bottom in "$middle"/*; do
            [ "$bottom" = "$middle/*" ] || look "$bottom"
            break
        done
    done
done
echo present
"""
# $1: the script above; $2: a path. A container's root has the rights of its files' owner and group
# alone. Folders above the path do not count there: it is mounted by itself.
CONTAINED = r"""
drop='setpriv --clear-groups --bounding-set=-all --inh-caps=-all'
if [ "$(id -u)" = 0 ] && [ -d "$2" ] && cd -- "$2" && $drop true 2>/dev/null; then
    exec $drop sh -c "$1" sh .
fi
exec sh -c "$1" sh "$2"
"""


def section(name: str, path: str, *, contained: bool = False) -> Section:
    """Return the question what lies at a path of a node.

    Args:
        contained: what containers that are not privileged may read there.
    """
    argv = ("sh", "-c", CONTAINED, "sh", SCRIPT) if contained else ("sh", "-c", SCRIPT, "sh")
    return Section(name, (*argv, path), LIMIT_S)


def state(output: Output) -> DataState:
    """Return the state of a data set, ``hung`` if the check did not end in time."""
    if output.exit_code is None:
        return "hung"
    states: tuple[DataState, ...] = ("present", "empty", "missing")
    return next((state for state in states if output.out.strip() == state), "unreadable")
