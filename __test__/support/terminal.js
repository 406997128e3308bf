'use strict';
// A command in a terminal, by Python's pty, and what its user sees.

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');

const { skipped } = require('./amount.js');

/** Runs a command: copies what it prints. The line ^C on stdin types it. */
const PTY = `
import fcntl, os, pty, select, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 30, int(sys.argv[1]), 0, 0))
sources = [fd, 0]
while True:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:
            data = b''
        if source == fd and not data:
            status = os.waitpid(pid, 0)[1]
            sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        if source == fd:
            os.write(1, data)
        elif not data:
            sources.remove(0)
        else:
            os.write(fd, b'\\x03')
`;

/** Why there is no terminal, or false. */
function missingTerminal() {
  const isHere = spawnSync('python3', ['-c', 'import pty']).status === 0;
  return isHere ? false : skipped('there is no python3 with the module pty');
}

/** A command that runs in a terminal. */
class Terminal {
  /** All that was printed. */
  text = '';
  #child;

  constructor(command, { columns = 80, env = {} } = {}) {
    // With CI, Node takes a terminal for a log.
    const { CI, NO_COLOR, NODE_DISABLE_COLORS, FORCE_COLOR, ...others } = process.env;
    this.#child = spawn('python3', ['-c', PTY, String(columns), ...command], {
      env: { ...others, TERM: 'xterm-256color', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.setEncoding('utf8').on('data', (text) => {
      this.text += text;
    });
    this.ended = once(this.#child, 'close').then(([code]) => code);
  }

  interrupt() {
    this.#child.stdin.write('^C\n');
  }

  kill() {
    this.#child.kill('SIGKILL');
  }
}

/** The lines that a terminal of so many columns shows of a text. */
function screenOf(text, columns) {
  const lines = [[]];
  let [row, column] = [0, 0];
  const lineAt = (index) => {
    while (lines.length <= index) lines.push([]);
    return lines[index];
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what a terminal reads
  for (const [part, count, command] of text.matchAll(/\x1b\[(\d*)([A-Za-z])|[\s\S]/gu)) {
    if (command === 'A') row = Math.max(row - Number(count || 1), 0);
    else if (command === 'K') lineAt(row).length = column;
    else if (command !== undefined) throw new Error(`the terminal knows no ${command}`);
    else if (part === '\r') column = 0;
    else if (part === '\n') row++;
    else {
      if (column === columns) [row, column] = [row + 1, 0];
      lineAt(row)[column++] = part;
    }
  }
  return lines.map((line) =>
    Array.from(line, (part) => part ?? ' ')
      .join('')
      .trimEnd(),
  );
}

module.exports = { Terminal, missingTerminal, screenOf };
