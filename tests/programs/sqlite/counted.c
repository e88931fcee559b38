/*
 * sqlite, all of it, with sleds and with the hooks of -finstrument-functions, which here count calls: `run N` puts N rows into a
 * table, looks for each and deletes half of them, `counted` is the answer; `tell` prints the calls of each function of the last
 * `run`, `FUNCTION CALLS`, and then `told`. What it does follows from N alone.
 */
#define _GNU_SOURCE
#define SQLITE_PRIVATE
#include "sqlite3.c"
#include <dlfcn.h>

#define PLAIN __attribute__((no_instrument_function, xray_never_instrument))
enum { SLOTS = 1 << 16 };

static struct {
    void *function;
    long calls;
} counts[SLOTS];

PLAIN void __cyg_profile_func_enter(void *function, void *caller) {
    unsigned slot = (unsigned)((unsigned long)function >> 4) % SLOTS;
    (void)caller;
    while (counts[slot].function && counts[slot].function != function) slot = (slot + 1) % SLOTS;
    counts[slot].function = function;
    counts[slot].calls++;
}

PLAIN void __cyg_profile_func_exit(void *function, void *caller) { (void)function, (void)caller; }

PLAIN static void must(int result, int expected) {
    if (result != expected) {
        fprintf(stderr, "sqlite says %d\n", result);
        exit(1);
    }
}

PLAIN static void run(sqlite3 *db, long rows) {
    sqlite3_stmt *statement;
    must(sqlite3_exec(db, "BEGIN; CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT); CREATE INDEX i ON t (v)", 0, 0, 0), SQLITE_OK);
    must(sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?, 'value ' || (? * 7919 % 10007))", -1, &statement, 0), SQLITE_OK);
    for (long row = 0; row < rows; row++) {
        sqlite3_bind_int64(statement, 1, row);
        sqlite3_bind_int64(statement, 2, row);
        must(sqlite3_step(statement), SQLITE_DONE);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    must(sqlite3_prepare_v2(db, "SELECT count(*) FROM t WHERE v = 'value ' || (? * 7919 % 10007)", -1, &statement, 0), SQLITE_OK);
    for (long row = 0; row < rows; row++) {
        sqlite3_bind_int64(statement, 1, row);
        must(sqlite3_step(statement), SQLITE_ROW);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    must(sqlite3_exec(db, "DELETE FROM t WHERE k % 2; DROP TABLE t; COMMIT", 0, 0, 0), SQLITE_OK);
}

PLAIN static void tell(void) {
    for (int slot = 0; slot < SLOTS; slot++) {
        Dl_info info;
        void *function = counts[slot].function;
        if (function && dladdr(function, &info) && info.dli_saddr == function)
            printf("%s %ld\n", info.dli_sname, counts[slot].calls);
    }
}

PLAIN int main(void) {
    char line[64];
    long rows;
    sqlite3 *db;
    must(sqlite3_open(":memory:", &db), SQLITE_OK);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %ld", &rows) == 1) {
            memset(counts, 0, sizeof counts);
            run(db, rows);
            puts("counted");
        } else {
            tell();
            puts("told");
        }
    }
    return 0;
}
