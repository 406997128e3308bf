'use strict';
// `snowdrift raise`

const {
  TERMS,
  TERM_HELP,
  TERM_OPTIONS,
  asJson,
  givenTerms,
  namespaceUrl,
  noNamespace,
  recorded,
  rows,
  withStore,
} = require('./namespace.js');
const { URL_HELP } = require('./place.js');

const help = `Usage: snowdrift raise URL [--ttl MS] [--max-clock-skew MS] [--max-ahead MS]

Raises the limits that a namespace sets its holders. After a loss, new holders wait for the sum of the three.
Restart running holders before you start any with larger ones: they read the limits when they take a slot.
They are never lowered, since holders may use them in full. For smaller ones, use another namespace with
another datacenter ID.

${URL_HELP}
${TERM_HELP}
  --json                one object`;

const options = TERM_OPTIONS;

async function run(flags, positionals, { print, usage }) {
  const url = namespaceUrl('raise', positionals, usage);
  const terms = givenTerms(flags);
  const flagsOfTerms = Object.values(TERMS).map((flag) => `--${flag}`);
  if (Object.keys(terms).length === 0) throw usage(`raise needs ${flagsOfTerms.join(' or ')}`);
  const [before, after] = await withStore(url, async (store) => {
    const found = await recorded(store);
    if (found === undefined) {
      throw noNamespace(store.name, 'It is created by its first holder, or by snowdrift create');
    }
    return [found, await store.call('raise', { namespace: found.id, ...terms })];
  });
  if (flags.json) return print(JSON.stringify(asJson(after), undefined, 2));
  const lower = Object.keys(terms).filter((term) => terms[term] < after[term]);
  const kept = lower.map((term) => `${term} stays ${before[term]} ms: it is never lowered.`);
  print([...rows(after), ...kept].join('\n'));
}

module.exports = { help, options, run };
