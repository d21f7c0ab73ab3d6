# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are set by ./dev, which sources this file
# Builds: ./dev build, run, install.

# Two concurrent builds of one directory would damage it: the second waits.
locked() {
  locked_dir=$1
  shift
  mkdir -p "$locked_dir"
  if ! flock --nonblock "$locked_dir/.lock" true; then
    say "build: waiting for another build of ${locked_dir#"$root/"}"
  fi
  flock "$locked_dir/.lock" "$@"
}

# configure PRESET whole|program: `program` leaves out tests and benchmarks, so that the packages of the group `program` suffice. A directory
# that has them keeps them; `whole` adds them without touching what is compiled.
configure() {
  case $1 in
    dev | release | asan | tsan | coverage) ;;
    *) usage "unknown preset '$1': use dev, release, asan, tsan or coverage" ;;
  esac
  configured_tests=$(sed -n 's/^STINT_TESTS:BOOL=//p' "$build/$1/CMakeCache.txt" 2>/dev/null || true)
  # ninja calls cmake again by itself, except after a change of the presets.
  if [ -f "$build/$1/build.ninja" ] && [ -z "$(find "$root/CMakePresets.json" -newer "$build/$1/build.ninja")" ] &&
    { [ "$2" = program ] || [ "$configured_tests" = ON ]; }; then
    return 0
  fi
  if [ "$2" = program ] && [ "$configured_tests" != ON ]; then
    set -- "$1" -DSTINT_TESTS=OFF -DSTINT_BENCHES=OFF
  else
    set -- "$1"
  fi
  configure_started=$(date +%s)
  configure_cache="$build/$1/CMakeCache.txt"
  rm -f "$configure_cache.before"
  [ ! -f "$configure_cache" ] || cp -p "$configure_cache" "$configure_cache.before"
  quietly "$build/log/configure-$1.txt" locked "$build/$1" cmake -S "$root" --preset "$@" || {
    # cmake has stored the options that failed. Without them the directory still builds what it could build before.
    rm -f "$configure_cache"
    [ ! -f "$configure_cache.before" ] || mv "$configure_cache.before" "$configure_cache"
    die "cmake failed; its output is above"
  }
  say "configure: build/$1 done in $(clock $(($(date +%s) - configure_started)))"
}

# compile PRESET [TARGET…]: prints errors in full and nothing else; on a terminal one line of progress.
compile() {
  configure "$1" whole
  run_ninja "$@"
}

# Sets `cpu_seconds`: what all commands of this script have used so far. Not by $(…): a subshell counts only its own.
cpu_time() {
  times >"$build/log/times.txt"
  cpu_seconds=$(awk -F '[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' "$build/log/times.txt")
}

# compile_program TARGET…: the same for release and the group `program`. Says how long it took; a busy machine does not change the time of CPU.
compile_program() {
  configure release program
  compile_started=$(date +%s)
  cpu_time
  compile_cpu=$cpu_seconds
  run_ninja release "$@" || return 1
  compile_seconds=$(($(date +%s) - compile_started))
  cpu_time
  [ "$compile_seconds" -lt 10 ] ||
    say "build: build/release done in $(clock "$compile_seconds"), $(clock $((cpu_seconds - compile_cpu))) of CPU"
}

run_ninja() {
  preset=$1
  shift
  set -- ninja -C "$build/$preset" -j "$jobs" "$@"
  if [ -t 1 ]; then
    NINJA_STATUS="build $preset [%f/%t] " locked "$build/$preset" "$@"
  else
    quietly "$build/log/build-$preset.txt" locked "$build/$preset" "$@" --quiet
  fi
}

cmd_build() {
  preset=release
  if [ $# -gt 0 ]; then
    preset=$1
    shift
  fi
  setup program build
  setup_preset "$preset"
  started=$(date +%s)
  compile "$preset" "$@" || die "$preset does not compile; the errors are above"
  say "build: build/$preset is up to date ($(clock $(($(date +%s) - started))))"
}

cmd_run() {
  [ $# -gt 0 ] || set -- demo fleet
  setup program
  compile_program stint || die "the release build failed; the errors are above"
  exec "$build/release/stint" "$@"
}

readonly PREFIX_DEFAULT="${HOME:-/root}/.local"

cmd_install() {
  prefix=$PREFIX_DEFAULT
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix)
        [ $# -ge 2 ] || usage "--prefix needs a directory"
        prefix=$2
        shift
        ;;
      --prefix=*) prefix=${1#*=} ;;
      *) usage "install: unknown option '$1'" ;;
    esac
    shift
  done
  setup program
  compile_program stint stint_core || die "the release build failed; the errors are above"
  quietly "$build/log/install.txt" cmake --install "$build/release" --prefix "$prefix" || die "install failed; its output is above"
  say "install: done. In CMake: find_package(stint), then link stint::core, with"
  say "  cmake -DCMAKE_PREFIX_PATH=$prefix -DCMAKE_CXX_COMPILER=clang++-19"
}
