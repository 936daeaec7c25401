#!/bin/sh
# Stand-in for the entry point of NGC's images: a banner, then the command.
cat <<'END'

==
== @FRAMEWORK@
==

Stand-in of the virtual cluster for NVIDIA Release 20.03; no NVIDIA software is in it.

END
if [ $# -eq 0 ]; then exec /bin/bash; fi
exec "$@"
