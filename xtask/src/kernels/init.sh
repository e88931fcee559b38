#!/bin/busybox sh
# The first process of a guest: the host's files below a layer that forgets, the folder `out` that does not, and then the
# script that the kernel's command line names.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module" || echo "GUEST: $module was refused"; done
mount -t tmpfs tmpfs /rw
mkdir /rw/upper /rw/work
mount -t virtiofs -o ro host /lower || poweroff -f
mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work overlay /root || poweroff -f
job=$(sed -n 's/.*ft\.job=\([^ ]*\).*/\1/p' /proc/cmdline)
mount --move /dev /root/dev
mount --move /proc /root/proc
mount --move /sys /root/sys
mount -t tmpfs tmpfs /root/run
# What is tested may lie there itself.
case $job in /tmp/*) ;; *) mount -t tmpfs tmpfs /root/tmp ;; esac
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t tmpfs tmpfs /root/dev/shm
mount -t tracefs tracefs /root/sys/kernel/tracing
mount -t bpf bpf /root/sys/fs/bpf
mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
mount -t virtiofs out "/root$(dirname "$job")" || poweroff -f
ifconfig lo 127.0.0.1 up
echo "GUEST-UP Linux $(uname -r), booted in $(cut -d. -f1 /root/proc/uptime) s"
exec switch_root /root /bin/sh -c '
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
    sh "$0"
    echo "GUEST-DONE"
    sync
    echo o > /proc/sysrq-trigger
    sleep 60' "$job"
