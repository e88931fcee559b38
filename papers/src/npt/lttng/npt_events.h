/* The trace point in the loop, as LTTng-UST declares it: the number of the pass. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER npt

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./npt_events.h"

#if !defined(NPT_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define NPT_EVENTS_H

#include <stdint.h>
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(npt, pass,
	LTTNG_UST_TP_ARGS(uint64_t, pass),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, pass, pass)))

#endif

#include <lttng/tracepoint-event.h>
