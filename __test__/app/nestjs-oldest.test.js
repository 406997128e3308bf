'use strict';
// The tests of snowdrift/nestjs with the oldest NestJS that package.json admits.

require('../support/nestjs.js').testWith('oldest');
