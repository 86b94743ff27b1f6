/* metrics.c - counts and times of the service, as text for Prometheus.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"

/* Upper bounds in seconds: from a look-up in the journal to a kernel that is timed twice. */
static const double BOUNDS[KLI_BUCKETS] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                           0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5,
                                           5,      10,      25,     50,    100,    300};

void kli_histogram_add(kli_histogram *h, int64_t ns) {
    const double seconds = ns > 0 ? (double)ns / 1e9 : 0;
    int i = 0;
    while (i < KLI_BUCKETS && seconds > BOUNDS[i]) i++;
    h->buckets[i]++;
    h->count++;
    h->sum += seconds;
}

static void metric_head(kl_buf *out, const char *name, const char *type, const char *doc) {
    kl_buf_printf(out, "# HELP klineage_reward_%s %s\n# TYPE klineage_reward_%s %s\n", name, doc,
                  name, type);
}

static void gauge(kl_buf *out, const char *name, const char *doc, long long value) {
    metric_head(out, name, "gauge", doc);
    kl_buf_printf(out, "klineage_reward_%s %lld\n", name, value);
}

static void histogram(kl_buf *out, const char *name, const char *doc, const kli_histogram *h) {
    long long sum = 0;
    metric_head(out, name, "histogram", doc);
    for (int i = 0; i < KLI_BUCKETS; i++) {
        sum += h->buckets[i];
        kl_buf_printf(out, "klineage_reward_%s_bucket{le=\"%g\"} %lld\n", name, BOUNDS[i], sum);
    }
    kl_buf_printf(out, "klineage_reward_%s_bucket{le=\"+Inf\"} %lld\n", name, (long long)h->count);
    kl_buf_printf(out, "klineage_reward_%s_sum %.6f\nklineage_reward_%s_count %lld\n", name, h->sum,
                  name, (long long)h->count);
}

static void counter_lines(kl_buf *out, const kli_metrics *m) {
    static const struct {
        const char *name, *doc;
    } COUNTS[KLI_COUNTS] = {
        [KLI_COUNT_BATCHES] = {"batches_total", "batches that were accepted"},
        [KLI_COUNT_KERNELS] = {"kernels_total", "kernels of accepted batches"},
        [KLI_COUNT_HITS] = {"hits_total", "kernels answered from the journal at once"},
        [KLI_COUNT_COALESCED] = {"coalesced_total", "kernels that were being asked already"},
        [KLI_COUNT_JUDGED] = {"judged_total", "kernels that a gate judged"},
        [KLI_COUNT_FAILED] = {"failed_total", "kernels that could not be judged"},
        [KLI_COUNT_RESTARTS] = {"judge_restarts_total", "judges that ended and were started again"},
        [KLI_COUNT_UNAUDITED] = {"unaudited_total", "requests without a line in the audit log"},
    };
    for (int i = 0; i < KLI_COUNTS; i++) {
        metric_head(out, COUNTS[i].name, "counter", COUNTS[i].doc);
        kl_buf_printf(out, "klineage_reward_%s %lld\n", COUNTS[i].name, (long long)m->counts[i]);
    }
}

void kli_metrics_text(kl_buf *out, const kli_metrics *m, size_t waiting, size_t judged,
                      int judges) {
    gauge(out, "queue_depth", "kernels that wait for a judge", (long long)waiting);
    gauge(out, "judging", "kernels under judgement", (long long)judged);
    gauge(out, "judges", "processes that judge", judges);
    counter_lines(out, m);
    metric_head(out, "outcomes_total", "counter", "verdicts by outcome");
    for (int i = 0; i <= KL_OUTCOME_REFUSED; i++)
        kl_buf_printf(out, "klineage_reward_outcomes_total{outcome=\"%s\"} %lld\n",
                      kl_outcome_name((kl_outcome)i), (long long)m->outcomes[i]);
    metric_head(out, "responses_total", "counter", "answers to requests by status");
    for (int i = 0; i < (int)KL_COUNT(m->statuses); i++)
        if (m->statuses[i])
            kl_buf_printf(out, "klineage_reward_responses_total{status=\"%d\"} %lld\n", i,
                          (long long)m->statuses[i]);
    histogram(out, "wait_seconds", "from a question to its judge", &m->wait);
    histogram(out, "kernel_seconds", "compiles and runs of what was judged", &m->kernel);
    histogram(out, "beyond_seconds", "from a question to its answer, beyond wait and kernel",
              &m->beyond);
}
