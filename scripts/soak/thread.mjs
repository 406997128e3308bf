// The thread of a round.

import { parentPort, workerData } from 'node:worker_threads';

import { SnowFlake } from 'snowdrift';
import { draw } from './round.mjs';

parentPort.postMessage(await draw(new SnowFlake(workerData)));
