'use strict';
// A worker of app/cluster.test.js: sends the IDs that it has drawn, and stays until it is killed.

const { SnowFlake } = require('../..');

const ids = SnowFlake.nextIdStrings(Number(process.argv[2]));
process.send({ ids, scope: SnowFlake.default.stats().scope });
