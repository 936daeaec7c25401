"""Making nodes ready: facts of nodes, images on all of them, checks inside containers.

``observe`` asks every node in one round trip and has ``checks/`` judge the answers, ``apply`` does
what ``planning/images`` lists, ``last_checks`` looks at containers and between nodes.
"""
