"""Making nodes ready: asking them, preparing images, looking into containers.

``observe`` asks every node in one round trip and has ``checks/`` judge the answers; ``materials``
reads lock and bundle, ``recipes`` and ``image_inputs`` resolve what goes into an image, ``apply``
builds and ``carry`` brings it to the other nodes; ``inside`` and ``together`` check what only
containers, or nodes among each other, can show. A new check is a rule in ``checks/``, not here.
"""
