/** @file Plugins as processes, with pipes as plugd gives them. */

import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { parse, stringify } from '../src/json.js';
import { Lines, withinPatience } from './lines.js';

const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = fs.constants;

/**
 * The path of a plugin beside this file.
 * @param {string} name
 */
export function script(name) {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** A plugin as a process. */
export class Child {
  /**
   * @param {string} file a plugin beside this file
   * @param {{args?: string[], sockets?: boolean, reading?: boolean}} [options] sockets instead of pipes, as
   *   Node itself gives to its children; whether what it writes is read
   */
  constructor(file, { args = [], sockets = false, reading = true } = {}) {
    this.out = new Lines();
    this.stderr = '';
    const pipes = sockets ? undefined : openPipes();
    const stdio = pipes ? [pipes.childIn, pipes.childOut, pipes.childErr] : ['pipe', 'pipe', 'pipe'];
    this.process = spawn(process.execPath, [script(file), ...args], { stdio });
    if (pipes) for (const fd of [pipes.childIn, pipes.childOut, pipes.childErr]) fs.closeSync(fd);
    this.input = pipes ? fs.createWriteStream('', { fd: pipes.input }) : this.process.stdin;
    this.input.on('error', () => {});
    this.outputFd = pipes?.output;
    if (reading) this.read();
    const stderr = this.process.stderr ?? fs.createReadStream('', { fd: pipes.stderr });
    this.errors = stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text));
    this.exited = withinPatience('its end', new Promise((resolve) => this.process.on('exit', resolve)));
  }

  /** Begins to read what it writes. */
  read() {
    const output = this.process.stdout ?? fs.createReadStream('', { fd: this.outputFd, highWaterMark: 1 << 20 });
    output.setEncoding('utf8').on('data', (text) => this.out.push(text));
  }

  /** @param {object | string} message an object without its `jsonrpc`, or a whole line */
  send(message) {
    this.input.write(typeof message === 'string' ? `${message}\n` : `${stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** The next message. @returns {Promise<any>} */
  async next() {
    return parse(await this.out.next());
  }

  /** Sends a request and waits for the next message. */
  async ask(id, method, params = {}) {
    this.send({ id, method, params });
    return this.next();
  }

  /** Describes and initialises it. */
  async start(features = ['log', 'progress', 'partial', 'host_calls', 'host_asks']) {
    await this.ask(1, 'describe', { protocol: { versions: [1], features }, host: { name: 'test', version: '1' } });
    await this.ask(2, 'init', { config: {}, data_dir: os.tmpdir(), locale: 'en', log_level: 'debug' });
    return this;
  }

  /** Sends a call. */
  call(id, operation, args = {}) {
    this.send({
      id,
      method: 'call',
      params: { operation, arguments: args, context: { call_id: `c-${id}`, deadline_ms: 30_000 } },
    });
  }

  /** Closes its input. */
  close() {
    this.input.end();
  }

  /** Ends it, whatever it does. */
  async kill() {
    this.process.kill('SIGKILL');
    this.input.destroy();
    await this.exited;
  }
}

/** Three pipes: Node has none to give, and a socket cannot be opened anew. */
function openPipes() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plugd-sdk-'));
  const names = ['in', 'out', 'err'].map((name) => path.join(folder, name));
  const made = spawnSync('mkfifo', names);
  if (made.status !== 0) throw new Error(`mkfifo failed: ${made.stderr}`);
  // Opened for both, so that neither end waits for the other.
  const both = names.map((name) => fs.openSync(name, O_RDWR | O_NONBLOCK));
  const pipes = {
    childIn: fs.openSync(names[0], O_RDONLY),
    input: fs.openSync(names[0], O_WRONLY),
    childOut: fs.openSync(names[1], O_WRONLY),
    output: fs.openSync(names[1], O_RDONLY),
    childErr: fs.openSync(names[2], O_WRONLY),
    stderr: fs.openSync(names[2], O_RDONLY),
  };
  both.forEach((fd) => fs.closeSync(fd));
  fs.rmSync(folder, { recursive: true });
  return pipes;
}
