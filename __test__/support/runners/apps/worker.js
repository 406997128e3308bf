'use strict';
// The process beside a server that does what takes long.

const snowdrift = require('snowdrift');

const { draw } = require('./draw.js');

draw(snowdrift);
