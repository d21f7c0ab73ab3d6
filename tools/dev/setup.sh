# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are set by ./dev, which sources this file
# Installs packages: ./dev setup.

# release_field NAME: a value of /etc/os-release; nothing if there is none.
release_field() { sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | tr -d '"'; }

# The release of this system as the list names it; of a derivative, the one that it is made from. Fails if its names are not in the list.
suite() {
  suite_name=$(release_field UBUNTU_CODENAME)
  [ -n "$suite_name" ] || suite_name=$(release_field VERSION_CODENAME)
  case $suite_name in
    bookworm | trixie | noble) printf '%s' "$suite_name" ;;
    *) return 1 ;;
  esac
}

# The packages of one group of the list, as a release calls them.
#   packages GROUP SUITE
packages() {
  awk -v group="[$1]" -v suite="$2:" '
    { sub(/#.*/, "") }
    NF == 0 { next }
    /^\[/ { current = $1; if (current == group) found = 1; next }
    current == group {
      name = $1
      for (i = 2; i <= NF; i++) if (index($i, suite) == 1) name = substr($i, length(suite) + 1)
      if (name != "-") print name
    }
    END { exit !found }
  ' "$root/tools/debian-packages.txt" || die "tools/debian-packages.txt has no group '$1'"
}

# On a system whose packages have other names, a person installs them.
unknown_system() {
  system_name=$(release_field PRETTY_NAME)
  warn "dev: ${system_name:-this system} is not one whose packages are known: Debian 12, Debian 13, Ubuntu 24.04."
  warn "Needed: clang 19 with lld, CMake 3.25, Ninja, Boost 1.81 with Boost.JSON, fmt, CLI11, yaml-cpp, toml++, SQLite, the headers of"
  warn "libpq and libcurl, GoogleTest, RapidCheck, Google Benchmark, git, Python 3.11; for the tests PostgreSQL and pgbouncer, too."
  warn "tools/debian-packages.txt has the whole list. When they are installed: STINT_SETUP=off ./dev …"
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# The tests start servers of their own. Prevents Debian from creating servers that start with the machine.
#   no_default_server PACKAGES
no_default_server() {
  case $1 in
    *postgresql*)
      if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        as_root mkdir -p /etc/postgresql-common
        printf 'create_main_cluster = false\n' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
      fi
      ;;
  esac
  case $1 in
    *pgbouncer*)
      if [ ! -e /etc/default/pgbouncer ]; then
        printf 'START=0\n' | as_root tee /etc/default/pgbouncer >/dev/null
      fi
      if [ ! -e /etc/systemd/system/pgbouncer.service ]; then
        as_root mkdir -p /etc/systemd/system
        as_root ln -s /dev/null /etc/systemd/system/pgbouncer.service
      fi
      ;;
  esac
}

readonly UPDATE_MINUTES=60

# Reads the mirror's list of packages, unless an earlier setup has just done so: `./dev test` comes soon after `./dev run`.
update_packages() {
  update_log="$build/log/apt-update.txt"
  [ -z "$(find "$update_log" -mmin "-$UPDATE_MINUTES" 2>/dev/null)" ] || return 0
  quietly "$update_log" as_root apt-get -o DPkg::Lock::Timeout=300 update || {
    rm -f "$update_log"
    die "apt-get update failed; its output is above"
  }
}

# setup GROUP…: quick and silent if everything is installed.
setup() {
  [ "${STINT_SETUP:-}" != off ] || return 0
  command -v dpkg-query >/dev/null || unknown_system
  setup_suite=$(suite) || unknown_system
  wanted=
  for group in "$@"; do
    more=$(packages "$group" "$setup_suite") || exit 1
    wanted="$wanted $more"
  done
  # shellcheck disable=SC2086 # a list of words
  missing=$(
    {
      dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true
      printf 'wanted %s\n' $wanted
    } | awk '$1 == "installed" { have[$2] = 1 } $1 == "wanted" && !($2 in have) && !seen[$2]++ { print $2 }'
  )
  [ -n "$missing" ] || return 0

  # shellcheck disable=SC2086
  say "setup: installing" $missing
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    # shellcheck disable=SC2086
    die "that needs root or sudo. As root: apt-get install --no-install-recommends" $missing
  fi
  started=$(date +%s)
  update_packages
  no_default_server "$missing"
  # dpkg waits for the disk after each of thousands of files: half of the time, and most of it if other programs write, too. Instead all are
  # written once, below. Both options are those of this call only.
  # shellcheck disable=SC2086
  quietly "$build/log/apt-install.txt" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-unsafe-io \
    install -y --no-install-recommends $missing || {
    rm -f "$update_log" # the next try asks the mirror again
    die "apt-get install failed; its output is above"
  }
  sync -f /usr
  say "setup: done in $(clock $(($(date +%s) - started)))"
}

# setup_preset PRESET: what that preset needs besides.
setup_preset() {
  case $1 in
    asan | tsan | coverage) setup instrument ;;
  esac
}

cmd_setup() {
  [ $# -gt 0 ] || set -- program build test
  setup "$@"
  say "setup: everything in '$*' is installed"
}
