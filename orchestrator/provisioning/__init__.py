"""Making nodes ready: facts of nodes, images on all of them, checks inside containers.

``observe`` asks every node in one round trip and has ``checks/`` judge the answers; ``materials``
has lock, bundles and downloads, ``recipes`` resolves what goes into an image, ``apply`` does what
``planning/images`` lists; ``last_checks`` looks at what containers see and what holds between
nodes. ``discovered`` asks, for ``init``, machines of which no inventory tells. A new check is a
rule in ``checks/``, not here.
"""
