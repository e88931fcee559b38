// Two orders wait for the monitor of a stock that a counter keeps while it sleeps.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

class Monitor {
    static final Object stock = new Object();
    static final AtomicLong lost = new AtomicLong(), unsure = new AtomicLong();
    static long end;

    interface Body {
        void run() throws Exception;
    }

    static void countStock() throws Exception {
        synchronized (stock) {
            Thread.sleep(13);
        }
    }

    // For how long this thread has been ready without a CPU, in all.
    static long ready() throws Exception {
        return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[1]);
    }

    static void order() throws Exception {
        long before = ready(), since = System.nanoTime();
        synchronized (stock) {
        }
        long waited = System.nanoTime() - since;
        if (waited >= 20_000) {
            lost.addAndGet(waited);
            unsure.addAndGet(ready() - before);
        }
        Thread.sleep(1);
    }

    static Thread start(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                while (System.nanoTime() - end < 0) body.run();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, name);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        end = System.nanoTime() + 1_800_000_000L;
        Thread[] all = {
            start("counter", () -> {
                Thread.sleep(27);
                countStock();
            }),
            start("order-1", Monitor::order),
            start("order-2", Monitor::order),
        };
        for (Thread thread : all) thread.join();
        System.err.printf("TRUTH who=order- what=monitor behind=counter where=countStock lost_ms=%.1f unsure_ms=%.1f%n",
            lost.get() / 1e6, unsure.get() / 1e6);
    }
}
