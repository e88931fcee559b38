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
const end = Date.now() + 2000;
let sum = 0;
while (Date.now() < end) sum += jittedOuter(2000);
console.log(JSON.stringify({sum}));
