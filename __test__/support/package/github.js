'use strict';
// An impostor of GitHub's API, which lists the runs of a workflow.

const { once } = require('node:events');
const { createServer } = require('node:http');

const COMMIT = '1'.repeat(40);

class GitHub {
  /** A status and a body, or a function that returns them, or nothing. */
  answer;
  requests = [];
  #server;

  static async start() {
    const github = new GitHub();
    github.#server = createServer((request, response) => github.#answer(request, response));
    github.#server.listen(0, '127.0.0.1');
    await once(github.#server, 'listening');
    return github;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer({ url, headers }, response) {
    const { pathname, searchParams } = new URL(url, this.url);
    const query = Object.fromEntries(searchParams);
    this.requests.push({ path: pathname, query, headers });
    const { answer: given } = this;
    const answer = typeof given === 'function' ? given(query, response) : given;
    if (answer === undefined) return;
    const [status, body] = answer;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }
}

/** A run that passed, but for what is given. */
const run = (more) => ({
  head_sha: COMMIT,
  head_branch: 'main',
  event: 'push',
  status: 'completed',
  conclusion: 'success',
  html_url: 'https://github.com/Someone/snowdrift/actions/runs/7',
  ...more,
});

/** The answer with these runs. */
const listed = (...runs) => [200, { total_count: runs.length, workflow_runs: runs }];

module.exports = { COMMIT, GitHub, listed, run };
