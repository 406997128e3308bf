'use strict';
// The user of this process, who may change: see process.setuid() of Node.

/** Undefined on Windows, and in Deno, where the question takes a permission. */
const effectiveUser = () =>
  !Object.hasOwn(process.versions, 'deno') ? process.geteuid?.() : undefined;

const atStart = effectiveUser();

const isRoot = atStart === 0;

const hasChangedUser = () => effectiveUser() !== atStart;

module.exports = { hasChangedUser, isRoot };
