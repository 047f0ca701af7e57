#!/usr/bin/env bash
# A newer Debian's own programs on the emulated NIC: makes a small root file system of that release once, and runs the
# suites of this folder inside it, where python3, libibverbs, libmlx5, pyverbs and perftest are that release's.
#
#   newer.sh --newer [OTHER ARGUMENTS OF run.py]
#
# The root file system is kept in $XDG_CACHE_HOME/verbena (default: ~/.cache/verbena) and made again when what it is made
# of changes here; removing it there makes it anew with the newest packages. It comes from the mirror that apt of this
# machine uses. Everything mounted in it is mounted in a mount namespace of this run's own.
#
# VERBENA_NEWER_SUITE: the release (default below).
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=${VERBENA_NEWER_SUITE:-forky}
packages=rdma-core,ibverbs-providers,ibverbs-utils,perftest,python3-pyverbs,python3-scapy,iproute2,libisal2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/verbena
newer=$cache/newer-$suite

die() { printf './dev conformance --newer: %s\n' "$*" >&2; exit 2; }

# Where apt has the release it runs on from. The newer one lies beside it.
mirror() {
  local running
  running=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    sed -n "s/^$running //p" | head -1
}

make_root() {
  local from proxy log=$repository/build/newer.log
  from=$(mirror)
  [ -n "$from" ] || die "apt of this machine has no source of the release it runs (apt-get indextargets)"
  if ! command -v debootstrap >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install debootstrap \
      >"$log" 2>&1 || { tail -5 "$log" >&2; die "it needs the package debootstrap"; }
  fi
  proxy=$(apt-config shell proxy Acquire::http::Proxy)
  if [ -n "$proxy" ]; then eval "export http_$proxy"; fi
  printf '\n== a root file system of %s, once: some minutes\n' "$suite"
  mkdir -p "$cache"
  rm -rf --one-file-system "$newer" "$newer.part"
  # Dates of Release files are not looked at: where the mirror stands still they have passed.
  # debootstrap knows no release by name that is newer than itself, but they are all made as sid is.
  unshare --mount timeout -k 10 3000 debootstrap --variant=minbase --include="$packages" "$suite" "$newer.part" "$from" \
    /usr/share/debootstrap/scripts/sid >"$log" 2>&1 || { tail -20 "$log" >&2; die "debootstrap failed; whole output in build/newer.log"; }
  rm -f "$newer.part"/var/cache/apt/archives/*.deb
  printf '%s\n' "$packages" >"$newer.part/made-of"
  mv "$newer.part" "$newer"
}

[ "$(id -u)" = 0 ] || die "making and entering another root file system needs root"
unshare --mount true 2>/dev/null || die "it needs a mount namespace of its own, which this machine does not let it have"
mkdir -p "$repository/build"
if [ "$(cat "$newer/made-of" 2>/dev/null)" != "$packages" ]; then make_root; fi

# The repository is seen inside where it is seen outside, for build and results hold its path.
export LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH PYTHONHOME
exec unshare --mount bash -euc '
  root=$1 repository=$2; shift 2
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mkdir -p "$root$repository"
  mount --bind "$repository" "$root$repository"
  exec chroot "$root" /usr/bin/python3 "$repository/tests/conformance/run.py" "$@"
' bash "$newer" "$repository" "$@"
