# A log of 10 iterations on 4 ranks, or as many as $1 says, 80 microseconds apart. Its clock is the time of
# day to the microsecond: trials that begin side by side share a millisecond, and then they share evidence.
# Before it, $2 seconds in which nothing happens.
ranks=${1:-4}
sleep "${2:-0}"
now=$(date '+%F %T.1%6N') # the 1 before: 012 is octal in arithmetic
second=${now%.*} micros=$(((${now#*.} - 1000000) % 999000))
say() { printf 'DLL %s.%06d - %s\n' "$second" "$((micros + $1))" "$2"; }
say 0 'PARAMETER arch : instant  batch_size : 4  prof : 11  amp : False  world_size : '"$ranks "
for step in 1 2 3 4 5 6 7 8 9 10; do
    say "$((100 + step * 80))" "Epoch: 0 Iteration: $step  train.loss : 7.1  train.total_ips : $((50000 * ranks)).00 img/s"
done
