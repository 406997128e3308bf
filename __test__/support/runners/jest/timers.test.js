'use strict';

require('./timers.js')({ afterEach, expect, test, fakes: jest, forget: () => jest.resetModules() });
