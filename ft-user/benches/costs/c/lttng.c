/* The loops of src/loops.rs around a tracepoint of LTTng-UST, and a function that is one event. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#define EVENT(a, b) lttng_ust_tracepoint(costs, two_words, a, b)

/* One step of a chain, which stays in a register of its own. */
#define STEP(x)                                                                                    \
	do {                                                                                       \
		x ^= x << 13;                                                                      \
		x ^= x >> 7;                                                                       \
		x ^= x << 17;                                                                      \
		__asm__("" : "+r"(x));                                                             \
	} while (0)

#define FOUR(...) __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__
#define SIXTEEN(...) FOUR(__VA_ARGS__); FOUR(__VA_ARGS__); FOUR(__VA_ARGS__); FOUR(__VA_ARGS__)

#define LATENCY(name, ...)                                                                         \
	uint64_t name(uint64_t n, uint64_t x)                                                      \
	{                                                                                          \
		for (uint64_t i = 0; i < n; i++) {                                                 \
			STEP(x);                                                                   \
			__asm__ volatile("" ::"r"(i));                                             \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		return x;                                                                          \
	}

#define ISSUE(name, ...)                                                                           \
	uint64_t name(uint64_t n, uint64_t x)                                                      \
	{                                                                                          \
		uint64_t a = x + 1, b = x + 2, c = x + 3, d = x + 4, e = x + 5;                    \
		for (uint64_t i = 0; i < n; i++) {                                                 \
			STEP(x); STEP(a); STEP(b); STEP(c); STEP(d); STEP(e);                      \
			__asm__ volatile("" ::"r"(i));                                             \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		return x ^ a ^ b ^ c ^ d ^ e;                                                      \
	}

LATENCY(costs_c_base_latency, )
ISSUE(costs_c_base_issue, )
LATENCY(costs_c_one_latency, EVENT(x, i))
ISSUE(costs_c_one_issue, EVENT(x, i))
ISSUE(costs_c_sixteen_issue, SIXTEEN(EVENT(x, i)))

void costs_c_event(uint64_t a, uint64_t b)
{
	EVENT(a, b);
}
