// As jit.js.
public class Jit {
  static long jittedInner(int n) {
    long x = 1;
    for (int i = 0; i < n; i++) x = (x * 31 + i) % 1000003;
    return x;
  }

  static long jittedOuter(int n) {
    long sum = 0;
    for (int i = 0; i < 200; i++) sum += jittedInner(n);
    return sum;
  }

  public static void main(String[] none) {
    long end = System.nanoTime() + 3000000000L, sum = 0;
    while (System.nanoTime() < end) sum += jittedOuter(2000);
    System.out.println("{\"sum\": " + sum + "}");
  }
}
