"""Slurm's accounting on a run of the virtual cluster: slurmdbd over a database of the run's own."""

import shutil
import socket
import time
from collections.abc import Callable

from tests.cluster import processes, slurm
from tests.cluster.place import GATEWAY, STANDARD_PATH, Place, TestbedError

_NEEDED = ("slurmdbd", "mariadbd", "mariadb", "mariadb-install-db")
_LIGHT = ("--skip-networking", "--innodb-buffer-pool-size=64M")


def lacking() -> str:
    """What this machine lacks for accounting, in words; empty if nothing."""
    missing = [name for name in _NEEDED if not shutil.which(name, path=STANDARD_PATH)]
    return f"not on this machine: {', '.join(missing)}" if missing else ""


def start(place: Place) -> None:
    """Start the database and slurmdbd, and slurmctld anew, which tells it all and forgets soon.

    Raises:
        TestbedError: one of them does not answer.
    """
    folder = slurm.shared(place) / "slurm"
    data, listens = folder / "database", folder / "database.sock"
    own = ("--no-defaults", "--user=root", f"--datadir={data}")
    rights = ("--auth-root-authentication-method=socket", "--skip-test-db")
    processes.call("mariadb-install-db", *own, *rights)
    database = ("mariadbd", *own, f"--socket={listens}", f"--pid-file={data}/pid", *_LIGHT)
    processes.start(place, database, log=folder / "log" / "mariadbd.out")
    make = ("mariadb", "-S", str(listens), "-e", "create database if not exists slurm_acct_db")
    _wait(lambda: processes.call(*make), "database")
    conf = folder / "slurmdbd.conf"
    conf.write_text(_DBD.format(folder=folder, host=socket.gethostname().partition(".")[0]))
    conf.chmod(0o600)
    env = ("env", f"SLURM_CONF={folder}/slurm.conf", f"MYSQL_UNIX_PORT={listens}")
    dbd = (*place.inside(), *env, "slurmdbd", "-D")
    processes.start(place, dbd, log=folder / "log" / "slurmdbd.out")
    with (folder / "slurm.conf").open("a") as settings:
        settings.write(_STORED.format(folder=folder))
    _wait(lambda: _asked(place, "sacctmgr", "-i", "add", "cluster", "virtual"), "slurmdbd")
    processes.call("kill", (folder / "slurmctld.pid").read_text().strip())
    _wait(lambda: not (folder / "slurmctld.pid").exists() or None, "end of slurmctld")
    (folder / "state" / "clustername").unlink(missing_ok=True)  # the database gives another id
    slurm.controller(place)
    _wait(lambda: _asked(place, "scontrol", "ping"), "slurmctld")


_DBD = f"""\
AuthType=auth/munge
AuthInfo=socket={{folder}}/munge.sock
DbdHost={{host}}
DbdAddr={GATEWAY}
SlurmUser=root
PidFile={{folder}}/slurmdbd.pid
LogFile={{folder}}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
"""
_STORED = f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={GATEWAY}
AccountingStoragePass={{folder}}/munge.sock
MinJobAge=2
"""


def _asked(place: Place, *argv: str) -> str | None:
    done = slurm.call(place, *argv)
    return done.stdout if done.returncode == 0 else None


def _wait(asked: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + slurm.READY_S
    while True:
        try:
            if asked() is not None:
                return
            said = "no answer"
        except TestbedError as error:
            said = str(error)
        if time.monotonic() > deadline:
            raise TestbedError(f"accounting: no {what}: {said}")
        time.sleep(0.05)
