// As jit.js.
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

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
    // Of the CPU, not of the clock: a busy machine gives more of it to what starts and compiles.
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long end = threads.getCurrentThreadCpuTime() + 3000000000L, sum = 0;
    while (threads.getCurrentThreadCpuTime() < end) sum += jittedOuter(2000);
    System.out.println("{\"sum\": " + sum + "}");
  }
}
