// What is published: two packages, and for each of them one a platform that carries its addon. Their
// folders are made here, for a release and for the tests alike.

import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import addons from '../js/addon.js';

const { TARGETS } = addons;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Their names, which are those of their addons, too, and where they are. */
const MAINS = { snowdrift: '.', 'snowdrift-zookeeper': 'zookeeper' };

const LIBC = { gnu: 'glibc', musl: 'musl' };

const read = (...path) => readFileSync(join(ROOT, ...path), 'utf8');
const readJson = (...path) => JSON.parse(read(...path));

const { version, repository, license, engines } = readJson('package.json');

export { TARGETS, version };

/**
 * Runs npm; answers what it printed.
 * @param cwd where; in the repository, if not told
 * @param env what is in its environment besides
 */
export async function npm(args, { cwd = ROOT, env = {} } = {}) {
  const { stdout } = await promisify(execFile)('npm', args, {
    cwd,
    env: { ...process.env, ...env },
    shell: process.platform === 'win32',
  });
  return stdout.trim();
}

/** Where the version is not that of package.json. */
export function otherVersions() {
  const lock = readJson('package-lock.json');
  const stated = {
    'package-lock.json': lock.version,
    "package-lock.json, packages['']": lock.packages[''].version,
    'package-lock.json, packages.zookeeper': lock.packages.zookeeper.version,
    'zookeeper/package.json': readJson('zookeeper', 'package.json').version,
  };
  for (const folder of Object.values(MAINS)) {
    const file = join(folder, 'Cargo.toml');
    stated[file] = read(file).match(/^version = "(.*)"/m)[1];
  }
  return Object.entries(stated)
    .filter(([, what]) => what !== version)
    .map(([file, what]) => `${file} says ${what}, package.json says ${version}`);
}

/** What CHANGELOG.md says when this version was released, if it knows the version. */
export function releaseDate() {
  const heading = `## [${version}] - `;
  const line = read('CHANGELOG.md')
    .split('\n')
    .find((text) => text.startsWith(heading));
  return line?.slice(heading.length);
}

/**
 * What stands in the way of a release.
 * @param tag of git, where it is to be one of this version
 */
export function obstacles(tag) {
  const found = otherVersions();
  if (tag !== undefined && tag !== `v${version}`) {
    found.push(`the tag is ${tag}, and package.json says ${version}: it should be v${version}`);
  }
  if (!/^\d{4}-\d\d-\d\d$/.test(releaseDate() ?? '')) {
    found.push(`CHANGELOG.md has no line '## [${version}] - ' with the day of the release`);
  }
  if (repository?.url === undefined) {
    found.push(
      'package.json has no repository with a url, which provenance is about: "repository": { "type": "git", "url": "git+https://..." }',
    );
  }
  return found;
}

/**
 * Makes the folders, as workspaces of one.
 * @param addonsIn where the addons are, as NAME.TARGET.node
 * @param out where; what is in it is deleted
 * @returns the packages, in the order in which to publish them, and the addons that were not there
 */
export async function assemble(addonsIn, out) {
  rmSync(out, { recursive: true, force: true });
  const packages = [];
  const missing = [];
  for (const name of Object.keys(MAINS)) {
    for (const target of TARGETS) {
      const addon = join(addonsIn, `${name}.${target}.node`);
      if (existsSync(addon)) packages.push(assemblePlatform(name, target, addon, out));
      else missing.push(addon);
    }
  }
  // Last, since they ask for the others.
  for (const name of Object.keys(MAINS)) packages.push(await assembleMain(name, out));
  writeManifest(out, { private: true, workspaces: packages });
  return { packages, missing };
}

function assemblePlatform(name, target, addon, out) {
  const [os, cpu, abi] = target.split('-');
  const platform = `${name}-${target}`;
  const main = `${name}.${target}.node`;
  const folder = startFolder(out, platform);
  writeManifest(folder, {
    name: platform,
    version,
    description: `The addon of ${name} for ${target}`,
    license,
    repository,
    main,
    files: [main],
    engines,
    os: [os],
    cpu: [cpu],
    libc: os === 'linux' ? [LIBC[abi]] : undefined,
  });
  cpSync(addon, join(folder, main));
  writeFileSync(
    join(folder, 'README.md'),
    `# ${platform}\n\nThe addon of \`${name}\` for ${target}. It is installed along with \`${name}\`.\n`,
  );
  return platform;
}

/**
 * Publishes what was made, but for what was published already.
 * @param out where it was made
 * @param registry its URL
 * @param flags of `npm publish`
 * @returns the names of what was published
 */
export async function publish(out, packages, registry, flags, env) {
  const published = await Promise.all(packages.map((name) => isPublished(name, registry)));
  const fresh = packages.filter((_, i) => !published[i]);
  if (fresh.length === 0) return fresh;
  const tag = version.includes('-') ? 'next' : 'latest';
  const fixed = ['--registry', registry, '--access', 'public', '--tag', tag];
  const which = fresh.flatMap((name) => ['--workspace', name]);
  await npm(['publish', ...which, ...fixed, ...flags], { cwd: out, env });
  return fresh;
}

async function isPublished(name, registry) {
  const answer = await fetch(new URL(name, registry));
  if (answer.status === 404) return false;
  if (!answer.ok) throw new Error(`${answer.url} answers ${answer.status}`);
  return version in (await answer.json()).versions;
}

/** What npm would pack, but for what only a checkout has, and with the platforms' packages. */
async function assembleMain(name, out) {
  const source = join(ROOT, MAINS[name]);
  const folder = startFolder(out, name);
  const [{ files }] = JSON.parse(await npm(['pack', source, '--dry-run', '--json']));
  for (const { path } of files) {
    if (path.endsWith('.node')) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(source, path), join(folder, path));
  }
  const { scripts, devDependencies, ...manifest } = readJson(MAINS[name], 'package.json');
  if (manifest.peerDependencies !== undefined) {
    // The two go together.
    manifest.peerDependencies['snowdrift-zookeeper'] = version;
  }
  writeManifest(folder, {
    ...manifest,
    repository,
    optionalDependencies: Object.fromEntries(
      TARGETS.map((target) => [`${name}-${target}`, version]),
    ),
  });
  return name;
}

function startFolder(out, name) {
  const folder = resolve(out, name);
  mkdirSync(folder, { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  return folder;
}

function writeManifest(folder, manifest) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}
