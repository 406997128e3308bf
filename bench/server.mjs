// CPU per request of an HTTP server that draws one ID per request, against one that draws none.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { fileURLToPath } from 'node:url';
import { median } from './measure.mjs';

const CONNECTIONS = 16;

/** CPU per request in us, of handlers that alternate in one server. */
export async function server(ms) {
  const child = fork(fileURLToPath(new URL('server.cjs', import.meta.url)));
  const [port] = await once(child, 'message');
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const end = performance.now() + ms;
  const request = () =>
    new Promise((resolve, reject) => {
      get({ port, host: '127.0.0.1', agent }, (response) => {
        response.resume().on('end', resolve);
      }).on('error', reject);
    });
  const client = async () => {
    while (performance.now() < end) await request();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
  child.send('end');
  const [used] = await once(child, 'message');
  agent.destroy();
  // The first second warms up.
  return Object.fromEntries(
    Object.entries(used).map(([kind, all]) => [
      kind,
      median(all.slice(Math.floor(all.length / 4))),
    ]),
  );
}
