# SPDX-License-Identifier: Apache-2.0
# lib.sh - what quickstart and check share: packages, building, words

top=$(cd "$(dirname "$0")/.." && pwd)
jobs=$(nproc)

build_packages="gcc make autoconf automake pkg-config libevent-dev libc-ares-dev
	libnftnl-dev libmnl-dev libinih-dev libseccomp-dev libmd-dev
	libjansson-dev libidn2-dev libunistring-dev libpsl-dev libssl-dev libcmocka-dev ca-certificates"
lab_packages="iproute2 nftables openssl util-linux curl python3 python3-dnspython"
# What docs/clients.md speaks of; 72 MB.
client_packages="socat ncat aria2 w3m lynx libwww-perl liblwp-protocol-https-perl
	ruby php-cli php-curl redis-tools python3-aiohttp python3-socks
	python3-requests python3-httpx"
test_packages="clang libclang-rt-14-dev python3-pytest python3-h11 python3-httptools wget git
	bind9-dnsutils netcat-openbsd openssh-client uidmap procps nodejs strace
	xz-utils dnsmasq-base gron musl-tools python3-unbound ccache $client_packages"

say() {
	printf '%s: %s\n' "$(basename "$0")" "$*"
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

need_root() {
	[ "$(id -u)" = 0 ] ||
		die "needs root to make its lab: sudo ./scripts/$(basename "$0")"
}

# install_missing PACKAGE...: apt-get only what is not there yet
install_missing() {
	missing=
	for package; do
		case $package in
		nodejs) command -v node >/dev/null && continue ;;
		esac
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
			grep -q 'ok installed' || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null ||
		die "needs these Debian packages:$missing"
	say "installing$missing"
	{
		apt-get update -qq &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends $missing
	} >"${TMPDIR:-/tmp}/penstock-apt.log" 2>&1 ||
		die "apt-get failed; see ${TMPDIR:-/tmp}/penstock-apt.log"
}

# distcheck compiles what the gcc build has compiled: from a cache it takes a third
export CCACHE_DIR="$top/build/ccache" CCACHE_NOHASHDIR=1
cached() {
	if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi
}

# build_tree NAME [CONFIGURE ARGUMENT...]: configure and make in build/NAME
build_tree() {
	name=$1
	shift
	dir=$top/build/$name
	mkdir -p "$dir"
	if [ ! -x "$top/configure" ] ||
	   [ "$top/configure.ac" -nt "$top/configure" ]; then
		say "making configure"
		(cd "$top" && autoreconf -fi) >"$dir/autoreconf.log" 2>&1 || {
			tail -n 20 "$dir/autoreconf.log" >&2
			die "autoreconf failed"
		}
	fi
	[ -f "$dir/Makefile" ] ||
		(cd "$dir" && "$top/configure" -q "$@") >"$dir/configure.log" 2>&1 || {
			tail -n 20 "$dir/configure.log" >&2
			die "configure failed; see $dir/config.log"
		}
	make -C "$dir" -s -j"$jobs" >"$dir/make.log" 2>&1 || {
		grep -E 'error|warning|\*\*\*' "$dir/make.log" | tail -n 20 >&2
		die "the build failed; see $dir/make.log"
	}
}
