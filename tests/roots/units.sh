# What `roots.py` does in a root that systemd has booted: the package's units of the system and of users, their sockets, upgrade and removal.
packages=/var/cache/lair

fail() {
	echo "FAILED: $*"
	journalctl --no-pager -u lair
	exit 1
}

same() {
	[[ $1 == "$2" ]] || fail "it is \"$1\", and should be \"$2\""
}

is() {
	same "$1: $("${@:3}" is-active "$1" || true)" "$1: $2"
}

# Programs of Lair, by what they are called. Nothing else of ours is called so.
left() {
	cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^lair' || true
}

until systemctl is-active --quiet dbus systemd-logind; do sleep 0.1; done
# systemd-nspawn lets nobody write to groups of version 1; systemd looks for that once.
for controller in memory pids cpu; do
	[[ ! -d /sys/fs/cgroup/$controller ]] || mount -o remount,bind,rw "/sys/fs/cgroup/$controller"
done
systemctl daemon-reexec

echo "== nothing was started"
is lair inactive systemctl
same "$(systemctl is-enabled lair lair.socket | sort -u)" disabled

echo "== the unit of the system"
systemctl start lair
is lair active systemctl
lair exec -s a 'x = 7'
same "$(lair exec -s a x)" 7
same "$(lair info a | awk '$1 == "cage" { print $2 }')" strong
same "$(lair exec -s a 'open("/proc/self/cgroup").read().count("/lair-") > 0')" True
journalctl -u lair -o cat --no-pager | grep -q 'listening on /run/lair/socket' || fail "the journal has nothing of laird's"
before=$(systemctl show -P MainPID lair)
systemctl reload lair
same "$(lair exec -s a x)" 7

echo "== restart, and a laird that is killed"
systemctl restart lair
[[ $(systemctl show -P MainPID lair) != "$before" ]] || fail "it was not begun again"
[[ $(lair exec -s a x 2>&1 || true) == *"laird was stopped"* ]] || fail "nobody says that the session is new"
kill -KILL "$(systemctl show -P MainPID lair)"
until [[ $(systemctl show -P NRestarts lair) == 1 ]] && systemctl is-active --quiet lair; do sleep 0.1; done
[[ $(lair exec -s a x 2>&1 || true) == *"laird was killed"* ]] || fail "nobody says that the session is new"

echo "== stop, with a live session: nothing is left"
lair exec -s a --detach 'while True: pass' >/dev/null
systemctl stop lair
is lair inactive systemctl
same "$(left)" 0
same "$(find /sys/fs/cgroup/ -name 'lair*')" ""
same "$(ls -A /var/lib/lair/workspaces)" ""

echo "== the socket of the system"
systemctl start lair.socket
is lair inactive systemctl
same "$(lair exec '6 * 7')" 42
is lair active systemctl
lair stop >/dev/null
is lair.socket active systemctl
same "$(lair exec -s a '6 * 7')" 42
is lair active systemctl
systemctl stop lair.socket lair
same "$(left)" 0

echo "== a laird is there already"
lair start >/dev/null
! systemctl start lair 2>/dev/null || fail "there are two"
is lair failed systemctl
same "$(systemctl show -P NRestarts lair)" 0
lair stop >/dev/null
systemctl start lair
systemctl stop lair

echo "== a user's"
useradd --create-home bob
loginctl enable-linger bob
until [[ -S /run/user/$(id -u bob)/bus ]]; do sleep 0.1; done
bob=(runuser -u bob -- env HOME=/home/bob "XDG_RUNTIME_DIR=/run/user/$(id -u bob)")
"${bob[@]}" systemctl --user start lair
"${bob[@]}" lair exec -s b 'x = 7'
same "$("${bob[@]}" lair exec -s b x)" 7
"${bob[@]}" systemctl --user stop lair
same "$(left)" 0
"${bob[@]}" systemctl --user start lair.socket
is lair inactive "${bob[@]}" systemctl --user
same "$("${bob[@]}" lair exec '6 * 7')" 42
is lair active "${bob[@]}" systemctl --user
"${bob[@]}" systemctl --user stop lair.socket lair
same "$(left)" 0

echo "== the user lair, then root again"
for kind in service socket; do
	mkdir "/etc/systemd/system/lair.$kind.d"
done
cp /usr/share/doc/lair/examples/own-user.conf /etc/systemd/system/lair.service.d/
cp /usr/share/doc/lair/examples/own-user-socket.conf /etc/systemd/system/lair.socket.d/
systemctl daemon-reload
own=(runuser -u lair -- env LAIR_SOCKET=/run/lair/socket lair)
systemctl start lair
same "$("${own[@]}" exec '6 * 7')" 42
same "$("${own[@]}" exec '__import__("os").getuid()')" "$(id -u lair)"
systemctl stop lair
systemctl start lair.socket
same "$("${own[@]}" exec '6 * 7')" 42
systemctl stop lair.socket lair
rm -r /etc/systemd/system/lair.{service,socket}.d
systemctl daemon-reload
systemctl start lair
lair exec -s stays 'kept = 7'

echo "== upgrade, with a live session"
dpkg-deb -R "$packages"/lair_0.1.0_*.deb /tmp/next
sed -i 's/^Version: .*/Version: 0.1.1/' /tmp/next/DEBIAN/control
dpkg-deb --root-owner-group -b /tmp/next /tmp/lair_0.1.1.deb >/dev/null
before=$(systemctl show -P MainPID lair) router=$(lair status | grep -o 'router, pid [0-9]*')
dpkg --install /tmp/lair_0.1.1.deb >/dev/null
is lair active systemctl
same "$(systemctl show -P MainPID lair)" "$before"
[[ $(lair status | grep -o 'router, pid [0-9]*') != "$router" ]] || fail "the old router goes on"
same "$(lair exec -s stays kept)" 7

echo "== remove, and nothing is left"
systemctl enable --quiet lair
dpkg --remove lair >/dev/null
same "$(left)" 0
same "$(find /sys/fs/cgroup/ -name 'lair*')" ""

echo "== install again, for good, and purge"
dpkg --install /tmp/lair_0.1.1.deb >/dev/null
is lair inactive systemctl
systemctl enable --quiet --now lair
same "$(lair exec '6 * 7')" 42
dpkg --purge lair >/dev/null
same "$(left)" 0
same "$(find /etc/systemd /run/systemd/system /var/lib/lair -name 'lair*' 2>/dev/null)" ""
same "$(systemctl --failed --plain --no-legend)" ""
echo "== done"
