'use strict';
// The addon of this package, as snowdrift loads it.

const { loadAddon } = require('../../../../js/runtime/addon.js');
const { directory, load } = require('../../index.js');

module.exports = { loadHere: () => loadAddon('snowdrift-zookeeper', directory, load) };
