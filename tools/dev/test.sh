# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are set by ./dev, which sources this file
# The tests: ./dev test, coverage.

# From a fresh clone on 2 cores with nothing cached. A longer run fails, so the bounds leave room for a slow machine.
readonly TEST_MINUTES_MAX=25 # the goal is 12
readonly REST_MINUTES_MAX=60 # the goal is 45 for both together
readonly SLOWEST_SHOWN=10

# tests PRESET OPTION…: runs them (tools/run_tests.py has the options); sets `passed`, `failed` and `skipped`. Four slots a core:
# an entry that computes takes three, one that waits takes one (cmake/Tests.cmake).
tests() {
  tests_preset=$1
  shift
  python3 -B "$root/tools/run_tests.py" "$build/$tests_preset" --jobs $((jobs * 4)) "$@" || die "the tests of $tests_preset did not run"
  read -r passed failed skipped <"$build/$tests_preset/tests.counts"
}

# The targets of a stage, and their preset: sets `stage_preset` and `stage_targets`.
stage_build() {
  stage_preset=$1
  stage_targets=all
  case $1 in
    release) stage_targets=tests ;;
    tsan) stage_targets=tsan_tests ;;
    long)
      stage_preset=release
      stage_targets="all all_verify_interface_header_sets" # benchmarks, too; each public header alone
      ;;
  esac
}

# ahead STAGE: builds the targets of a later stage at idle priority while the tests of this one run. That stage builds again and
# reports the errors.
ahead() {
  stage_build "$1"
  # shellcheck disable=SC2086 # several targets
  chrt --idle 0 "$root/dev" build "$stage_preset" $stage_targets >/dev/null 2>&1 &
  ahead_pid=$!
}

# stage STAGE [NEXT…]: builds and runs its tests, and adds to the sums. Returns 1 if it does not compile.
stage() {
  stage_name=$1
  stage_next=${2:-}
  stage_started=$(date +%s)
  stage_build "$stage_name"
  # shellcheck disable=SC2086
  if ! compile "$stage_preset" $stage_targets; then
    sum_failed=$((sum_failed + 1))
    table="$table
$(printf '  %-10s does not compile' "$stage_name")"
    return 1
  fi
  stage_built=$(date +%s)
  case $stage_name in
    release) set -- --without-label '^(ports|long)$' ;;
    asan) set -- --without-label '^(browser|chaos)$' ;;
    tsan) set -- --label '^tsan$' ;;
    long) set -- --label '^(ports|long)$' ;;
    *) set -- ;;
  esac
  stage_tested=$stage_preset
  ahead_pid=
  [ -z "$stage_next" ] || ahead "$stage_next"
  tests "$stage_tested" "$@"
  if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then
    warn "dev: the stage $stage_name has no tests"
    failed=1
  fi
  stage_ended=$(date +%s)
  sum_passed=$((sum_passed + passed))
  sum_failed=$((sum_failed + failed))
  line=$(printf '  %-10s build %6s   tests %6s   %d passed, %d failed' "$stage_name" \
    "$(clock $((stage_built - stage_started)))" "$(clock $((stage_ended - stage_built)))" "$passed" "$failed")
  [ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
  table="$table
$line"
  slowest="$slowest
$(head -n $SLOWEST_SHOWN "$build/$stage_tested/tests.times" | awk -v stage="$stage_name" '{ printf "  %-10s %6.1f s  %s\n", stage, $1, $2 }')"
  say "test: $stage_name done, $passed passed, $failed failed"
}

# test_stages MINUTES_MAX STAGE…: runs every given stage, prints a table, the time, and last the line that CI reads.
test_stages() {
  minutes_max=$1
  shift
  started=$(date +%s)
  sum_passed=0
  sum_failed=0
  table=
  slowest=
  while [ $# -gt 0 ]; do
    # Code that fails to compile in one build fails in the next.
    stage "$@" || break
    [ -z "$ahead_pid" ] || wait "$ahead_pid" || true
    shift
  done
  seconds=$(($(date +%s) - started))
  say ""
  say "slowest tests:$slowest"
  say "test:$table"
  say "  total      $(clock $seconds) of at most $(clock $((minutes_max * 60)))"
  if [ $seconds -gt $((minutes_max * 60)) ]; then
    warn "dev: the tests took longer than $minutes_max minutes; that counts as a failure"
    sum_failed=$((sum_failed + 1))
  fi
  say "$sum_passed passed, $sum_failed failed"
  [ "$sum_failed" -eq 0 ]
}

# test_some PRESET OPTION…: the inner loop, only the selected tests.
test_some() {
  some_preset=$1
  shift
  started=$(date +%s)
  tests "$some_preset" "$@"
  [ $((passed + failed + skipped)) -gt 0 ] || die "no test matches '$filter'; ./dev test --list shows the names"
  [ "$skipped" -eq 0 ] || say "$skipped skipped"
  say "$some_preset: $(clock $(($(date +%s) - started)))"
  say "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

cmd_test() {
  preset=
  repeat=
  list=
  filter=
  extent=
  while [ $# -gt 0 ]; do
    case $1 in
      --full | --rest) extent=$1 ;;
      --preset)
        [ $# -ge 2 ] || usage "--preset needs a name"
        preset=$2
        shift
        ;;
      --preset=*) preset=${1#*=} ;;
      --repeat)
        [ $# -ge 2 ] || usage "--repeat needs a number"
        repeat=$2
        shift
        ;;
      --repeat=*) repeat=${1#*=} ;;
      --list) list=yes ;;
      -*) usage "test: unknown option '$1'" ;;
      *) filter="${filter:+$filter|}$1" ;;
    esac
    shift
  done
  [ -z "$extent" ] || [ -z "$preset$filter$repeat$list" ] || usage "test: $extent can't be combined with other options"
  setup program build test browser
  setup_preset "$preset"
  [ -z "$extent" ] || setup instrument ports
  [ -z "$extent" ] || export TESTS_FROM_REGISTRIES=1 # tests may install packages from registries
  if [ -z "$filter$repeat$list" ]; then
    case $extent in
      --full) test_stages $((TEST_MINUTES_MAX + REST_MINUTES_MAX)) release asan tsan long ;;
      --rest) test_stages $REST_MINUTES_MAX asan tsan long ;;
      *) test_stages $TEST_MINUTES_MAX "${preset:-release}" ;;
    esac
    return
  fi
  preset=${preset:-release}
  compile "$preset" tests || die "$preset does not compile; the errors are above"
  if [ -n "$list" ]; then
    python3 -B "$root/tools/run_tests.py" "$build/$preset" --list --filter "$filter"
    return
  fi
  test_some "$preset" --filter "$filter" ${repeat:+--repeat "$repeat"}
}

cmd_coverage() {
  setup program build test instrument
  compile coverage all || die "the coverage build failed; the errors are above"
  profiles="$build/coverage/profiles"
  rm -rf "$profiles"
  filter=
  for word in "$@"; do filter="${filter:+$filter|}$word"; done
  LLVM_PROFILE_FILE="$profiles/%8m.profraw"
  export LLVM_PROFILE_FILE
  tests coverage --filter "$filter"
  llvm-profdata-19 merge -o "$build/coverage/all.profdata" "$profiles"/*.profraw
  objects=$(find "$build/coverage" -name '*_test' -type f -perm -u+x -printf '-object %p ')
  # shellcheck disable=SC2086
  llvm-cov-19 report $objects -instr-profile "$build/coverage/all.profdata" \
    -ignore-filename-regex '(_(test|bench|test_support)\.[ch]pp|/usr/|/tests/)' -show-branch-summary=false
  say "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
