'use strict';
// Clients that connect from addresses of the loopback, send a text every 3 s, and come back 100 ms after they are closed. It reports
// once each has been connected.

const net = require('node:net');

const { port, text, addresses, clients } = JSON.parse(process.argv[2]);

const waiting = new Set(Array.from({ length: clients }, (_, n) => n));

function come(n) {
  const socket = net.connect({
    host: '127.0.0.1',
    port,
    localAddress: `127.0.1.${1 + (n % addresses)}`,
  });
  const timer = setInterval(() => socket.writable && socket.write(text), 3000);
  socket.on('connect', () => {
    if (waiting.delete(n) && waiting.size === 0) process.send('complete');
  });
  socket.on('error', () => {}).resume();
  socket.on('close', () => {
    clearInterval(timer);
    setTimeout(come, 100, n);
  });
  socket.write(text);
}

for (const n of [...waiting]) come(n);
process.on('disconnect', () => process.exit());
