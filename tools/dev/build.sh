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

configure() {
  case $1 in
    dev | release | asan | tsan | coverage) ;;
    *) usage "unknown preset '$1': use dev, release, asan, tsan or coverage" ;;
  esac
  # ninja calls cmake again by itself, except after a change of the presets.
  if [ ! -f "$build/$1/build.ninja" ] || [ -n "$(find "$root/CMakePresets.json" -newer "$build/$1/build.ninja")" ]; then
    quietly "$build/log/configure-$1.txt" locked "$build/$1" cmake -S "$root" --preset "$1" || die "cmake failed; its output is above"
  fi
}

# compile PRESET [TARGET…]: prints errors in full and nothing else; on a terminal one line of progress.
compile() {
  preset=$1
  shift
  configure "$preset"
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
  setup base
  started=$(date +%s)
  compile "$preset" "$@" || die "$preset does not compile; the errors are above"
  say "build: build/$preset is up to date ($(clock $(($(date +%s) - started))))"
}

cmd_run() {
  [ $# -gt 0 ] || set -- demo fleet
  setup base
  compile release stint || die "the release build failed; the errors are above"
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
  setup base
  compile release stint stint_core || die "the release build failed; the errors are above"
  quietly "$build/log/install.txt" cmake --install "$build/release" --prefix "$prefix" || die "install failed; its output is above"
  say "install: done. In CMake: find_package(stint), then link stint::core, with"
  say "  cmake -DCMAKE_PREFIX_PATH=$prefix -DCMAKE_CXX_COMPILER=clang++-19"
}
