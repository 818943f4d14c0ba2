# What `roots.py` does in a clean root with the package: install, use, upgrade, remove, install again, purge.
packages=/var/cache/apt/archives/lair

fail() {
	echo "FAILED: $*"
	exit 1
}

same() {
	[[ $1 == "$2" ]] || fail "it is \"$1\", and should be \"$2\""
}

install() {
	apt-get -qq install --yes "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && fail "apt-get install $*"; }
}

left_behind() {
	find / -xdev \( -path /src -o -path /proc -o -path /sys -o -path /root/lair -o -path /home -o -path "$packages" -o -path /tmp \) \
		-prune -o -name '*lair*' -print
}

apt-get -qq update
dpkg-deb -R "$packages"/lair_0.1.0_*.deb /tmp/next
sed -i 's/^Version: .*/Version: 0.1.1/' /tmp/next/DEBIAN/control
dpkg-deb --root-owner-group -b /tmp/next /tmp/lair_0.1.1.deb >/dev/null

echo "== install"
# What it recommends, but not what those recommend in turn.
mapfile -t recommended < <(dpkg-deb -f "$packages"/lair_0.1.0_*.deb Recommends | tr ',' '\n' | grep -o 'python3-[a-z]*')
[[ ${#recommended[@]} == 4 ]] || fail "it recommends ${recommended[*]}"
install --no-install-recommends "$packages"/lair_0.1.0_*.deb "${recommended[@]}"
getent passwd lair >/dev/null || fail "there is no user lair"
bash -c 'source /usr/share/bash-completion/completions/lair && complete -p lair' >/dev/null || fail "no completion"
if [[ -e /etc/apparmor.d/abi/4.0 ]]; then
	[[ -e /etc/apparmor.d/lair-kernel ]] || fail "no profile for AppArmor"
fi
if [[ -e /etc/apparmor.d/lair-kernel ]]; then
	install --no-install-recommends apparmor
	apparmor_parser --skip-kernel-load --skip-cache /etc/apparmor.d/lair-kernel || fail "AppArmor does not read the profile"
	same "$(sed '1,/{$/d; /^}/,$d' /etc/apparmor.d/lair-kernel | grep -o '[^ ].*')" \
		"userns,"$'\n'"include if exists <local/lair-kernel>"
fi

echo "== README.md, its first screen"
@README@
echo "== README.md, from Python: the client from its directory, as sdist and as wheel"
install --no-install-recommends python3-zmq python3-msgpack python3-venv flit
cd /root/lair/client/python
files=$(find . | sort)
python3 -c 'from flit_core import buildapi; [build("/tmp/dist") for build in (buildapi.build_sdist, buildapi.build_wheel)]'
for client in . /tmp/dist/*.tar.gz /tmp/dist/*.whl; do
	python3 -m venv --system-site-packages --clear /tmp/venv
	/tmp/venv/bin/pip install --quiet --no-cache-dir --no-index --no-build-isolation "$client" || fail "pip install $client"
	(cd / && /tmp/venv/bin/python -c @PYTHON@) || fail "the example in Python, with $client"
	(cd / && /tmp/venv/bin/python -c 'import lair; assert lair.__file__.startswith("/tmp/venv/")') || fail "it is another lair"
done
same "$(find . | sort)" "$files"
cd /root/lair

echo "== an ordinary user, and a daemon of the user lair"
useradd --create-home bob
same "$(su bob -c "lair exec '6 * 7'" 2>&1)" 42
su bob -c "lair stop" >/dev/null
mkdir -m 700 /run/own
chown lair:lair /run/own
own=(runuser -u lair -- env HOME=/run/own LAIR_CONFIG=/etc/lair/sessions.conf LAIR_SOCKET=/run/own/socket lair)
same "$("${own[@]}" exec '6 * 7' 2>&1)" 42
"${own[@]}" stop >/dev/null

echo "== upgrade, with a live session and a changed file of settings"
lair exec -s stays 'kept = 7'
echo "# changed" >>/etc/lair/sessions.conf
before=$(lair status | grep -o 'router, pid [0-9]*')
install --no-install-recommends /tmp/lair_0.1.1.deb
same "$(lair exec -s stays 'kept')" 7
[[ $(lair status | grep -o 'router, pid [0-9]*') != "$before" ]] || fail "the old router goes on"
grep -q '^# changed' /etc/lair/sessions.conf || fail "the settings are lost"

echo "== remove"
lair save stays >/dev/null
apt-get -qq remove --yes lair >/dev/null
[[ ! -S /run/lair/socket ]] || fail "there is a laird"
[[ ! -e /usr/bin/lair ]] || fail "there is a program"
grep -q '^# changed' /etc/lair/sessions.conf || fail "the settings are lost"
[[ -n $(find /var/lib/lair -type f) ]] || fail "what was saved is lost"

echo "== install again"
install --no-install-recommends /tmp/lair_0.1.1.deb
same "$(lair exec -s stays 'kept' 2>/dev/null)" 7

echo "== purge"
apt-get -qq purge --yes lair >/dev/null
same "$(left_behind)" ""
same "$(ls /etc/lair /var/lib/lair 2>/dev/null)" ""
