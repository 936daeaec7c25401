"""What commands begin with: the user's YAML files, earlier provisioning, a node's answer.

``yaml_files`` finds, reads and judges inventories, playbooks and images; ``sites`` reads what
provisioning kept of a cluster; ``probing`` turns a probe's output into facts.
"""
