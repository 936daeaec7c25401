"""Making nodes ready: facts of nodes, images on all of them, checks inside containers.

``observe`` asks every node in one round trip and has ``checks/`` judge the answers; ``materials``
reads lock and bundle, ``recipes`` resolves what goes into an image, ``apply`` builds what
``planning/images`` lists and ``carry_image`` brings it to the other nodes, ``bundled_files`` into a
bundle; ``in_containers`` checks what containers see, ``between_nodes`` what holds between nodes;
``shown`` has its tables. ``discovered`` asks, for ``init``, machines of which no inventory tells.
A new check is a rule in ``checks/``, not here.
"""
