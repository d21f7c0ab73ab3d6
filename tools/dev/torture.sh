# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are set by ./dev, which sources this file
# Long searches for bugs: ./dev simulate, chaos.

cmd_simulate() {
  simulated="--seconds 300 --from $(date +%s)"
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage "simulate: $1 needs a value"
    case $1 in
      --minutes) simulated="--seconds $(($2 * 60)) --from $(date +%s)" ;;
      --seed) simulated="--seed $2" ;;
      *) usage "simulate: unknown option '$1'" ;;
    esac
    shift 2
  done
  setup program build
  compile release engine_simulation || die "the release build failed; the errors are above"
  # shellcheck disable=SC2086  # several words
  "$build/release/tests/simulation/engine_simulation" $simulated
}

cmd_chaos() {
  minutes=5
  stores="postgres sqlite"
  chaos_runs=20000
  seed=$(date +%s)
  while [ $# -gt 0 ]; do
    case $1 in
      --minutes | --store | --seed | --runs) [ $# -ge 2 ] || usage "chaos: $1 needs a value" ;;
      *) usage "chaos: unknown option '$1'" ;;
    esac
    case $1 in
      --minutes) minutes=$2 ;;
      --store) stores=$2 ;;
      --seed) seed=$2 ;;
      --runs) chaos_runs=$2 ;;
    esac
    shift 2
  done
  setup program build test
  compile release store_node || die "the release build failed; the errors are above"
  found=
  for store in $stores; do
    python3 -B "$root/tests/chaos/chaos.py" "$build/release/tests/chaos/store_node" --store "$store" --seed "$seed" \
      --runs "$chaos_runs" --seconds "$((minutes * 60))" --patience 600 --pause 0.05 0.8 || found=yes
  done
  [ -z "$found" ]
}
