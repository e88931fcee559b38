# initramfs.sh ROOT INIT OUT: a first file system with busybox, INIT, and the modules that reach the host's files.
# ROOT is a kernel's package, unpacked.
set -eu
root=$1 init=$2 out=$3
# From Linux 7.2 on Debian has the modules below /usr.
[ -d "$root/lib/modules" ] || root=$root/usr
version=$(ls "$root/lib/modules")
# It misses lists that a package for a first installation has.
depmod -b "$root" "$version" 2>/dev/null

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/bin" "$new/proc" "$new/sys" "$new/dev" "$new/modules" "$new/lower" "$new/rw" "$new/root"
cp "$(command -v busybox)" "$new/bin/busybox"
cp "$init" "$new/init"
chmod +x "$new/init"

# A module behind those that it depends on, each once.
n=10
add() {
    line=$(grep -E "/$1\.ko(\.xz|\.zst)?:" "$root/lib/modules/$version/modules.dep") || return 0
    for file in $(echo "${line#*:}" | tr ' ' '\n' | tac) "${line%%:*}"; do
        name=$(basename "$file")
        name=${name%%.ko*}
        if ls "$new"/modules/*-"$name".ko >/dev/null 2>&1; then continue; fi
        n=$((n + 1))
        case $file in
        *.xz) xz -dc "$root/lib/modules/$version/$file" ;;
        *.zst) zstd -dc "$root/lib/modules/$version/$file" ;;
        *) cat "$root/lib/modules/$version/$file" ;;
        esac >"$new/modules/$n-$name.ko"
    done
}
for module in virtio_pci fuse virtiofs overlay; do add "$module"; done

(cd "$new" && find . | cpio --quiet -o -H newc | gzip -1) >"$out"
