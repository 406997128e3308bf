// Where a release comes from: a repository on GitHub, and a commit on its main whose checks passed there.

import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const BRANCH = 'main';
/** The file of the workflow that checks each commit of the branch. */
const CHECKS = 'ci.yml';

/** Between two questions to GitHub. */
const PAUSE_MS = 60_000;
/** An hour: a job of the checks ends within 30 minutes, and may have to wait for a machine. */
const MOST_ASKED = 60;
/** For a run that GitHub does not list yet, since the tag was pushed with the commit, and for answers that fail. */
const MOST_IN_VAIN = 5;
const ANSWER_MS = 10_000;
const GIT_MS = 120_000;
const PAGE = 100;
/** GitHub lists 1,000 runs at most. */
const MOST_PAGES = 10;

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
 * Waits until the checks of a commit have ended, for a bounded time.
 * @param api the URL of GitHub's
 * @param token may read Actions; without one, GitHub answers for public repositories
 * @param pause is called with what is waited for
 * @param answerMs how long GitHub may take for an answer
 * @returns the reason against a release; undefined if the checks passed
 */
export async function checksObstacle(
  commit,
  repository,
  {
    api = process.env.GITHUB_API_URL || 'https://api.github.com',
    token = process.env.GITHUB_TOKEN,
    pause = waitAloud,
    answerMs = ANSWER_MS,
  } = {},
) {
  const url = `${api}/repos${new URL(repository).pathname}/actions/workflows/${CHECKS}/runs`;
  for (let asked = 1, inVain = 0; ; asked++) {
    const { passed, wrong, running, nothing } = await runsOf(commit, url, token, answerMs).then(
      (runs) => verdictOf(commit, runs),
      (failure) => (failure.isFinal ? { wrong: failure.message } : { nothing: failure.message }),
    );
    if (passed) return undefined;
    if (wrong !== undefined) return wrong;
    inVain = nothing === undefined ? 0 : inVain + 1;
    if (inVain === MOST_IN_VAIN) return `${nothing}: run this again later`;
    if (asked === MOST_ASKED) return `${running ?? nothing}: run this again when it has ended`;
    await pause(running ?? nothing);
  }
}

async function waitAloud(what) {
  console.log(`${what}, asking again in a minute`);
  await sleep(PAUSE_MS);
}

/** What the runs of the checks say of a commit. */
function verdictOf(commit, runs) {
  // GitHub is asked for these only. A pull request's run is not of the commit, and another branch's is not of main.
  const own = runs.filter(
    (run) => run.head_sha === commit && run.head_branch === BRANCH && run.event === 'push',
  );
  // A run that is repeated keeps its number, and has the result of its last attempt.
  const [last] = own.sort((a, b) => b.run_number - a.run_number);
  if (last === undefined) {
    return {
      nothing: `${CHECKS} has not run for commit ${commit} on ${BRANCH}; of commits that are pushed together, it runs for the last one`,
    };
  }
  const { status, conclusion, html_url: page } = last;
  if (status !== 'completed') return { running: `${CHECKS} is ${status} for ${commit}, ${page}` };
  if (conclusion === 'success') return { passed: true };
  return {
    wrong: `${CHECKS} ended with ${conclusion} for commit ${commit}: repeat it, or release another commit, ${page}`,
  };
}

/** The runs of the checks for a commit: all of them, since the order of GitHub's list is not documented. */
async function runsOf(commit, url, token, answerMs) {
  const runs = [];
  for (let page = 1; page <= MOST_PAGES; page++) {
    const query = { head_sha: commit, branch: BRANCH, event: 'push', per_page: PAGE, page };
    const found = await answerOf(`${url}?${new URLSearchParams(query)}`, token, answerMs);
    runs.push(...found);
    if (found.length < PAGE) break;
  }
  return runs;
}

/** One page of runs. An error `isFinal` if asking again would change nothing. */
async function answerOf(url, token, answerMs) {
  let answer;
  let text;
  try {
    answer = await fetch(url, {
      headers: {
        accept: 'application/vnd.github+json',
        'x-github-api-version': '2022-11-28',
        ...(token && { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.timeout(answerMs),
    });
    text = await answer.text();
  } catch (failure) {
    throw new Error(`GitHub does not answer (${failure.cause?.message ?? failure.message})`);
  }
  const body = jsonOf(text);
  const { status } = answer;
  if (status >= 400 && status < 500) {
    // A limit of requests, too: who goes on asking may be banned.
    const advice = {
      401: 'the token in GITHUB_TOKEN is not valid',
      403: 'the job needs the permission actions: read, or its requests are limited and it can be run again in an hour',
      404: `check the name of the repository, and that it has .github/workflows/${CHECKS}`,
      429: 'run this again in an hour',
    }[status];
    const why = `GitHub answers ${status} to ${url} (${body?.message ?? 'no message'})`;
    throw Object.assign(new Error(`${why}${advice ? `: ${advice}` : ''}`), { isFinal: true });
  }
  if (status !== 200 || !Array.isArray(body?.workflow_runs)) {
    throw new Error(`GitHub answers ${status} to ${url}, without a list of runs`);
  }
  return body.workflow_runs;
}

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
