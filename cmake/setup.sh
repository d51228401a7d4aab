# SPDX-License-Identifier: Apache-2.0
# Shell functions shared by tests/run, examples/run and bench/run: install what is missing, build quietly.
# Sourced by bash; messages go to standard error.

suture_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# Where the CUDA toolkit installs itself.
if [[ -d /usr/local/cuda/bin ]]; then PATH=$PATH:/usr/local/cuda/bin; fi

# ccache compares precompiled headers by their sources, and paths relative to the clone: another clone finds what this one
# compiled.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$suture_root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-true}

say() { echo "suture: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# A job needs up to 2 GB where nvcc is at work.
suture_jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 1)
  memory=$(awk '/^MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo 2>/dev/null || echo 1)
  ((memory < 1)) && memory=1
  echo $((cores < memory ? cores : memory))
}

# How long a command is silent where standard error is no terminal.
suture_seconds_between_lines=30

# show_progress LOG WHAT: until it is ended, how far the command has come that writes the log: ninja's last [n/m], and the
# time. On a terminal in one line that changes, else in a line now and then. It ends with the script it belongs to.
show_progress() {
  local log=$1 what=$2 start=$SECONDS shown=$SECONDS step line
  while sleep 1 3>&- && kill -0 $$; do
    step=$(tail -c 4000 "$log" | grep -ao '^\[[0-9]*/[0-9]*\]' | tail -n 1)
    line="suture: $what${step:+ $step}, $((SECONDS - start)) s"
    if [[ -t 3 ]]; then
      printf '\r\033[K%s' "$line" >&3
    elif ((SECONDS - shown >= suture_seconds_between_lines)); then
      shown=$SECONDS
      echo "$line" >&3
    fi
  done
} 3>&2 >/dev/null 2>&1

# quietly LOG WHAT COMMAND...: shows how far the command is, and its output only if it fails.
quietly() {
  local log=$1 what=$2 progress status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  : >"$log"
  show_progress "$log" "$what" 9>&- &
  progress=$!
  "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  kill "$progress" 2>/dev/null
  wait "$progress" 2>/dev/null
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  ((status)) || return 0
  tail -n 200 "$log" >&2
  say "failed: $*"
  say "the whole output is in $log"
  return 1
}

# alone NAME WHAT COMMAND...: runs a command of this file while no other run does the same in this clone; waits for one
# that does, and says on what. NAME is that of a file in build/, and the lock ends with the process that holds it.
alone() {
  local lock=$suture_root/build/$1.lock what=$2
  shift 2
  command -v flock >/dev/null || { "$@"; return; }
  mkdir -p "$(dirname "$lock")"
  (
    if ! flock -n 9; then
      say "waiting for another run that is $what (process $(<"$lock"))"
      flock 9 || exit 1
    fi
    echo $$ >"$lock"
    "$@"
  ) 9>>"$lock"
}

is_installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# missing_of PACKAGE...: those that are not there. Tools may come from elsewhere as long as they are found.
missing_of() {
  local package
  for package in "$@"; do
    case $package in
      g++) command -v "${CXX:-c++}" >/dev/null || echo "$package" ;;
      cmake | make | git | pkg-config) command -v "$package" >/dev/null || echo "$package" ;;
      ninja-build) command -v ninja >/dev/null || echo "$package" ;;
      *) # Elsewhere than on Debian the configuration of the build says what it does not find.
        if command -v dpkg-query >/dev/null && ! is_installed "$package"; then echo "$package"; fi ;;
    esac
  done
}

install_missing() {
  local missing
  mapfile -t missing < <(missing_of "$@")  # another run may have installed them by now
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  quietly "$suture_root/build/apt.log" "reading package lists" apt-get -q update ||
    say "going on with the package lists that are here"
  quietly "$suture_root/build/apt.log" "installing packages" apt-get -q -o DPkg::Lock::Timeout=300 install -y \
    --no-install-recommends "${missing[@]}"
}

# require PACKAGE...: Debian packages that must be there.
require() {
  local missing
  mapfile -t missing < <(missing_of "$@")
  ((${#missing[@]})) || return 0
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    alone apt "installing packages" install_missing "$@" || fail "could not install ${missing[*]}"
  else
    say "missing: ${missing[*]}"
    say "please install them, on Debian and Ubuntu by"
    say "    sudo apt-get install --no-install-recommends ${missing[*]}"
    exit 1
  fi
}

require_build_tools() {
  require g++ cmake ninja-build
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*//p')
  [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) == 3.25 ]] || fail "needs CMake 3.25 or newer, found $version"
}

# build DIRECTORY [TARGET...] -- CMAKE ARGUMENTS...: configures and builds quietly in build/DIRECTORY, alone.
build() { alone "$1" "building in build/$1" build_alone "$@"; }
build_alone() {
  local directory=$suture_root/build/$1 name=$1 targets=()
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do
    targets+=(--target "$1")
    shift
  done
  [[ ${1-} == -- ]] && shift
  if [[ ! -f $directory/build.ninja ]]; then say "building in build/$name, the first time takes a while"; fi
  quietly "$directory/configure.log" "configuring build/$name" cmake -S "$suture_root" -B "$directory" -G Ninja "$@" ||
    return 1
  quietly "$directory/build.log" "building in build/$name" cmake --build "$directory" -j "$(suture_jobs)" \
    "${targets[@]}" || return 1
}

# hold_folder FOLDER: until the script ends, another that would write there says so and ends.
hold_folder() {
  command -v flock >/dev/null || return 0
  exec 8>>"$1/.lock" || fail "cannot write to $1"
  flock -n 8 || fail "another run is at work in $1"
}

# Succeeds where a GPU is visible.
has_gpu() { command -v nvidia-smi >/dev/null && [[ $(nvidia-smi -L 2>/dev/null) == GPU* ]]; }
