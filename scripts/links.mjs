// Links of the pages that a package has.

import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';

/** The end of a link of Markdown: its path, heading and title. */
const LINKS = /\]\(([^)#\s:]+)([^)]*\))/g;

/**
 * The text of a page, in which links to files of the repository that the package lacks lead to the repository.
 * @param page its path in the package
 * @param paths those of the package
 * @param source the folder of the repository that the package is made of
 * @param base the URL of that folder, of files as people see them
 */
export function linkedOutside(text, page, { paths, source, base }) {
  return text.replace(LINKS, (link, to, end) => {
    const path = posix.join(posix.dirname(page), to);
    if (paths.includes(path) || !existsSync(join(source, path))) return link;
    return `](${base}/${path}${end}`;
  });
}
