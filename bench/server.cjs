'use strict';
// An HTTP server whose handler draws IDs, or none, in turns of 100 ms each: CPU time a request of this
// process alone. The load comes from its parent. Its argument: the kinds of handlers, as JSON.

const { createServer } = require('node:http');
const { SnowFlake } = require('..');

const flake = new SnowFlake({ datacenterId: 7, workerId: 0 });
const DRAWS = {
  none: () => '1234567890123456789',
  one: () => flake.nextIdString(),
};
const kinds = Object.keys(DRAWS);
const used = Object.fromEntries(kinds.map((kind) => [kind, []]));
let kind = 0;
let requests = 0;
let before = process.cpuUsage();

const server = createServer((_request, response) => {
  requests++;
  response.setHeader('content-type', 'application/json');
  response.end(`{"id":"${DRAWS[kinds[kind]]()}"}`);
});

function turn() {
  const { user, system } = process.cpuUsage(before);
  // The first ones warm up.
  if (requests > 50) used[kinds[kind]].push((user + system) / requests);
  kind = (kind + 1) % kinds.length;
  requests = 0;
  before = process.cpuUsage();
}

server.listen(0, '127.0.0.1', () => process.send(server.address().port));
const turns = setInterval(turn, 100);
process.once('message', () => {
  clearInterval(turns);
  process.send(used, () => process.exit());
});
