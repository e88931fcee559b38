// Spends its time in a function that is compiled while it runs, called from another.
function jittedInner(n) {
  let x = 1;
  for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003;
  return x;
}
function jittedOuter(n) {
  let sum = 0;
  for (let i = 0; i < 200; i++) sum += jittedInner(n);
  return sum;
}
// Of the CPU, not of the clock: a busy machine gives more of it to what starts and compiles.
const end = process.cpuUsage().user + 2000000;
let sum = 0;
while (process.cpuUsage().user < end) sum += jittedOuter(2000);
console.log(JSON.stringify({sum}));
