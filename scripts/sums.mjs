// SHA-256 of the addons of a release. The jobs that build them put these sums out, and what publishes compares them: any
// job of a run may write its artifacts, and none the output of another job.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

const isOf = (target) => (file) => file.endsWith(`.${target}.node`);

/** The sums of a target's addons as one line. */
export function sumsOf(folder, target) {
  const files = readdirSync(folder).filter(isOf(target)).sort();
  return files.map((file) => `${sha256(readFileSync(join(folder, file)))}  ${file}`).join(', ');
}

/**
 * The sums in a text, such as the outputs of all jobs as JSON, or the lines of sha256sum.
 * @returns by addon; of what the text has twice, undefined
 */
export function readSums(text) {
  const sums = new Map();
  for (const [, sum, file] of text.matchAll(/\b([0-9a-f]{64}) {2}([\w.-]+\.node)\b/g)) {
    sums.set(file, sums.has(file) ? undefined : sum);
  }
  return sums;
}

/** What a release finds beside its addons: what it has written itself. */
const OWN = ['packages', 'packed'];

/**
 * The reasons against publishing a folder's addons.
 * @param expected the names of the addons of a release
 * @param sums of `readSums`
 */
export function sumObstacles(folder, expected, sums) {
  const all = existsSync(folder) ? readdirSync(folder) : [];
  const found = all.filter((file) => !OWN.includes(file));
  const extra = found.filter((file) => !expected.includes(file));
  const unknown = [...sums.keys()].filter((file) => !expected.includes(file));
  const without = expected.filter((file) => sums.get(file) === undefined);
  const changed = found.filter(
    (file) =>
      sums.get(file) !== undefined && sha256(readFileSync(join(folder, file))) !== sums.get(file),
  );
  return [
    ...extra.map((file) => `${join(folder, file)} is no addon of a release: remove it`),
    ...unknown.map((file) => `there is a sum of ${file}, which is no addon of a release`),
    ...without.map((file) => `there is no sum of ${file}, or more than one`),
    ...changed.map(
      (file) => `${join(folder, file)} is not what its job has built: its sum differs`,
    ),
  ];
}
