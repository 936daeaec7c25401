"""Time limits of remote calls: none waits for ever, and none is given up too soon.

In seconds. Pauses between two looks at something that is polled are where the polling is.
"""

from dataclasses import dataclass

# One SSH connection.
CONNECT_S = 10.0  # a TCP connection, or a way through a jump host
ANSWER_S = 10.0  # sshd's answer in a handshake, at a login, to a request on a connection
SILENCE_S = 10.0  # data that was sent and not acknowledged
SESSION_S = 60.0  # until sshd allows one more session
SHELL_S = 30.0  # until a login shell has read its start-up files
LAST_WORDS_S = 1.0  # until the thread of a connection that was closed has ended

# Commands on a node.
COMMAND_S = 10.0  # one that only looks: the size of a file, a table of the kernel's
REMOVE_S = 120.0  # removing folders of ours
SUPERVISOR_S = 30.0  # a supervisor's start, a signal to it, killing what it leaves
HEARD_S = 0.5  # until a signal is handled that comes just before the main thread waits
STREAM_END_S = 5.0  # a command whose input has ended

# Slurm.
STEP_S = 30.0  # beside what a step's commands may take
QUEUE_S = 60.0  # until slurmctld answers, which may be starting anew
QUEUE_IN_JOB_S = 900.0  # likewise between two trials, where to give up is to lose the job
NODE_STATE_S = 5.0  # between two looks at the states of a gang's nodes
STEP_END_S = 15.0  # between cancelling a step and its end: KillWait and a little more

# The locks of nodes.
LOCK_S = 10.0  # whether it is had
BEAT_S = 3.0  # between two signs of life of who holds one
LOCK_SILENCE_S = 15.0  # without a sign of life until it is given up

# A gang.
GATES_S = 60.0  # from what was started until every task waits at its gate
UNPACKED_S = 900.0  # likewise, where every start unpacks an image of tens of GB
GRACE_S = 10.0  # between asking a program to end and insisting on it
NODE_LOST_S = 12.0  # without an answer of the node until its task is given up
ENGINE_LOST_S = 10.0  # likewise of its engine alone, which may be starting anew
ENGINE_LOOK_S = 2.0  # between two looks whether the engine of a task that runs is there
ENGINE_ANSWER_S = 5.0  # for its answer to that
ENGINE_SILENCE_S = 8.0  # of an answer that takes longer, until it is asked whether it is there

# Ports between nodes.
LISTEN_S = 10.0  # until a listener says that it listens
CALL_S = 5.0  # for a connection to a peer, on the node
CALLED_S = 15.0  # for the command that makes it

# Containers that look around, and data sets.
INSIDE_S = 60.0  # beside what its questions may take
INSIDE_LEFT_S = 15.0  # until those that nobody waits for have ended
DATA_LOOK_S = 120.0  # what of a data set is there
DATA_COUNT_S = 3600.0  # counting or hashing every file, 1.28 million of them
DATA_COMMAND_S = 60.0  # a short command of a preparation
DATA_SETTLE_S = 3600.0  # moving a prepared data set to its place
DATA_SILENT_S = 60.0  # without an answer of the node while it prepares


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits on the time that a Docker engine may take."""

    answer_s: float = 10.0  # for the answer to a short question
    create_s: float = 120.0  # until a container is made, whose image may lie on a cold disk
    start_s: float = 120.0  # until it is started: hooks of GPU runtimes take their time
    untag_s: float = 300.0  # until an image is removed, which may be tens of GB
    registry_s: float = 60.0  # for what a registry says of an image, asked by the engine
    stall_s: float = 120.0  # without a byte of an image that is being carried
    work_s: float = 1800.0  # without a word while it builds an image or packs one
    end_s: float = 60.0  # until a container that is being removed is gone
    pause_s: float = 5.0  # before a failed pull is tried again, twice as long each time


PATIENCE = Patience()
