#!/bin/sh
# tools/in_root.sh trixie "" "sh tools/boot_image.sh": an image that packaging/install.sh makes, started in QEMU.
#
# Makes a Debian with a kernel, installs the agent into it (--image), lays an invitation on its boot partition, and starts it beside
# a broker, an aggregator and a meter's serial adapter, which all stand on this machine's loopback. Ends well once the agent's status
# came, the invitation is gone from its partition, its password overwritten, and a second start would find agent and group as told.
# Eight minutes and 4 GB, of which the start is two. Only in a root that may be thrown away: it installs packages. PCs only (amd64).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d /var/tmp/boot.XXXXXX) card=$work/card fleet=$work/fleet
plain=26673 tls=26674 wait_s=${BOOT_WAIT_S:-1800}
chmod 0755 "$work"
# not /tmp: the agent's own state may not be there

fail() {
    echo "boot_image: $*" >&2
    tail -n 40 "$work"/*.log 2>/dev/null >&2 || true
    exit 1
}
[ "$(dpkg --print-architecture)" = amd64 ] || { echo "boot_image: only a PC is started: not tried" >&2; exit 77; }
trap 'for pid in $(cat "$work/pids" 2>/dev/null); do kill "$pid" 2>/dev/null || true; done; rm -rf --one-file-system "$work"' EXIT
beside() { # NAME COMMAND...: in the background until this ends
    log=$work/$1.log
    shift
    "$@" >"$log" 2>&1 &
    echo $! >>"$work/pids"
}
export DEBIAN_FRONTEND=noninteractive
install_packages="apt-get install -qqy --no-install-recommends"

# The system of the card: this one as it is, and what starts it.
mkdir -p "$card/tmp"
tar -C / --one-file-system --exclude ./tmp --exclude ./root --exclude ./var/tmp -cf - . | tar -C "$card" -xf -
mkdir -p "$card/proc" "$card/sys" "$card/dev" "$card/root" "$card/var/tmp" "$card/boot/firmware"
chroot "$card" sh -c "apt-get update -qq && $install_packages linux-image-amd64 systemd-sysv systemd-timesyncd udev dbus initramfs-tools zstd" \
    >"$work/card.log" 2>&1 || fail "no system for the card"
sh "$here/packaging/install.sh" agent --root "$card" --image
printf '/dev/vda / ext4 defaults 0 1\n/dev/vdb /boot/firmware vfat defaults 0 2\n' >"$card/etc/fstab"
printf '[Match]\nName=en*\n[Network]\nDHCP=yes\n' >"$card/etc/systemd/network/any.network"
printf '[Time]\nNTP=10.0.2.2\n' >"$card/etc/systemd/timesyncd.conf"
rm -f "$card/usr/sbin/policy-rc.d"
chroot "$card" systemctl -q enable systemd-networkd systemd-timesyncd systemd-time-wait-sync >>"$work/card.log" 2>&1

# The fleet on this machine.
$install_packages qemu-system-x86 mosquitto mtools dosfstools e2fsprogs >"$work/packages.log" 2>&1 || fail "no QEMU"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --constraint "$here/constraints.txt" "$here" "$here/agent" \
    "$here/aggregator[sign]" "$here/firmware_stubs" 2>/dev/null || fail "pip could not install the fleet"
edge() { "$work/venv/bin/edge-ldp" "$@"; }
edge aggregator setup "$fleet" --fleet village --host 10.0.2.2 --port $plain --tls-port $tls >"$work/setup.log"
sed -i "s/^listener $tls\$/& 127.0.0.1/" "$fleet/broker/mosquitto.conf"
edge aggregator devices invite -c "$fleet/aggregator.toml" home-1 --group elm-street --once --days 1 >"$work/invite.log"
chown -R mosquitto: "$fleet/broker"
password=$(sed -n 's/.*"password": *"\([^"]*\)".*/\1/p' "$fleet/invitations/home-1.invitation")
[ -n "$password" ] || fail "no password in the invitation"

# The two partitions.
truncate -s 64M "$work/boot.img"
mkfs.vfat "$work/boot.img" >/dev/null
mcopy -i "$work/boot.img" "$fleet/invitations/home-1.invitation" ::edge-ldp.invitation
kernel=$(echo "$card"/boot/vmlinuz-*) initrd=$(echo "$card"/boot/initrd.img-*)
cp "$kernel" "$work/kernel"
cp "$initrd" "$work/initrd"
mke2fs -q -t ext4 -d "$card" "$work/root.img" 2500M
rm -rf --one-file-system "$card"

cat >"$work/ntp.py" <<'PYTHON'
import socket, struct, time
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.bind(("127.0.0.1", 123))
while True:
    packet, whose = asked.recvfrom(512)
    now = time.time() + 2_208_988_800
    told = struct.pack("!II", int(now), int(now % 1 * 2**32))
    asked.sendto(struct.pack("!BBbbII4s", 0x24, 2, 6, -20, 0, 0, b"LOCL") + told + packet[40:48] + told + told, whose)
PYTHON
beside time python3 "$work/ntp.py"
beside broker mosquitto -c "$fleet/broker/mosquitto.conf"
sleep 2
beside aggregator edge aggregator run -c "$fleet/aggregator.toml"
beside meter edge simulate meter --link "$work/meter" --protocol dsmr --data constant:378 --step 1
for _ in $(seq 60); do [ -e "$work/meter" ] && break; sleep 1; done
[ -e "$work/meter" ] || fail "no meter"
patient="systemd.default_timeout_start_sec=900 systemd.default_device_timeout_sec=900"
# First in line: its clock goes on while others compute, and its services have time limits.
beside qemu nice -n -10 qemu-system-x86_64 -M q35 -m 768 -display none -monitor none -serial "file:$work/console.log" \
    -kernel "$work/kernel" -initrd "$work/initrd" \
    -append "root=/dev/vda rw console=ttyS0 systemd.log_target=kmsg systemd.journald.forward_to_console=1 $patient mitigations=off" \
    -drive "file=$work/root.img,format=raw,if=virtio,cache=unsafe" -drive "file=$work/boot.img,format=raw,if=virtio,cache=unsafe" \
    -netdev user,id=n -device virtio-net-pci,netdev=n,romfile= \
    -device qemu-xhci -chardev "serial,id=m,path=$(readlink "$work/meter")" -device usb-serial,chardev=m
qemu=$!
began=$(date +%s)
until edge aggregator devices list -c "$fleet/aggregator.toml" --json 2>/dev/null | grep -q '"state": "online"'; do
    kill -0 "$qemu" 2>/dev/null || fail "QEMU ended"
    [ $(($(date +%s) - began)) -lt "$wait_s" ] || fail "no status came in $wait_s s"
    sleep 5
done
echo "boot_image: a status came after $(($(date +%s) - began)) s"
edge aggregator devices list -c "$fleet/aggregator.toml"
sleep 40 # the card's own writing
kill "$qemu"
grep -a -m1 'Finished.*edge-ldp-agent-first' "$work/console.log" || fail "the first start did not end well"
grep -a -m1 'Started.*edge-ldp-agent\.service' "$work/console.log" || fail "the agent's unit did not start"
! mdir -i "$work/boot.img" ::edge-ldp.invitation >/dev/null 2>&1 || fail "the invitation is still there"
! grep -qaF "$password" "$work/boot.img" || fail "the password is still on the boot partition"
echo "boot_image: the invitation is gone from the boot partition, its password overwritten"
debugfs -R 'cat /etc/edge-ldp/agent.toml' "$work/root.img" 2>/dev/null | grep -q 'group = "elm-street"' || fail "no group"
debugfs -R 'stat /etc/systemd/system/multi-user.target.wants/edge-ldp-agent.service' "$work/root.img" 2>/dev/null |
    grep -q 'Type: symlink' || fail "the agent is not started again"
echo "boot_image: passed"
