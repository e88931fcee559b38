import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One thread holds a monitor, or a ReentrantLock, until the kernel says that the other one sleeps at a futex. Prints for each
 * wait when the waiter began and had the lock, between which times it was seen to sleep, and when the holder began to release
 * the lock and had done so. Options with which no wait is for the machine's own work: -Xint -XX:+UseSerialGC
 * -XX:+UnlockDiagnosticVMOptions -XX:GuaranteedSafepointInterval=0.
 */
final class Locks {
    private static final Object MONITOR = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();

    /** Of the waiter: its number, since when it is about to wait, and when it had the lock. */
    private static volatile long waiter, begun, had;

    /** Which lock is to be waited for; null when nothing is left to do. */
    private static volatile Boolean turn;

    /** How many waits were asked for, and how many are over. */
    private static volatile int asked, over;

    private static long tid() throws Exception {
        // …/task/NUMBER
        return Long.parseLong(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
    }

    private static void pause() throws InterruptedException {
        Thread.sleep(0, 200_000);
    }

    private static void want() {
        try {
            waiter = tid();
            for (int i = 0;; i++) {
                while (asked == i) pause();
                if (turn == null) return;
                begun = System.nanoTime();
                if (turn) {
                    synchronized (MONITOR) {
                        had = System.nanoTime();
                    }
                } else {
                    LOCK.lock();
                    had = System.nanoTime();
                    LOCK.unlock();
                }
                over = i + 1;
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Between these times the kernel said that the waiter sleeps at a futex. */
    private static final long[] seen = new long[2];

    /** Returns when the waiter sleeps, and has for a moment. */
    private static void sleeps() throws Exception {
        Path call = Path.of("/proc/self/task/" + waiter + "/syscall");
        while (begun == 0) pause();
        for (;; pause()) {
            seen[0] = System.nanoTime();
            String number = Files.readString(call);
            seen[1] = System.nanoTime();
            // That of futex(2).
            if (number.startsWith("202 ")) break;
        }
        Thread.sleep(2);
    }

    /** One wait; what `release` does ends it. */
    private static String ended(String what, long wakes) {
        long woke = System.nanoTime();
        int wait = asked;
        while (over < wait) Thread.onSpinWait();
        return String.format(
            "{\"what\": \"%s\", \"around\": [%d, %d], \"seen\": [%d, %d], \"wakes\": [%d, %d]}",
            what, begun, had, seen[0], seen[1], wakes, woke);
    }

    private static void ask(boolean monitor) throws Exception {
        begun = 0;
        turn = monitor;
        asked = asked + 1;
        sleeps();
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        long[] holder = new long[1];
        StringBuilder told = new StringBuilder();
        Thread second = new Thread(Locks::want, "waiter");
        second.start();
        while (waiter == 0) pause();
        holder[0] = tid();
        for (int i = 0; i < rounds; i++) {
            long wakes;
            synchronized (MONITOR) {
                ask(true);
                wakes = System.nanoTime();
            }
            told.append(told.length() > 0 ? ", " : "").append(ended("monitor", wakes));
            LOCK.lock();
            ask(false);
            wakes = System.nanoTime();
            LOCK.unlock();
            told.append(", ").append(ended("lock", wakes));
        }
        turn = null;
        asked = asked + 1;
        second.join();
        System.out.printf("{\"waiter\": %d, \"holder\": %d, \"waits\": [%s]}%n", waiter, holder[0], told);
    }
}
