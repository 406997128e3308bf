'use strict';
// Twitter Snowflake's check at the start of a server: it asks the running servers of its datacenter for their node and
// their time. The records of their slots have their addresses.

/** @import { Slot } from '../cli/slots.js' */

const { once } = require('node:events');
const http = require('node:http');
const { hostname } = require('node:os');

const { SnowFlakeError, describe } = require('../messages/errors.js');
const { printable } = require('../messages/secrets.js');
const { ignoreErrors } = require('../stores/sockets.js');
const { runWithin } = require('../runtime/limits.js');
const { unixNow } = require('../runtime/time.js');
const { NONE } = require('../ids/properties.js');

const PEER_MS = 1000;
const MOST_BYTES = 4096;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]):\d+$/i;

/**
 * Asks a peer. Returns its node, and the ms by which its clock is ahead of this one's.
 * @param {string} address
 * @param {string | undefined} token
 */
async function ask(address, token) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const before = unixNow();
  const text = await runWithin(PEER_MS, async (/** @type {AbortSignal} */ signal) => {
    const options = { agent: false, headers, signal };
    const request = ignoreErrors(http.get(`http://${address}/node`, options));
    const [response] = await once(request, 'response');
    if (response.statusCode !== 200) {
      response.destroy();
      throw new Error(`HTTP status ${response.statusCode}`);
    }
    let body = '';
    for await (const chunk of response.setEncoding('utf8')) {
      body += chunk;
      if (body.length > MOST_BYTES) throw new Error('too long a reply');
    }
    return body;
  });
  const { datacenterId, workerId, now } = JSON.parse(text) ?? NONE;
  if (![datacenterId, workerId, now].every(Number.isSafeInteger)) {
    throw new Error('the reply names no node and time');
  }
  return { datacenterId, workerId, ahead: now - (before + unixNow()) / 2 };
}

/**
 * Whether a peer's address is valid on this host. A loopback address is valid only on the peer's own host.
 * @param {Slot} slot
 * @returns {slot is Slot & { address: string }}
 */
function isReachable(slot) {
  const { address, host } = slot;
  return address !== undefined && (!LOOPBACK.test(address) || host === hostname());
}

/**
 * Refuses the start if a peer reports another node than its slot's, or if the peers' clocks differ from this one's.
 * @param {Slot[]} slots the slots of the namespace
 * @param {{ datacenterId: number, workerId: number }} own this server's node
 * @param {{ maxClockSkew: number, token?: string, complain: (text: string) => void }} options `complain` receives the
 *   names of peers that do not answer
 */
async function checkPeers(slots, own, { maxClockSkew, token, complain }) {
  const peers = slots
    .filter(
      ({ state, datacenterId, workerId }) =>
        state === 'held' && datacenterId === own.datacenterId && workerId !== own.workerId,
    )
    .filter(isReachable);
  const answers = await Promise.all(
    peers.map(async (peer) => {
      try {
        return { ...peer, answer: await ask(peer.address, token) };
      } catch (failure) {
        const name = `${printable(peer.address)} (workerId ${peer.workerId})`;
        complain(`skipped the peer ${name}, which does not answer: ${describe(failure)}`);
        return undefined;
      }
    }),
  );
  const answered = answers.filter((one) => one !== undefined);
  for (const { address, datacenterId, workerId, answer } of answered) {
    const isOf = (/** @type {Slot} */ slot) =>
      slot.datacenterId === answer.datacenterId && slot.workerId === answer.workerId;
    // A restarted server's former slot stays held until it expires.
    if (peers.some((peer) => peer.address === address && isOf(peer))) continue;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_CONFLICT',
      `the peer ${printable(address)} is registered with datacenterId ${datacenterId} and workerId ${workerId}, and answers as ${answer.datacenterId} and ${answer.workerId}: correct its configuration or its address, or start with --no-peers`,
    );
  }
  if (answered.length === 0) return;
  const ahead = answered.reduce((sum, { answer }) => sum + answer.ahead, 0) / answered.length;
  if (Math.abs(ahead) <= maxClockSkew) return;
  const clocks = answered.map(
    ({ address, answer }) => `${printable(address)} by ${Math.round(answer.ahead)} ms`,
  );
  throw new SnowFlakeError(
    'ERR_SNOWFLAKE_CLOCK_SKEW',
    `the clocks of the peers are on average ${Math.round(Math.abs(ahead))} ms ${ahead > 0 ? 'ahead of' : 'behind'} this machine's (${clocks.join(', ')}); maxClockSkew allows ${maxClockSkew} ms. Set the clocks right (NTP), or start with --no-peers`,
  );
}

module.exports = { checkPeers };
