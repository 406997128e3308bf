import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

// Instead of main.js, on a machine without Kubernetes: a worker for each core. All share one worker ID.
cluster.setupPrimary({ exec: join(import.meta.dirname, 'main.js') });
const fork = () => cluster.fork();
for (let n = 0; n < availableParallelism(); n++) fork();
cluster.on('exit', fork); // replaces a worker that died
process.once('SIGTERM', () => {
  cluster.off('exit', fork);
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill();
});
