'use strict';
// An application in CommonJS.

const { draw } = require('./draw.cjs');

async function main() {
  await draw(async (name) => require(name));
}

main();
