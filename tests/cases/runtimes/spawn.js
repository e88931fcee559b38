// A server of Node starts a program and waits for its end with spawnSync: nothing else of it runs meanwhile.
const { spawnSync } = require("node:child_process");

let lost = 0;
for (let i = 0; i < 4; i++) {
    const since = process.hrtime.bigint();
    spawnSync("sleep", ["0.25"]);
    lost += Number(process.hrtime.bigint() - since) / 1e6;
}
// Starting and ending a program takes a few milliseconds.
console.error(`TRUTH who=node what=child behind=sleep lost_ms=${lost.toFixed(1)} unsure_ms=${4 * 5}`);
