'use strict';
// The tests of snowdrift/nestjs with the newest NestJS that package.json admits, which is made of ES modules.

require('../support/nestjs.js').testWith('newest');
