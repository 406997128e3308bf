/** The file that cargo makes of an addon's crate. */
export function libraryOf(crate, platform) {
  const name = crate.replaceAll('-', '_');
  return { darwin: `lib${name}.dylib`, win32: `${name}.dll` }[platform] ?? `lib${name}.so`;
}
