// What others publish that snowdrift takes: licences, sources and advisories of crates by cargo-deny, and signatures of npm's
// packages. And the workflows, by zizmor: actions that are not pinned, rights, injection. Both tools are installed where they
// are missing.
//
//   npm run audit

import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const CARGO_DENY = 'cargo-deny@0.20.2';
const ZIZMOR = 'zizmor==1.32.0';
const ADVISORIES = 'https://github.com/RustSec/advisory-db';
const TIMEOUT_MS = 20_000;

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

function run(command, ...args) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}

const answers = (command, ...args) =>
  spawnSync(command, args, { stdio: 'ignore', timeout: TIMEOUT_MS }).status === 0;

const hasDeny = () => answers('cargo', 'deny', '--version');
// Unoptimised: it takes minutes to compile all the same.
if (!hasDeny()) {
  spawnSync('cargo', ['install', CARGO_DENY, '--locked', '--debug'], { stdio: 'inherit' });
}
if (!hasDeny()) {
  console.log('cargo deny is skipped: it is not here, and was not compiled');
} else {
  run('cargo', 'deny', '--workspace', 'check', 'licenses', 'bans', 'sources');
  // The advisories are a Git repository.
  if (answers('git', 'ls-remote', '-q', ADVISORIES, 'HEAD')) {
    run('cargo', 'deny', '--workspace', 'check', 'advisories');
  } else {
    console.log('cargo deny check advisories is skipped: github.com cannot be reached');
  }
}

const python = 'target/zizmor/bin';
const hasZizmor = () => answers(`${python}/zizmor`, '--version');
if (!hasZizmor() && answers('python3', '-m', 'venv', 'target/zizmor')) {
  spawnSync(`${python}/pip`, ['install', '--quiet', ZIZMOR], { stdio: 'inherit' });
}
if (hasZizmor()) run(`${python}/zizmor`, '--offline', '--min-severity', 'medium', '.github');
else console.log('zizmor is skipped: it is not here, and Python cannot install it');

// The keys come from the registry itself: a mirror may have none.
const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
const keys = await fetch(`${registry.replace(/\/?$/, '/')}-/npm/v1/keys`, {
  signal: AbortSignal.timeout(TIMEOUT_MS),
}).catch(() => ({ ok: false }));
if (keys.ok) run('npm', 'audit', 'signatures');
else console.log('npm audit signatures is skipped: this registry has no keys');
