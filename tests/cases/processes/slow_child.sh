#!/bin/bash
# A script waits for a program that it starts again and again, and that sleeps.
lost=0
for _ in 1 2 3 4 5 6; do
    since=${EPOCHREALTIME/[.,]/}
    sleep 0.2
    lost=$((lost + ${EPOCHREALTIME/[.,]/} - since))
done
echo "TRUTH who=slow_child.sh what=child behind=sleep lost_ms=$((lost / 1000)) unsure_ms=$((6 * 4))" >&2
