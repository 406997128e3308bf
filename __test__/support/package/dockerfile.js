'use strict';
// Takes the steps of a Dockerfile without containers: each stage is a folder, and WORKDIR /app is that folder.

const assert = require('node:assert/strict');
const { cpSync, readdirSync } = require('node:fs');
const { basename, join } = require('node:path');

/** The files of the context that a name of COPY means: of a pattern there may be none. */
function matching(name, context) {
  if (!name.includes('*')) return [name];
  const [start, end] = name.split('*');
  return readdirSync(context).filter((file) => file.startsWith(start) && file.endsWith(end));
}

/**
 * @param makeFolder of a stage, by what it is FROM: returns an empty folder
 * @param shell runs a command in a folder
 * @returns the last stage's `folder`, its `env`, and the `command` that a container of it runs
 */
async function buildImage(dockerfile, context, { makeFolder, shell }) {
  const stages = new Map();
  let image;
  const steps = {
    FROM(rest) {
      image = { folder: makeFolder(rest.replaceAll(/\W/g, '-')), env: {} };
      stages.set(rest.split(' AS ')[1], image.folder);
    },
    WORKDIR: (rest) => assert.equal(rest, '/app'),
    ENV(rest) {
      const [name, value] = rest.split('=');
      image.env[name] = value;
    },
    USER: (rest) => assert.match(rest, /^\d+$/, 'runAsNonRoot needs a number'),
    COPY(rest) {
      const [from] = /(?<=--from=)\w+/.exec(rest) ?? [];
      const names = rest.replace(/--from=\w+ /, '').split(' ');
      const to = join(image.folder, names.pop());
      for (const name of names.flatMap((each) => (from ? [each] : matching(each, context)))) {
        const source = from ? name.replace('/app', stages.get(from)) : join(context, name);
        const target = to.endsWith('/') ? join(to, basename(name)) : to;
        cpSync(source, target, { recursive: true, verbatimSymlinks: true });
      }
    },
    RUN: (rest) => shell(image.folder, rest),
    CMD(rest) {
      image.command = JSON.parse(rest);
    },
  };
  for (const line of dockerfile.split('\n').filter((each) => !/^(#|$)/.test(each))) {
    const [, step, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    assert.ok(Object.hasOwn(steps, step), line);
    await steps[step](rest);
  }
  return image;
}

module.exports = { buildImage };
