# SPDX-License-Identifier: Apache-2.0
# Shell functions shared by tests/run, examples/run and bench/run: install what is missing, build quietly.
# Sourced by bash; messages go to standard error.

suture_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# Where the CUDA toolkit installs itself.
if [[ -d /usr/local/cuda/bin ]]; then PATH=$PATH:/usr/local/cuda/bin; fi

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

# quietly LOG COMMAND...: shows the output only if the command fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 200 "$log" >&2
    say "failed: $*"
    say "the whole output is in $log"
    return 1
  fi
}

is_installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# require PACKAGE...: Debian packages that must be there. Tools may come from elsewhere as long as they are found.
require() {
  local missing=() package
  for package in "$@"; do
    case $package in
      g++) command -v "${CXX:-c++}" >/dev/null || missing+=("$package") ;;
      cmake | make | git | pkg-config) command -v "$package" >/dev/null || missing+=("$package") ;;
      ninja-build) command -v ninja >/dev/null || missing+=("$package") ;;
      *) # Elsewhere than on Debian the configuration of the build says what it does not find.
        if command -v dpkg-query >/dev/null && ! is_installed "$package"; then missing+=("$package"); fi ;;
    esac
  done
  ((${#missing[@]})) || return 0
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    quietly "$suture_root/build/apt.log" apt-get -q update || say "going on with the package lists that are here"
    quietly "$suture_root/build/apt.log" apt-get -q install -y --no-install-recommends "${missing[@]}" ||
      fail "could not install ${missing[*]}"
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

# build DIRECTORY [TARGET...] -- CMAKE ARGUMENTS...: configures and builds quietly in build/DIRECTORY.
build() {
  local directory=$suture_root/build/$1 name=$1 targets=()
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do
    targets+=(--target "$1")
    shift
  done
  [[ ${1-} == -- ]] && shift
  if [[ ! -f $directory/build.ninja ]]; then say "building in build/$name, the first time takes a while"; fi
  quietly "$directory/configure.log" cmake -S "$suture_root" -B "$directory" -G Ninja "$@" || return 1
  quietly "$directory/build.log" cmake --build "$directory" -j "$(suture_jobs)" "${targets[@]}" || return 1
}

# Succeeds where a GPU is visible.
has_gpu() { command -v nvidia-smi >/dev/null && [[ $(nvidia-smi -L 2>/dev/null) == GPU* ]]; }
