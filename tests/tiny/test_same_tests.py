"""The tests of sweeps that say something of a scheduler, with another one behind its door."""

import pytest

from tests.sweeping.test_failing_gangs import (  # noqa: F401 - run here again
    test_a_container_that_lost_its_gpus_is_tried_again,
    test_a_gang_that_does_not_end_well_ends_as_a_whole_and_says_why,
    test_a_program_that_floods_its_log_has_one_attempt_and_a_cut_log,
    test_a_supervisor_that_cannot_be_identified_leaves_nothing_at_its_gate,
    test_the_time_limit_is_kept_without_the_controller,
)
from tests.sweeping.test_killed_sweeps import (  # noqa: F401 - run here again
    test_a_gang_of_another_sweep_is_ended_before_anything_is_measured,
    test_a_gang_that_runs_is_adopted,
    test_a_kill_while_a_file_is_written_leaves_no_half_of_it,
    test_a_killed_supervisor_loses_the_attempt_and_nothing_else,
    test_a_second_signal_leaves_at_once_and_says_what_is_left,
    test_a_signal_ends_the_gang_and_the_sweep_goes_on_later,
    test_a_survivor_is_not_taken_for_another_process_with_its_pid,
)
from tests.sweeping.test_left_behind import (  # noqa: F401 - run here again
    test_an_attempt_closed_late_takes_nothing_from_the_one_that_counts,
    test_stop_ends_what_runs_on_a_node_that_the_inventory_has_no_more,
)
from tests.sweeping.test_requested import (  # noqa: F401 - run here again
    test_what_was_requested_grows_and_never_shrinks,
)
from tests.sweeping.test_signals import (  # noqa: F401 - run here again
    test_a_detached_sweep_runs_to_its_end_and_is_found,
)
from tests.sweeping.test_stop import (  # noqa: F401 - run here again
    test_a_second_controller_is_refused_until_stop_ends_the_first,
    test_stop_ends_no_process_that_only_has_the_controllers_pid,
)
from tests.sweeping.test_sweep import (  # noqa: F401 - run here again
    test_a_program_that_prints_on_its_last_node_is_measured_there,
    test_a_second_sweep_measures_nothing_again,
    test_a_sweep_runs_every_trial_and_leaves_nothing_running,
    test_a_taken_port_is_passed_over,
    test_a_terminal_sees_a_live_view,
    test_an_edited_playbook_starts_a_new_sweep_and_the_old_one_goes_on_later,
    test_code_edited_while_a_trial_runs_makes_it_invalid,
)

pytestmark = [pytest.mark.cluster, pytest.mark.long]
