# What a guest does; before this, `out`, `agent`, `built`, `locks`, `programs`, `end_to_end`, `truths`, `limit`, `short`,
# `slow`, `going` and `missing` are set. Each check leaves a line in `results`, and what it printed in a file of its name.
check() {
    name=$1
    shift
    began=$(cut -d. -f1 /proc/uptime)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null
    echo "$name $? $(($(cut -d. -f1 /proc/uptime) - began))" >>"$out/results"
}
# A recording; it is converted and judged outside, which is quicker.
recording() {
    name=$1
    shift
    check "$name" "$agent" record --no-convert -o "$out/trace-$name" "$@"
}
export FT_KERNEL_TEST_LOG="$out/ledger" FT_BUILT=1 FT_GUEST=1 FT_PRELOAD="$built/libft_preload.so"
subject=$built/examples/subject

check doctor "$agent" doctor
recording demo -- "$built/examples/demo" --seconds 2

# A CPU goes and comes back, slowly and then at once; where there are enough, one is missing at first, so that the numbers
# have a hole. The work is counted and not timed, for a busy machine does little of it in a second. What shows that a CPU is
# recorded is an event of perf's of its own: samples, or, where their timers would be all that so many CPUs get done, page
# faults.
seen=samples group=profile turns=20000
[ -z "$slow" ] || { seen=page_faults group=fault turns=0; }
hole=/sys/devices/system/cpu/cpu$missing/online
[ -e "$hole" ] && echo 0 >"$hole"
recording hotplug -k default,$group -- sh -ec '
    going=$1 missing=$2 hole=$3 turns=$4 seen=$5 online=/sys/devices/system/cpu/cpu$1/online
    at() { echo "$1 $(cut -d" " -f1 /proc/uptime)"; }
    work() { taskset -c "$1" sh -c "i=0; while [ \$i -lt $turns ]; do i=\$((i+1)); done"; }
    echo "cpus $going $missing $seen"
    at begins
    work $going
    for gone in 0.5 0.1 0 0; do
        echo 0 >"$online"
        at gone
        sleep "$gone"
        at comes
        echo 1 >"$online"
        [ ! -e "$hole" ] || echo 1 >"$hole"
        sleep 0.5
        at back
        work $going
        at goes
    done
    [ ! -e "$hole" ] || work $missing
    at ends' sh "$going" "$missing" "$hole" "$turns" "$seen"
cp "$out/hotplug.log" "$out/hotplug.times"
[ -z "$short" ] || exit 0

recording groups -k all -- "$subject" kernel-groups 100
recording preload --preload -- "$locks"

group=/sys/fs/cgroup/guest
mkdir "$group"
recording cgroup --cgroup "$group" -d 4s &
recorder=$!
while [ ! -e "$out/trace-cgroup/spool/segment-000000.ft" ] && kill -0 "$recorder"; do sleep 0.1; done
sh -c 'echo $$ >"$1/cgroup.procs"; exec "$0" ping-pong 50' "$subject" "$group" >"$out/member.log" 2>&1
wait "$recorder"

# Groups have quotas.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
check programs "$programs" --test-threads 1
# These are recorded here, and judged outside.
export FT_RECORD="$out/truths"
for truth in $truths; do
    check "truth-$truth" "$end_to_end" --exact "$truth"
done
