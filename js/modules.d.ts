// Modules without types, for the compiler only: no package has this file.

/** An addon, of its platform. */
declare module '@snowdrift/*' {
  const addon: unknown;
  export = addon;
}
