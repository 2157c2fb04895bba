/** @file The way to the host: messages out, and the answers this side waits for. */

import { remark } from './complaint.js';
import { PluginError, fromRpc } from './error.js';
import { FRAME_LIMIT } from './frames.js';
import { stringify } from './json.js';

/** @typedef {import('./error.js').RpcError} RpcError */

/** Levels of log lines, the least first. */
export const LEVELS = Object.freeze(/** @type {const} */ (['trace', 'debug', 'info', 'warn', 'error']));

/** @typedef {typeof LEVELS[number]} Level */

/** A log line is clipped at as many characters. */
const LOG_LINE_MAX = 64 * 1024;

/** The host keeps about as many bytes of one line of the log; a longer stack takes several. */
const LOG_ENTRY_MAX = 8000;

/** As much of a stack is told, in characters. */
const STACK_MAX = 32 * 1024;

/**
 * What carries lines to the host and back.
 * @typedef {object} Transport
 * @property {(line: string) => void} write sends a line, its end included
 * @property {() => void} leave ends the plugin: the host is done with it, or gone
 * @property {() => void} [look] takes in what the host has sent meanwhile, without waiting
 */

/**
 * @typedef {object} Waiting
 * @property {string} callId
 * @property {(result: any) => void} resolve
 * @property {(error: PluginError) => void} reject
 */

/** The host's side of the conversation, as the plugin sees it. */
export class Wire {
  #transport;
  /**
   * Requests of this side that have no answer yet, by id; `null` once none can come.
   * @type {Map<number, Waiting> | null}
   */
  #waiting = new Map();
  #nextId = 1;
  #leastLevel = 0;
  /** What the host offers; `null` until it has said. @type {Set<string> | null} */
  #offers = null;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /** A wire without another end: what is said is lost, what is asked fails at once. */
  static loose() {
    const wire = new Wire({ write() {}, leave() {} });
    wire.hostIsGone();
    return wire;
  }

  /** Takes in what the host has sent, where a handler keeps the event loop from it. */
  look() {
    this.#transport.look?.();
  }

  /** Ends the plugin, where it is a process of its own. */
  leave() {
    this.#transport.leave();
  }

  /** @param {unknown} features the host's features, as `describe` lists them */
  setOffers(features) {
    if (Array.isArray(features)) this.#offers = new Set(features);
  }

  /** @param {unknown} level the least level worth sending */
  setLogLevel(level) {
    const at = LEVELS.indexOf(/** @type {Level} */ (level));
    this.#leastLevel = at === -1 ? LEVELS.indexOf('info') : at;
  }

  /**
   * Answers a request with a result.
   * @param {unknown} id
   * @param {string} json
   * @throws {PluginError} when it is too large for one message; nothing was sent then
   */
  answer(id, json) {
    this.#send(`{"jsonrpc":"2.0","id":${idToJson(id)},"result":${json}}\n`, 'the result');
  }

  /**
   * Answers a request with an error.
   * @param {unknown} id
   * @param {RpcError} error
   */
  refuse(id, error) {
    /** @param {RpcError} told */
    const tell = (told) =>
      this.#send(`{"jsonrpc":"2.0","id":${idToJson(id)},"error":${stringify(told, 'the error')}}\n`, 'the error');
    try {
      tell(error);
    } catch {
      // Its details are too large, or no JSON: the failure is told without them.
      tell({ code: error.code, message: error.message });
    }
  }

  /**
   * Writes a line to the log; below the host's level, nothing.
   * @param {Level} level
   * @param {string} message
   * @param {{callId: string, traceId: string | undefined}} [call]
   */
  log(level, message, call) {
    if (LEVELS.indexOf(level) < this.#leastLevel || !this.#mayNotify('log')) return;
    const clipped = message.length <= LOG_LINE_MAX ? message : `${message.slice(0, LOG_LINE_MAX)}…`;
    this.#notify('log', { level, message: clipped, call_id: call?.callId, trace_id: call?.traceId });
  }

  /**
   * Tells the log of a fault, in parts that a host shows whole; where there is no log, stderr.
   * @param {string} text
   * @param {{callId: string, traceId: string | undefined}} [call]
   */
  tellFault(text, call) {
    if (!this.#mayNotify('log')) return remark(text);
    for (const entry of inEntries(text.slice(0, STACK_MAX))) this.log('error', entry, call);
  }

  /**
   * Says how far something is.
   * @param {{done: number, total?: number | null, message?: string}} params
   * @param {string} [callId]
   */
  progress({ done, total, message }, callId) {
    if (!this.#mayNotify('progress')) return;
    this.#notify('progress', { call_id: callId, done, total: total ?? undefined, message });
  }

  /**
   * Sends a piece of a result.
   * @param {unknown} data
   * @param {string} callId
   */
  partial(data, callId) {
    if (this.#mayNotify('partial')) this.#notify('partial', { call_id: callId, data: data ?? null });
  }

  /**
   * Asks the host something on behalf of a call.
   * @param {string} method
   * @param {object} params
   * @param {{callId: string, feature: string, notOffered: string}} about
   * @returns {Promise<any>} the result
   * @throws {PluginError} what the host answered, or why it was not asked
   */
  request(method, params, { callId, feature, notOffered }) {
    const waiting = this.#waiting;
    if (waiting === null) return Promise.reject(new PluginError('no_host', `there is no host for ${method}`));
    if (!this.#offers?.has(feature)) {
      return Promise.reject(new PluginError('not_offered', notOffered, { hint: hintFor(feature) }));
    }
    return new Promise((resolve, reject) => {
      const id = this.#nextId;
      this.#nextId += 1;
      const json = stringify({ jsonrpc: '2.0', id, method, params: { call_id: callId, ...params } }, method);
      waiting.set(id, { callId, resolve, reject });
      try {
        this.#send(`${json}\n`, method);
      } catch (error) {
        waiting.delete(id);
        throw error;
      }
    });
  }

  /**
   * Hands an answer to whoever waits for it; late and unknown ones are dropped.
   * @param {{id?: any, result?: unknown, error?: RpcError}} message
   */
  answered({ id, result, error }) {
    const waiting = this.#waiting?.get(id);
    if (waiting === undefined) return;
    this.#waiting?.delete(id);
    if (error) waiting.reject(fromRpc(error));
    else waiting.resolve(result);
  }

  /**
   * Ends all waiting on behalf of a cancelled call.
   * @param {string} callId
   */
  callCancelled(callId) {
    for (const [id, waiting] of this.#waiting ?? []) {
      if (waiting.callId === callId) {
        this.#waiting?.delete(id);
        waiting.reject(PluginError.cancelled());
      }
    }
  }

  /** Ends all waiting: no answer will come. */
  hostIsGone() {
    const waiting = this.#waiting ?? new Map();
    this.#waiting = null;
    for (const { reject } of waiting.values()) reject(new PluginError('no_host', 'the host is gone'));
  }

  /** Whether the host takes a kind of notification; where it has not said, it is tried. @param {string} feature */
  #mayNotify(feature) {
    return this.#offers === null || this.#offers.has(feature);
  }

  /**
   * @param {string} method
   * @param {object} params
   */
  #notify(method, params) {
    this.#send(`{"jsonrpc":"2.0","method":"${method}","params":${stringify(params, method)}}\n`, method);
  }

  /**
   * @param {string} line
   * @param {string} what
   */
  #send(line, what) {
    // A UTF-16 unit makes at most three bytes: most lines need not be measured.
    if (line.length * 3 > FRAME_LIMIT) refuseTooLong(Buffer.byteLength(line) - 1, what);
    this.#transport.write(line);
  }
}

/**
 * A text in parts that are short enough for the log, parted between lines.
 * @param {string} text
 */
function inEntries(text) {
  const entries = [''];
  let size = 0;
  for (const line of text.split('\n')) {
    const length = Buffer.byteLength(line) + 1;
    size += length;
    if (size > LOG_ENTRY_MAX && size > length) {
      entries.push('');
      size = length;
    }
    entries[entries.length - 1] += `${line}\n`;
  }
  return entries.map((entry) => entry.trimEnd());
}

/** @param {unknown} id as it came: a number, a text or a BigInt */
function idToJson(id) {
  return typeof id === 'number' ? String(id) : stringify(id, 'id');
}

/** @param {string} feature */
function hintFor(feature) {
  return feature === 'host_vars' ? 'do without, or keep it in data_dir' : 'do without';
}

/**
 * @param {number} size
 * @param {string} what
 */
function refuseTooLong(size, what) {
  if (size <= FRAME_LIMIT) return;
  throw new PluginError('too_large', `${what} is ${size} bytes long, and a message at most ${FRAME_LIMIT}`, {
    hint: 'give less at once, such as a page or the path of a file',
  });
}
