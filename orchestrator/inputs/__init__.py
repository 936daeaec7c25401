"""What commands start from: the user's YAML files, the site file, answers of nodes.

``user_files`` finds, reads and judges inventories, playbooks and images; ``sites`` reads what
provisioning kept of a cluster, ``host_lists`` and ``ansible_hosts`` the hosts in other tools'
files. ``probing`` turns a probe's output into facts, ``json_schema`` describes the files to
editors.
"""
