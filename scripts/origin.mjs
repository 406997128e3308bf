// Where a release comes from: a repository on GitHub, and a commit on its main whose checks passed there.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const BRANCH = 'main';
/** The file of the workflow that checks each commit of the branch. */
const CHECKS = 'ci.yml';

const ANSWER_MS = 10_000;
const GIT_MS = 120_000;

/**
 * The URL of the repository that the packages name, as npm's provenance names it: letter case counts.
 * @param asked OWNER/NAME; default: the repository that the workflow runs in
 * @returns the URL, or what is wrong
 */
export function repositoryOf(asked, env = process.env) {
  const named = asked ?? env.GITHUB_REPOSITORY;
  const server = env.GITHUB_SERVER_URL || 'https://github.com';
  if (named === undefined) {
    return { wrong: 'the repository is unknown outside of its workflow: --repository OWNER/NAME' };
  }
  if (!/^[\w-]+\/(?!\.+$)[\w.-]+$/.test(named) || named.endsWith('.git')) {
    const like = `${server}/OWNER/NAME`;
    return { wrong: `the repository is '${named}': it should be OWNER/NAME, as in ${like}` };
  }
  return { url: `${server}/${named}` };
}

/** Runs git in a folder and returns its output. It never asks for a password. */
async function git(folder, ...args) {
  const { stdout } = await promisify(execFile)('git', args, {
    cwd: folder,
    env: { ...process.env, GIT_TERMINAL_PROMPT: '0' },
    timeout: GIT_MS,
  });
  return stdout.trim();
}

/**
 * The reasons against a release of the commit that is checked out.
 * @param repository its URL
 * @param how of `checksObstacle`; `folder` is that of the checkout
 */
export async function commitObstacles(repository, { folder = ROOT, ...how } = {}) {
  const commit = await git(folder, 'rev-parse', 'HEAD');
  const found = [];
  const changed = await git(folder, 'status', '--porcelain', '--untracked-files=all');
  if (changed !== '') {
    // Each line has a state, a space, and the path.
    const [path, ...more] = changed.split('\n').map((line) => line.replace(/^\S+\s+/, ''));
    const others = more.length === 0 ? '' : ` and ${more.length} more`;
    found.push(
      `files differ from the commit (${path}${others}): a release is made of a commit, so commit them or put them away`,
    );
  }
  try {
    // Asked of the repository itself: what the checkout knows of it may be old, or of a fork. In full, since a tag may
    // have the name of the branch.
    await git(folder, 'fetch', '--quiet', '--no-tags', repository, `refs/heads/${BRANCH}`);
  } catch ({ stderr, message }) {
    const why = (stderr || message).trim().split('\n').at(-1);
    return [...found, `cannot fetch ${BRANCH} of ${repository} (${why}): check its name`];
  }
  try {
    await git(folder, 'merge-base', '--is-ancestor', commit, 'FETCH_HEAD');
  } catch {
    found.push(`commit ${commit} is not on ${BRANCH} of ${repository}: merge it, then release it`);
  }
  if (found.length > 0) return found;
  const unchecked = await checksObstacle(commit, repository, how);
  return unchecked === undefined ? [] : [unchecked];
}

/**
 * The reason against a release of a commit by its checks; undefined if they passed.
 * @param api the URL of GitHub's
 * @param token may read Actions; without one, GitHub answers for public repositories
 * @param answerMs how long GitHub may take for its answer
 */
export async function checksObstacle(
  commit,
  repository,
  {
    api = process.env.GITHUB_API_URL || 'https://api.github.com',
    token = process.env.GITHUB_TOKEN,
    answerMs = ANSWER_MS,
  } = {},
) {
  const query = new URLSearchParams({ head_sha: commit, branch: BRANCH, event: 'push' });
  const url = `${api}/repos${new URL(repository).pathname}/actions/workflows/${CHECKS}/runs?${query}`;
  let runs;
  try {
    const answer = await fetch(url, {
      headers: {
        accept: 'application/vnd.github+json',
        'x-github-api-version': '2022-11-28',
        ...(token && { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.timeout(answerMs),
    });
    const body = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status}, ${body.slice(0, 200)}`);
    runs = JSON.parse(body).workflow_runs;
    if (!Array.isArray(runs)) throw new Error('no list of runs');
  } catch (failure) {
    const why = failure.cause?.message ?? failure.message;
    return `GitHub does not list the runs of ${CHECKS}, ${url} (${why}): check the repository's name and that GITHUB_TOKEN has the right actions: read`;
  }
  // A pull request's run is not of the commit, and another branch's is not of main. A run that is repeated has the result
  // of its last attempt.
  const own = runs.filter(
    (run) => run.head_sha === commit && run.head_branch === BRANCH && run.event === 'push',
  );
  if (own.length === 0) {
    return `${CHECKS} has not run for commit ${commit} on ${BRANCH}; of commits that are pushed together, it runs for the last one`;
  }
  const other = own.find((run) => run.status !== 'completed' || run.conclusion !== 'success');
  if (other === undefined) return undefined;
  if (other.status !== 'completed') {
    return `${CHECKS} is ${other.status} for commit ${commit}: run this again when it has passed, ${other.html_url}`;
  }
  return `${CHECKS} ended with ${other.conclusion} for commit ${commit}: repeat it, or release another commit, ${other.html_url}`;
}
