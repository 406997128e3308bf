// The published packages: snowdrift and the workspaces, and for each of them one per platform that carries its addon. A
// release and the tests put them together here.

import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, posix, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import addons from '../js/runtime/addon.js';
import { bundle } from './bundle.mjs';
import { linkedOutside } from './links.mjs';
import { sbomOf } from './sbom.mjs';
import { sha256 } from './sums.mjs';

const { TARGETS, packageOf } = addons;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const SBOM = 'sbom.cdx.json';

const read = (...path) => readFileSync(join(ROOT, ...path), 'utf8');
const readJson = (...path) => JSON.parse(read(...path));

const { version, workspaces } = readJson('package.json');

export { version };

/** The folder of each main package by its name, which is also that of its addons. */
export const MAINS = Object.fromEntries(
  ['.', ...workspaces].map((folder) => [readJson(folder, 'package.json').name, folder]),
);

/** The addons of a release. */
export const ADDONS = Object.keys(MAINS).flatMap((name) =>
  TARGETS.map((target) => `${name}.${target}.node`),
);

/** The folders of the platforms' packages of a main package. */
const platformsOf = (folder) =>
  readdirSync(join(ROOT, folder, 'npm')).map((target) => posix.join(folder, 'npm', target));

/**
 * Runs npm and returns its output.
 * @param cwd default: the repository
 * @param env is added to the environment
 */
export async function npm(args, { cwd = ROOT, env = {} } = {}) {
  const { stdout } = await promisify(execFile)('npm', args, {
    cwd,
    env: { ...process.env, ...env },
    shell: process.platform === 'win32',
  });
  return stdout.trim();
}

/** The files whose version is not that of package.json. */
export function otherVersions() {
  const lock = readJson('package-lock.json');
  const stated = { 'package-lock.json': lock.version };
  for (const folder of Object.values(MAINS)) {
    const locked = folder === '.' ? '' : folder;
    stated[`package-lock.json, packages['${locked}']`] = lock.packages[locked].version;
    for (const each of [folder, ...platformsOf(folder)]) {
      stated[posix.join(each, 'package.json')] = readJson(each, 'package.json').version;
    }
    const file = posix.join(folder, 'Cargo.toml');
    stated[file] = read(file).match(/^version = "(.*)"/m)[1];
  }
  return Object.entries(stated)
    .filter(([, what]) => what !== version)
    .map(([file, what]) => `${file} says ${what}, package.json says ${version}`);
}

/** The day that CHANGELOG.md has for this version; undefined if it lacks the version. */
export function releaseDate() {
  const heading = `## [${version}] - `;
  const line = read('CHANGELOG.md')
    .split('\n')
    .find((text) => text.startsWith(heading));
  return line?.slice(heading.length);
}

/**
 * The reasons against a release.
 * @param tag the Git tag that asks for the release, if one does
 */
export function obstacles(tag) {
  const found = otherVersions();
  if (tag !== undefined && tag !== `v${version}`) {
    found.push(`the tag is ${tag}, and package.json says ${version}: it should be v${version}`);
  }
  if (!/^\d{4}-\d\d-\d\d$/.test(releaseDate() ?? '')) {
    found.push(`CHANGELOG.md has no line '## [${version}] - ' with the day of the release`);
  }
  return found;
}

/**
 * Puts the packages together, as workspaces of one.
 * @param addonsIn the folder of the addons, NAME.TARGET.node
 * @param out the folder to write, which is emptied first
 * @param repository its URL, as people open it. Without one, the packages name none, and pages keep their links
 * @returns the packages, in the order in which to publish them, and the addons that are missing
 */
export function assemble(addonsIn, out, repository) {
  rmSync(out, { recursive: true, force: true });
  const packages = [];
  const missing = [];
  for (const [name, source] of Object.entries(MAINS)) {
    for (const target of TARGETS) {
      const addon = join(addonsIn, `${name}.${target}.node`);
      const platform = packageOf(name, target);
      if (!existsSync(addon)) {
        missing.push(addon);
        continue;
      }
      const folder = join(out, platform);
      const from = posix.join(source, 'npm', target);
      cpSync(join(ROOT, from), folder, { recursive: true });
      cpSync(addon, join(folder, basename(addon)));
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      writeJson(folder, { ...manifest, ...pageOf(repository, from) });
      packages.push(platform);
    }
  }
  // Last, since they depend on the others.
  for (const name of Object.keys(MAINS)) {
    const addons = Object.fromEntries(TARGETS.map((target) => [packageOf(name, target), version]));
    assembleMain(name, join(out, name), repository, { optionalDependencies: addons });
    packages.push(name);
  }
  for (const name of packages) cpSync(join(ROOT, 'LICENSE'), join(out, name, 'LICENSE'));
  writeJson(out, { private: true, workspaces: packages });
  return { packages, missing };
}

/** What npm's page of a package links to. No manifest of the tree has it: a fork's packages name the fork. */
function pageOf(repository, folder) {
  if (repository === undefined) return {};
  return {
    homepage: `${repository}#readme`,
    bugs: { url: `${repository}/issues` },
    repository: {
      type: 'git',
      url: `git+${repository}.git`,
      ...(folder !== '.' && { directory: folder }),
    },
  };
}

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));

/**
 * Adds its bill of materials to each of the main packages, which npm lists with their files.
 * @param out the folder that `assemble` wrote
 */
export function addSboms(out) {
  for (const name of Object.keys(MAINS)) {
    writeJson(join(out, name), sbomOf(name, version), SBOM);
    const manifest = JSON.parse(readFileSync(join(out, name, 'package.json'), 'utf8'));
    writeJson(join(out, name), { ...manifest, files: [...manifest.files, SBOM] });
  }
}

/**
 * Packs the packages as npm publishes them. From equal files come equal bytes, with one version of Node: the
 * compression is its zlib's.
 * @param out the folder that `assemble` wrote
 * @param to the folder to write, which is emptied first: the archives, and SHA256SUMS
 * @returns what npm says of each: id, filename, size, unpackedSize
 */
export async function pack(out, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  // Independent of the umask: npm packs each file with its mode.
  for (const file of filesBelow(out))
    chmodSync(file, file.endsWith('/cli/main.js') ? 0o755 : 0o644);
  const packed = JSON.parse(
    await npm(['pack', '--workspaces', '--json', '--pack-destination', resolve(to)], { cwd: out }),
  );
  const sums = packed.map(({ filename }) => {
    const bytes = readFileSync(join(to, filename));
    return `${sha256(bytes)}  ${filename}\n`;
  });
  writeFileSync(join(to, 'SHA256SUMS'), sums.join(''));
  return packed;
}

/** The paths of the files that npm would pack of a main package's folder, but for addons. */
function filesOf(source) {
  const { files } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const omitted = files.filter((name) => name.startsWith('!')).map((name) => name.slice(1));
  const isOmitted = (path) => omitted.some((name) => path === name || path.startsWith(`${name}/`));
  return [...files, 'package.json', 'README.md', 'LICENSE']
    .map((name) => join(source, name))
    .filter((path) => existsSync(path))
    .flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path]))
    .map((path) => relative(source, path).replaceAll('\\', '/'))
    .filter((path) => !path.endsWith('.node') && !isOmitted(path));
}

/**
 * Copies the files, and puts the code together.
 * @param more fields of the manifest
 */
function assembleMain(name, folder, repository, more) {
  const source = join(ROOT, MAINS[name]);
  for (const path of filesOf(source)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(source, path), join(folder, path));
  }
  const { scripts, devDependencies, workspaces, ...manifest } = readJson(
    MAINS[name],
    'package.json',
  );
  Object.assign(manifest, pageOf(repository, MAINS[name]));
  if (manifest.peerDependencies !== undefined) {
    // The two packages work only in the same version.
    manifest.peerDependencies['snowdrift-zookeeper'] = version;
  }
  writeJson(folder, { ...manifest, ...more });
  if (existsSync(join(folder, 'js'))) bundle(folder);
  if (repository === undefined) return;
  const paths = filesBelow(folder).map((path) => relative(folder, path).replaceAll('\\', '/'));
  const base = `${repository}/blob/v${version}`;
  for (const path of paths.filter((each) => each.endsWith('.md'))) {
    const text = readFileSync(join(folder, path), 'utf8');
    writeFileSync(join(folder, path), linkedOutside(text, path, { paths, source, base }));
  }
}

/**
 * Packs snowdrift with the addons that were built here, for projects that install the file.
 * @param to the folder that gets it
 * @returns its path
 */
export async function packHere(to) {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-pack-'));
  try {
    assembleMain('snowdrift', folder);
    const beside = 'js/runtime';
    for (const name of readdirSync(join(ROOT, beside)).filter((each) => each.endsWith('.node'))) {
      cpSync(join(ROOT, beside, name), join(folder, beside, name));
    }
    const args = ['pack', '--json', '--pack-destination', resolve(to)];
    const [{ filename }] = JSON.parse(await npm(args, { cwd: folder }));
    return join(to, filename);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Publishes packages, except those that the registry has.
 * @param out the folder that `assemble` wrote
 * @param registry a URL
 * @param flags of `npm publish`
 * @returns the names of the packages that were published
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

function writeJson(folder, manifest, name = 'package.json') {
  writeFileSync(join(folder, name), `${JSON.stringify(manifest, null, 2)}\n`);
}
