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

Raises what a namespace allows its holders. Whoever takes over after a loss waits for the sum of them. They
are never lowered: holders may count on them. For smaller ones use another namespace and another epoch or
datacenter ID.

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
