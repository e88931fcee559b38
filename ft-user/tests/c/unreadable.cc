// Events whose text cannot be read, and a handler that throws: in the first event of a thread, or in later ones.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <feather_trace.h>

static void on_segv(int) { throw 7; }

static volatile int bad = 1;

[[gnu::noinline, gnu::noipa]] static void tell() {
    FT_EVENT("unreadable.text", "", reinterpret_cast<const char *>(bad), ft_text("behind", 6));
}

int main(int argc, char **argv) {
    struct sigaction handling = {};
    handling.sa_handler = on_segv;
    handling.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &handling, nullptr);
    if (argc != 2 || ft_init() != 0) return 2;
    if (std::strcmp(argv[1], "later") == 0) ft_thread_init();
    int caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            tell();
        } catch (int thrown) {
            caught += thrown == 7;
        }
    }
    std::printf("caught %d\n", caught);
}
