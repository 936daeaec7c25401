"""Makes reports of logs: of a sweep, or of a folder of logs that no sweep of ours made."""
