'use strict';
// Pods of Kubernetes as processes, by a manifest and an image's folder: what the manifest has run, probes and ends is run, probed
// and ended, each pod with a directory of pages and a port of its own. No container is here.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const http = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

const { freePort } = require('./lease/servers.js');
const { createDirectory } = require('./own-directory.js');

/** How long a busy machine may take to start a pod, and a request may take, ms. */
const PATIENCE_MS = 300_000;
/** Kubernetes kills what lives longer after its end has begun. */
const GRACE_MS = 30_000;
const POLL_MS = 50;

/** Each pod that lives. */
const pods = new Set();
process.once('exit', () => {
  for (const pod of pods) pod.kill();
});

/** A request by a connection of its own. */
function requestOf(port, method, path, headers = {}) {
  return http.request({
    ...{ host: '127.0.0.1', port, method, path, agent: false },
    headers: { 'Content-Type': 'application/json', ...headers },
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
}

/** Sends the body, if there is one. Returns the `status` of the reply, and its `body` from JSON. */
async function send(request, body) {
  request.end(body && JSON.stringify(body));
  const [response] = await once(request, 'response');
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  return { status: response.statusCode, body: JSON.parse(text) };
}

const ask = (port, method, path, body) => send(requestOf(port, method, path), body);

class Pod {
  #container;
  #process;
  #ended;
  port;
  /** What its readiness probe has shown. */
  ready;

  /**
   * Resolves when it is ready.
   * @param spec of the pod, in a manifest
   * @param image as buildImage returns it
   * @param secrets by name: the variables of each
   */
  static async start(spec, image, secrets) {
    const pod = new Pod();
    const own = { PATH: process.env.PATH, ...image.env, SNOWDRIFT_SHARED: createDirectory() };
    const environmentOf = ({ envFrom = [], env = [] }) => ({
      ...own,
      ...Object.assign({}, ...envFrom.map(({ secretRef }) => secrets[secretRef.name])),
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
    });
    const run = (container, env) => {
      const [program, ...args] = container.command ?? image.command;
      const stdio = ['ignore', 'ignore', 'inherit'];
      return spawn(program, args, { cwd: image.folder, env, stdio });
    };
    for (const container of spec.initContainers ?? []) {
      const [code] = await once(run(container, environmentOf(container)), 'exit');
      assert.equal(code, 0, container.name);
    }
    [pod.#container] = spec.containers;
    pod.port = String(await freePort());
    const env = environmentOf(pod.#container);
    assert.equal(env.PORT, String(pod.#container.ports[0].containerPort));
    pod.#process = run(pod.#container, { ...env, PORT: pod.port });
    pod.#ended = once(pod.#process, 'exit');
    pods.add(pod);
    pod.#ended.then(() => pods.delete(pod));
    await pod.#becomeReady();
    return pod;
  }

  async #becomeReady() {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      assert.ok(pods.has(this) && performance.now() < end, 'it does not become ready');
      const answer = await this.probe('readinessProbe').catch(() => undefined);
      if (answer?.status === 200) {
        this.ready = answer.body;
        break;
      }
      await sleep(POLL_MS);
    }
    for (const name of ['startupProbe', 'livenessProbe'])
      assert.equal((await this.probe(name)).status, 200);
  }

  probe(name) {
    const { path, port } = this.#container[name].httpGet;
    assert.equal(port, this.#container.ports[0].name);
    return ask(this.port, 'GET', path);
  }

  /**
   * Ends it as Kubernetes does, after the Service has withdrawn it.
   * @param last a POST that the pod has at that moment: `path` and `body`. Returns its reply
   */
  async stop(last) {
    const [program, ...args] = this.#container.lifecycle.preStop.exec.command;
    await once(spawn(program, args), 'exit');
    const request = requestOf(this.port, 'POST', last.path, { Expect: '100-continue' });
    request.flushHeaders();
    await once(request, 'continue');
    const began = performance.now();
    this.#process.kill('SIGTERM');
    // So that it notices the signal first. If it does not, the request is served just as well.
    await sleep(POLL_MS);
    const reply = await send(request, last.body);
    await this.#ended;
    assert.ok(performance.now() - began < GRACE_MS, 'it would have been killed');
    assert.notEqual(this.#process.signalCode, 'SIGKILL');
    return reply;
  }

  async kill() {
    this.#process.kill('SIGKILL');
    await this.#ended;
  }
}

/** The pods of a Deployment and the Service before them. */
class Deployment {
  /** Those that get requests. */
  pods = [];
  #spec;
  #image;
  #secrets;
  #turn = 0;

  /** Resolves when all replicas are ready. */
  async start({ spec }, image, secrets) {
    this.#spec = spec;
    this.#image = image;
    this.#secrets = secrets;
    await this.restart();
  }

  /** After a stop. Resolves when all replicas are ready. */
  async restart() {
    const starts = Array.from({ length: this.#spec.replicas }, () => this.#startPod());
    this.pods = await Promise.all(starts);
  }

  #startPod() {
    return Pod.start(this.#spec.template.spec, this.#image, this.#secrets);
  }

  /** A rollout of another image, as the strategy of the manifest has it. @returns the reply to the last request of each old pod */
  async roll(image, last) {
    assert.deepEqual(this.#spec.strategy.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 });
    this.#image = image;
    const replies = [];
    for (const old of [...this.pods]) {
      this.pods.push(await this.#startPod());
      replies.push(await this.#withdraw(old).stop(last));
    }
    return replies;
  }

  /** Kills one, and starts another one in its place. */
  async replaceKilled(pod) {
    await pod.kill();
    this.#withdraw(pod);
    this.pods.push(await this.#startPod());
  }

  stop(last) {
    return Promise.all(this.pods.splice(0).map((pod) => pod.stop(last)));
  }

  #withdraw(pod) {
    this.pods.splice(this.pods.indexOf(pod), 1);
    return pod;
  }

  /** A request that the Service gives one of the pods. Returns that `pod`, too; or a `failure` of the connection. */
  async ask(method, path, body) {
    const pod = this.pods[this.#turn++ % this.pods.length];
    try {
      return { pod, ...(await ask(pod.port, method, path, body)) };
    } catch (failure) {
      return { pod, failure };
    }
  }
}

module.exports = { Deployment, ask };
