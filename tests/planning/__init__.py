"""Tests of from a playbook to command lines."""
