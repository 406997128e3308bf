'use strict';
// A page in headless Chromium, by the DevTools protocol over a pipe.

const { spawn } = require('node:child_process');
const { existsSync, mkdtempSync, rmSync } = require('node:fs');
const { once } = require('node:events');
const { tmpdir } = require('node:os');
const { delimiter, join } = require('node:path');

const { skipped } = require('./amount.js');

const COMMAND = 'chromium';
/** Longer than a busy machine takes. */
const LIMIT_MS = 180_000;

const FLAGS = [
  ...['headless', 'no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run', 'disable-sync'],
  ...['disable-background-networking', 'disable-component-update', 'remote-debugging-pipe'],
].map((name) => `--${name}`);

/** Why there is no browser, or false. */
function missingBrowser() {
  const folders = process.env.PATH.split(delimiter);
  const isHere = folders.some((folder) => existsSync(join(folder, COMMAND)));
  return isHere ? false : skipped(`there is no ${COMMAND}`);
}

const KEYS = {
  Tab: { code: 'Tab', windowsVirtualKeyCode: 9 },
  Enter: { code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  ' ': { code: 'Space', windowsVirtualKeyCode: 32, text: ' ' },
  End: { code: 'End', windowsVirtualKeyCode: 35 },
  Home: { code: 'Home', windowsVirtualKeyCode: 36 },
  ArrowLeft: { code: 'ArrowLeft', windowsVirtualKeyCode: 37 },
  ArrowRight: { code: 'ArrowRight', windowsVirtualKeyCode: 39 },
  ArrowDown: { code: 'ArrowDown', windowsVirtualKeyCode: 40 },
};

class Page {
  /** What the page printed to its console, and what was thrown and reported. */
  complaints = [];
  /** The URLs that the page requested. */
  requests = [];
  #profile = mkdtempSync(join(tmpdir(), 'snowdrift-chromium-'));
  #browser;
  #session;
  #calls = new Map();
  #lastCall = 0;
  #loaded;

  static async open() {
    const page = new Page();
    await page.#start();
    return page;
  }

  async #start() {
    this.#browser = spawn(COMMAND, [...FLAGS, `--user-data-dir=${this.#profile}`], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
      env: { ...process.env, HOME: this.#profile },
    });
    this.#browser.once('exit', () => this.#failAll(new Error('the browser ended')));
    this.#browser.stdio[3].on('error', () => {});
    let rest = '';
    this.#browser.stdio[4].setEncoding('utf8').on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages) this.#receive(JSON.parse(message));
    });
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const attached = await this.send('Target.attachToTarget', { targetId, flatten: true });
    this.#session = attached.sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`);
  }

  #failAll(error) {
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  #receive({ id, method, params, result, error }) {
    if (id !== undefined) {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(result);
      else call?.reject(new Error(error.message));
    } else if (method === 'Page.loadEventFired') this.#loaded?.();
    else if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
    else if (method === 'Log.entryAdded') this.complaints.push(params.entry.text);
    else if (method === 'Runtime.consoleAPICalled') this.complaints.push(params.type);
    else if (method === 'Runtime.exceptionThrown') {
      this.complaints.push(params.exceptionDetails.exception?.description);
    }
  }

  /** Calls a method of the protocol. */
  send(method, params = {}) {
    const id = ++this.#lastCall;
    const { promise, ...call } = settled();
    this.#calls.set(id, call);
    const message = { id, method, params, sessionId: this.#session };
    this.#browser.stdio[3].write(`${JSON.stringify(message)}\0`);
    const timer = setTimeout(() => call.reject(new Error(`no answer: ${method}`)), LIMIT_MS);
    return promise.finally(() => clearTimeout(timer));
  }

  /** @param scheme `light` or `dark` */
  async show(width, height, scheme) {
    await this.send('Emulation.setDeviceMetricsOverride', {
      ...{ width, height, deviceScaleFactor: 1, mobile: width < 600 },
    });
    const features = [{ name: 'prefers-color-scheme', value: scheme }];
    await this.send('Emulation.setEmulatedMedia', { features });
  }

  async load(url) {
    const { promise, resolve, reject } = settled();
    this.#loaded = resolve;
    const timer = setTimeout(() => reject(new Error(`it does not load ${url}`)), LIMIT_MS);
    await this.send('Page.navigate', { url });
    await promise.finally(() => clearTimeout(timer));
  }

  /** What a function returns, run in the page. */
  async run(work, ...args) {
    const expression = `(${work})(...${JSON.stringify(args)})`;
    const options = { returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      ...options,
    });
    if (exceptionDetails === undefined) return result.value;
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  }

  async press(...keys) {
    for (const key of keys) {
      await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...KEYS[key] });
      await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key, ...KEYS[key] });
    }
  }

  type(text) {
    return this.send('Input.insertText', { text });
  }

  async close() {
    const ended = once(this.#browser, 'exit');
    this.#session = undefined;
    this.send('Browser.close').catch(() => {});
    const timer = setTimeout(() => this.#browser.kill('SIGKILL'), LIMIT_MS);
    await ended;
    clearTimeout(timer);
    // Its processes write there until they have ended, too.
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20 });
  }
}

function settled() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

module.exports = { Page, missingBrowser };
