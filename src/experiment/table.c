/* table.c - where every track stands, drawn in place on a terminal while they run.
 *
 * What it shows it reads from the journal, like everybody else: the rows that the tracks' own
 * processes have written.  It draws seldom, and more seldom where reading takes long: measurements
 * go on beside it.  Not here: what the tracks come to (that is told after the run, by the command).
 * SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EVERY_NS INT64_C(2000000000)
#define TABLE_SHARE 20 /* a twentieth of the time may go into the table */
#define MOST_NS INT64_C(15000000000)
#define MIN_COLUMNS 40
#define MAX_COLUMNS 200

/* ---- from rows of the journal ------------------------------------------------------------ */

static kli_standing *standing_of(kli_standing *rows, int n, kl_str track) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(track, kl_str_of(rows[i].name))) return &rows[i];
    return NULL;
}

/* A proposal has a parent; the start, the reference and the end have none. */
static bool is_proposal(const json_t *step) {
    return kli_json_text_or(step, "parent", (kl_str){0}).len > 0 &&
           !kl_str_eq(kli_json_text_or(step, "outcome", (kl_str){0}), KL_S("done"));
}

/* What is best so far; once the end timed it against the start and did not call it faster, the
 * start. */
static void take_best(kli_standing *s, const json_t *step) {
    const double ratio = kli_json_real_or(step, "ratio", 0);
    const bool given = !kli_json_text_or(step, "parent", (kl_str){0}).len;
    const kl_str action = kli_json_text_or(step, "action", (kl_str){0});
    if (given && kl_str_eq(action, KL_S("start"))) s->start = ratio;
    if (kli_json_bool_or(step, "best", false)) s->best = ratio;
    if (given && kl_str_eq(action, KL_S("end")) && ratio > 0 &&
        !kli_json_bool_or(step, "accepted", false))
        s->best = s->start;
}

void kli_standings_read(kli_standing *rows, int n, const kl_store_step *steps, size_t n_steps) {
    for (int i = 0; i < n; i++)
        rows[i].proposals = 0, rows[i].best = rows[i].start = 0, rows[i].spent_microusd = 0;
    for (size_t i = 0; i < n_steps; i++) {
        json_t *step;
        kli_standing *s = standing_of(rows, n, steps[i].track);
        if (!s || kli_json_parse(&step, steps[i].json, KL_S("journal"), kl_ignored())) continue;
        int64_t spent = kli_json_int_or(step, "spent_microusd", 0);
        s->proposals += is_proposal(step);
        take_best(s, step);
        if (spent > s->spent_microusd) s->spent_microusd = spent;
        json_decref(step);
    }
}

/* ---- to text ----------------------------------------------------------------------------- */

static const char *state_name(kl_track_state s) {
    return s == KL_TRACK_RUNS ? "running" : s == KL_TRACK_ENDED ? "ended" : "waiting";
}

/* One line, cut: a line that wraps would be two when it is rewritten. */
static KL_PRINTF(3, 4) void table_line(kl_buf *out, int columns, const char *fmt, ...) {
    KL_ASSERT(columns <= MAX_COLUMNS);
    char text[MAX_COLUMNS + 1];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kl_buf_printf(out, "%.*s\n", columns, text);
}

static void row_line(kl_buf *out, const kli_standing *s, int columns, int width) {
    char best[32] = "-";
    if (s->best > 0) snprintf(best, sizeof best, "%.3gx", s->best);
    table_line(out, columns, "%-*.*s  %-7s %9d %9s %9.4f", width, width, s->name,
               state_name(s->state), s->proposals, best, (double)s->spent_microusd / 1e6);
}

static int table_count(const kli_standing *rows, int n, kl_track_state state) {
    int found = 0;
    for (int i = 0; i < n; i++) found += rows[i].state == state;
    return found;
}

static void sum_line(kl_buf *out, const kli_standing *rows, int n, int columns, int64_t most,
                     int64_t elapsed_ns) {
    int64_t spent = 0, seconds = elapsed_ns / 1000000000;
    char of[40] = "";
    for (int i = 0; i < n; i++) spent += rows[i].spent_microusd;
    if (most > 0) snprintf(of, sizeof of, " of at most $%.2f", (double)most / 1e6);
    table_line(out, columns, "%d of %d ended, %d running; $%.4f%s; %lld:%02lld",
               table_count(rows, n, KL_TRACK_ENDED), n, table_count(rows, n, KL_TRACK_RUNS),
               (double)spent / 1e6, of, (long long)(seconds / 60), (long long)(seconds % 60));
}

int kli_standings_render(kl_buf *out, const kli_standing *rows, int n, int lines, int columns,
                         int64_t most, int64_t elapsed_ns) {
    const kl_track_state order[] = {KL_TRACK_RUNS, KL_TRACK_ENDED, KL_TRACK_WAITS};
    int width = 10, room = lines - 3, shown = 0; /* heading, what has no room, sum */
    if (columns > MAX_COLUMNS) columns = MAX_COLUMNS;
    for (int i = 0; i < n; i++)
        if ((int)strlen(rows[i].name) > width) width = (int)strlen(rows[i].name);
    if (width > columns - 40) width = columns > 50 ? columns - 40 : 10;
    table_line(out, columns, "%-*s  %-7s %9s %9s %9s", width, "track", "state", "proposals", "best",
               "dollars");
    if (n <= room) {
        for (; shown < n; shown++) row_line(out, &rows[shown], columns, width);
    } else {
        for (size_t k = 0; k < KL_COUNT(order); k++)
            for (int i = 0; i < n && shown < room; i++)
                if (rows[i].state == order[k]) row_line(out, &rows[i], columns, width), shown++;
        table_line(out, columns, "... and %d more", n - shown);
    }
    KL_ASSERT(shown <= n);
    sum_line(out, rows, n, columns, most, elapsed_ns);
    return shown + 2 + (n > shown);
}

/* ---- on the screen ----------------------------------------------------------------------- */

void kli_table_clear(kli_experiment_table *t) {
    KL_ASSERT(t->drawn >= 0);
    if (t->drawn) fprintf(stderr, "\033[%dA\r\033[J", t->drawn);
    t->drawn = 0;
    fflush(stderr);
}

static void table_draw(kli_experiment_table *t) {
    struct winsize size;
    kl_buf text = {0};
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 5 &&
                 size.ws_col > MIN_COLUMNS;
    int lines = kli_standings_render(&text, t->rows, t->n, known ? size.ws_row - 1 : 23,
                                     known ? size.ws_col - 1 : 79, t->most_microusd,
                                     kli_now_ns() - t->start_ns);
    kli_table_clear(t);
    fwrite(text.ptr, 1, text.len, stderr);
    fflush(stderr);
    t->drawn = lines;
    kl_buf_fini(&text);
}

static void read_journal(kli_experiment_table *t) {
    kl_store_step *steps;
    size_t n = 0;
    kl_arena *a = kl_arena_new();
    if (!kl_store_step_list(&steps, &n, kl_run_store(t->run), a, kl_run_id(t->run), kl_ignored()))
        kli_standings_read(t->rows, t->n, steps, n);
    kl_arena_free(a);
}

void kli_table_tick(void *table, const kl_track_state *states, int n) {
    kli_experiment_table *t = table;
    int64_t now = kli_now_ns();
    if (now < t->next_ns) return;
    KL_ASSERT(n == t->n);
    for (int i = 0; i < n; i++) t->rows[i].state = states[i];
    read_journal(t); /* one that cannot be read now is read next time */
    table_draw(t);
    int64_t took = kli_now_ns() - now;
    int64_t pause = took * TABLE_SHARE > EVERY_NS ? took * TABLE_SHARE : EVERY_NS;
    t->next_ns = now + (pause < MOST_NS ? pause : MOST_NS);
}
