// Answers each request with an ID. datacenterId, SNOWDRIFT_LEASE and, for a claim, workerId are in its environment.
import { createServer } from 'node:http';
import { SnowFlake } from 'snowdrift';

const flake = await SnowFlake.ready(); // takes the lease
const server = createServer((_, response) => {
  if (!server.listening) response.setHeader('Connection', 'close'); // after SIGTERM: a busy client would delay the end
  flake.nextIdAsync().then(
    (id) => response.end(String(id)),
    ({ code }) => response.writeHead(503).end(code),
  );
});
server.listen(process.env.PORT ?? 8080, () => console.log(`worker ID ${flake.workerId}`));

process.once('SIGTERM', async () => {
  await new Promise((resolve) => server.close(resolve));
  await flake.close(); // after the last request
  process.exit();
});
