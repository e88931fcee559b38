// Makes code while it runs, leaves a map of it in /tmp under the number that it has for itself, and runs it until it is killed.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A function with a frame that counts down from 1,000,000.
static const unsigned char code[] = {
	0x55,                         // push %rbp
	0x48, 0x89, 0xe5,             // mov %rsp, %rbp
	0xb9, 0x40, 0x42, 0x0f, 0x00, // mov $1000000, %ecx
	0xff, 0xc9,                   // dec %ecx
	0x75, 0xfc,                   // jne to the line before
	0x5d,                         // pop %rbp
	0xc3,                         // ret
};

int main(void) {
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED) return 1;
	memcpy(made, code, sizeof code);
	if (mprotect(made, 4096, PROT_READ | PROT_EXEC) != 0) return 2;
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(path, "w");
	if (map == NULL) return 3;
	fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)(uintptr_t)made, sizeof code);
	fclose(map);
	printf("%d\n", getpid());
	fflush(stdout);
	// Whoever waits for it may be gone.
	alarm(120);
	void (*function)(void) = (void (*)(void))(uintptr_t)made;
	for (;;) function();
}
