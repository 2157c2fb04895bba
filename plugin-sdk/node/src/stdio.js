/** @file Standard input and output, taken away from everyone but the protocol. */

import fs from 'node:fs';
import net from 'node:net';

const { O_RDONLY, O_WRONLY, O_APPEND, O_NONBLOCK } = fs.constants;

/** Bytes asked for in one read. */
const READ_SIZE = 64 * 1024;

/** Where a descriptor that does not block is full, it is tried again after so many milliseconds. */
const RETRY_AFTER = 1;

/** Never changed: a place to sleep at. */
const SLEEPER = new Int32Array(new SharedArrayBuffer(4));

/**
 * The host's bytes.
 * @typedef {object} Input
 * @property {(data: (buffer: Buffer, length: number) => void, end: () => void) => void} listen
 *   hands on what comes; the buffer is used anew afterwards
 * @property {(data: (buffer: Buffer, length: number) => void, end: () => void) => void} look
 *   hands on what is there, without waiting
 */

/**
 * Moves both protocol streams to descriptors that child programs do not get.
 *
 * Afterwards descriptor 0 is empty and descriptor 1 is stderr, so that neither prints nor child programs
 * touch the protocol. Node has no `dup2`; but a pipe can be opened anew through `/dev/fd`, and a file
 * opened just after a descriptor was closed gets its number. What cannot be opened anew, such as a
 * socket, stays where it is; only prints of this process are kept off it then.
 * @returns {{input: Input, write: (line: string) => void}} `write` returns once the line is written
 */
export function takeStreams() {
  const input = isPipe(0) ? reopen(0, O_RDONLY | O_NONBLOCK, () => fs.openSync('/dev/null', 'r')) : 0;
  const output = reopen(1, O_WRONLY | O_APPEND, () => openStderr() ?? fs.openSync('/dev/null', 'w'));
  if (fs.fstatSync(1).ino !== fs.fstatSync(2).ino) process.stdout.write = process.stderr.write.bind(process.stderr);
  return { input: openInput(input), write: (line) => writeWhole(output, line) };
}

/**
 * Opens a descriptor anew and puts something else in its place.
 * @param {number} fd
 * @param {number} flags
 * @param {() => number} openOther
 * @returns {number} the new descriptor, or the old one where the system does not allow it
 */
function reopen(fd, flags, openOther) {
  let moved;
  try {
    moved = fs.openSync(`/dev/fd/${fd}`, flags);
    // Tried before the place is free: afterwards it must not fail.
    fs.closeSync(openOther());
  } catch {
    if (moved !== undefined) fs.closeSync(moved);
    return fd;
  }
  fs.closeSync(fd);
  openOther();
  return moved;
}

/** Stderr by another descriptor; a socket cannot be opened anew. */
function openStderr() {
  try {
    return fs.openSync('/dev/fd/2', O_WRONLY | O_APPEND);
  } catch {
    return undefined;
  }
}

/** @param {number} fd */
function isPipe(fd) {
  return fs.fstatSync(fd).isFIFO();
}

/**
 * @param {number} fd
 * @returns {Input}
 */
function openInput(fd) {
  const buffer = Buffer.allocUnsafe(READ_SIZE);
  /** Not the other one, whose bytes may be in use. @type {Buffer | undefined} */
  let ahead;
  // What was not moved may block, unless Node has made it a stream.
  let mayBlock = fd === 0;
  return {
    listen(data, end) {
      if (!isPipe(fd) && !fs.fstatSync(fd).isSocket()) {
        const file = fs.createReadStream('', { fd });
        file.on('data', (chunk) => data(/** @type {Buffer} */ (chunk), chunk.length));
        file.on('end', end).on('error', end);
        return;
      }
      /** @param {number} length @param {Uint8Array} filled */
      const callback = (length, filled) => {
        data(/** @type {Buffer} */ (filled), length);
        return true;
      };
      const options = { fd, readable: true, writable: false, onread: { buffer, callback } };
      new net.Socket(options).on('end', end).on('error', end).resume();
      mayBlock = false;
    },
    look(data, end) {
      if (mayBlock) return;
      ahead ??= Buffer.allocUnsafe(READ_SIZE);
      const length = readNow(fd, ahead);
      if (length === 0) end();
      else if (length !== undefined) data(ahead, length);
    },
  };
}

/**
 * Reads what is there.
 * @param {number} fd
 * @param {Buffer} buffer
 * @returns {number | undefined} 0 at the end, `undefined` where there is nothing yet
 */
function readNow(fd, buffer) {
  try {
    return fs.readSync(fd, buffer);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EAGAIN') return undefined;
    throw error;
  }
}

/**
 * Writes a whole line, and waits for room where there is none: the host reads at all times.
 * @param {number} fd
 * @param {string} line
 */
function writeWhole(fd, line) {
  let written = writeSome(fd, line);
  if (written === Buffer.byteLength(line)) return;
  const bytes = Buffer.from(line);
  while (written < bytes.length) {
    const more = writeSome(fd, bytes.subarray(written));
    if (more === 0) Atomics.wait(SLEEPER, 0, 0, RETRY_AFTER);
    written += more;
  }
}

/**
 * @param {number} fd
 * @param {any} data
 */
function writeSome(fd, data) {
  try {
    return fs.writeSync(fd, data);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EAGAIN') return 0;
    throw error;
  }
}
