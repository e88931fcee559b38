/* Threads that may be cancelled at any instruction are so at their first event, or beside it. */
#include <feather_trace.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *unused) {
    int n;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    /* More than the ring has room for. */
    for (n = 0;; n++)
        FT_EVENT("cancelled.event", "", n);
    return unused;
}

int main(void) {
    int i;
    ft_init();
    for (i = 0; i < 2000; i++) {
        pthread_t thread;
        volatile int n;
        void *result;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 1;
        for (n = 0; n < i % 97 * 400; n++) {
        }
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED)
            return 2;
    }
    puts("done");
    return 0;
}
