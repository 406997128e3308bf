'use strict';
// The metrics of `snowdrift serve`, in Prometheus's text format.

/** @param {import('../../index.js').SnowFlake} flake */
function formatMetrics(flake) {
  const { issued, waits, waitedMs, clockRollbacks, endOfTime } = flake.stats();
  const { lease } = flake;
  /** @type {[name: string, type: string, text: string, value: number][]} */
  const metrics = [
    ['ids_issued_total', 'counter', 'IDs issued.', issued],
    ['waits_total', 'counter', 'Waits for the clock or the store.', waits],
    ['waited_seconds_total', 'counter', 'Time spent in these waits.', waitedMs / 1000],
    ['clock_rollbacks_total', 'counter', 'Clock rollbacks.', clockRollbacks],
    [
      'overflow_seconds',
      'gauge',
      'Unix time at which the timestamp overflows.',
      Number(endOfTime) / 1000,
    ],
  ];
  if (lease !== null) {
    const isHeld = Number(lease.state === 'held');
    metrics.push(
      ['lease_held', 'gauge', '1 while the slot is held and renewed in time.', isHeld],
      [
        'lease_ceiling_seconds',
        'gauge',
        'Unix time of the last ID that may be issued.',
        lease.ceiling / 1000,
      ],
      ['lease_renewals_total', 'counter', 'Renewals of the slot.', lease.renewals],
    );
  }
  const labels = `{datacenter="${flake.datacenterId}",worker="${flake.workerId}"}`;
  return metrics
    .filter(([, , , value]) => Number.isFinite(value))
    .map(
      ([name, type, text, value]) =>
        `# HELP snowdrift_${name} ${text}\n# TYPE snowdrift_${name} ${type}\nsnowdrift_${name}${labels} ${value}\n`,
    )
    .join('');
}

module.exports = { formatMetrics };
