'use strict';
// A server, as applications have one.

const { createServer } = require('node:http');
const snowdrift = require('snowdrift');

const { draw } = require('./draw.js');

createServer((_, response) => response.end(snowdrift.SnowFlake.nextIdString())).listen(
  0,
  '127.0.0.1',
);
draw(snowdrift);
