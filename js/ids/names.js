'use strict';
// The name that a misspelt one stands for: an option, a command, an environment variable. Needs no Node API.

/** Names of other libraries, without case and separators, by the name that snowdrift has. */
const SYNONYMS = {
  // Before workerId, which also has the assigner.
  lease: 'leaseurl storeurl workeridassigner',
  workerId:
    'machine machineid node nodeid shardid instance instanceid processid serverid worker workeridassigner mid',
  datacenterId: 'datacenter datacentreid dc dcid clusterid regionid zoneid',
  epoch: 'customepoch twepoch basetime starttime epochstr offset',
  sequenceBits: 'seqbits seqbitlength incrementbits',
  workerBits: 'workeridbitlength',
  timestampBits: 'timebits',
  // Where the layout is an option.
  layout:
    'timestampbits timebits datacenterbits workerbits workeridbitlength clockbackbits sequencebits seqbits seqbitlength incrementbits tickms',
  maxAhead: 'maxtimeahead',
  onRejectedPut: 'rejectedputbufferhandler',
  onRejectedTake: 'rejectedtakebufferhandler',
  count: 'instances processes size workers',
  parse: 'decode decompose deconstruct parseuid',
  next: 'create draw gen generate getuid id new nextid',
};

/** All that one of these names may stand for. */
function meaningsOf(given) {
  return Object.keys(SYNONYMS).filter((name) => SYNONYMS[name].split(' ').includes(given));
}

/** Longer names are nothing that somebody typed. */
const MOST_CHARACTERS = 40;

/** A name without case and separators: datacenterId of DATACENTER_ID. */
const bare = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

const isSameName = (one, other) => bare(one) === bare(other);

/** How many characters differ: inserted, left out or replaced. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row[other.length];
}

/** The name of a list that is meant; undefined if none is near. */
function nameMeant(name, names) {
  if (name.length > MOST_CHARACTERS) return undefined;
  const given = bare(name);
  const isOf = (text) => names.find((one) => isSameName(one, text));
  const found = [given, ...meaningsOf(given)].map(isOf).find(Boolean);
  if (found !== undefined) return found;
  // Two of six, so that short names are not taken for one another.
  const most = Math.min(2, Math.floor(given.length / 3));
  const near = names.map((one) => ({ one, far: distance(given, bare(one)) }));
  near.sort((a, b) => a.far - b.far);
  return near[0]?.far <= most ? near[0].one : undefined;
}

/**
 * The text for a name that is not in a list.
 * @param what has the names
 * @param show returns a value as text, without secrets
 */
function noSuchName(what, name, names, show) {
  const meant = nameMeant(name, names);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return `${what} has no ${show(name)}.${hint} It knows ${names.join(', ')}`;
}

module.exports = { isSameName, nameMeant, noSuchName };
