'use strict';
// The user of this process. process.setuid() may change it.

/** The effective user ID. Undefined on Windows, and in Deno, where reading it needs a permission. */
const effectiveUser = () =>
  !Object.hasOwn(process.versions, 'deno') ? process.geteuid?.() : undefined;

const atStart = effectiveUser();

const hasChangedUser = () => effectiveUser() !== atStart;

module.exports = { hasChangedUser };
