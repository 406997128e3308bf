// Puts the metrics of snowdrift into the default registry of prom-client, for those who do not write its text by themselves.
import { Counter, Gauge } from 'prom-client';
import { metrics } from 'snowdrift/monitoring';

for (const { name, type, help } of metrics()) {
  const isCounter = type === 'counter';
  new (isCounter ? Counter : Gauge)({
    ...{ name, help, labelNames: ['datacenter', 'worker'] },
    collect() {
      this.reset();
      const { labels, value } = metrics().find((metric) => metric.name === name);
      if (value !== undefined) isCounter ? this.inc(labels, value) : this.set(labels, value);
    },
  });
}
