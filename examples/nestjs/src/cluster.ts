import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

// Instead of main.js, on a machine without Kubernetes: a worker for each core. All share one worker ID.
cluster.setupPrimary({ exec: join(import.meta.dirname, 'main.js') });
let isEnding = false;
const fork = () => isEnding || cluster.fork();
for (let n = 0; n < availableParallelism(); n++) fork();
// Replaces a worker that died, but not at once: one that cannot start would keep all cores busy.
cluster.on('exit', () => setTimeout(fork, 1000));
// Ctrl-C reaches the workers, too. The primary must not end before them: they would crash, and keep the worker ID.
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => {
    isEnding = true;
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill();
  });
}
