/** @file The conversation: takes the host's messages, opens and closes the plugin, answers. */

import { Calls } from './calls.js';
import { hookFailure, remark } from './complaint.js';
import { InitContext } from './context.js';
import { CODE } from './error.js';
import { FRAME_LIMIT, LineSplitter } from './frames.js';
import { parse, stringify } from './json.js';
import { Pending } from './pending.js';
import { Wire } from './wire.js';

/**
 * After the end of input, answers that are nearly there still go out, within so many milliseconds: for a
 * conversation piped in by hand.
 */
const LAST_WORDS = 250;

/** The `id` of a message, as it stands at its beginning. */
const ID_IN_HEAD = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)/;

/** A plugin in conversation with its host. */
export class Session {
  #plugin;
  #wire;
  #calls;
  #pending = new Pending();
  /** @type {import('./calls.js').Life} */
  #life;
  /** What `init` said of the run. @type {{dataDir?: string, locale?: string}} */
  #about = {};
  #splitter;
  /** Lines that have come and were not taken yet. @type {string[]} */
  #inbox = [];
  #taking = false;
  #tell = (/** @type {string} */ text) => this.#wire.tellFault(text);
  /** When the input ended, in milliseconds. */
  #endedAt = Infinity;

  /**
   * @param {import('./plugin.js').Running} plugin
   * @param {import('./wire.js').Transport} transport
   * @param {import('node:async_hooks').AsyncLocalStorage<any>} [ambient]
   */
  constructor(plugin, transport, ambient) {
    this.#plugin = plugin;
    this.#wire = new Wire(transport);
    const needsInit = plugin.hooks.init !== undefined || plugin.manifest.config_schema !== undefined;
    this.#life = { stage: needsInit ? 'unopened' : 'open', state: undefined, config: undefined };
    this.#calls = new Calls(plugin, this.#wire, this.#pending, this.#life, ambient);
    this.#splitter = new LineSplitter({
      line: (text) => void this.#inbox.push(text),
      tooLong: (head) => this.#refuseTooLong(head),
      notUtf8: () => remark('skipped a line from the host: it is no UTF-8'),
    });
  }

  /**
   * Takes bytes of the host.
   * @param {Buffer} buffer which may be used anew afterwards
   * @param {number} [length]
   */
  receive(buffer, length) {
    this.#splitter.push(buffer, length);
    this.#takeAll();
  }

  /**
   * Takes bytes of the host while a handler runs: a `cancel` is heeded, the rest waits its turn.
   * @param {Buffer} buffer
   * @param {number} length
   */
  lookAhead(buffer, length) {
    this.#splitter.push(buffer, length);
    this.#inbox = this.#inbox.filter((text) => !(text.includes('"cancel"') && this.#cancelled(text)));
    if (!this.#taking) setImmediate(() => this.#takeAll());
  }

  /** The input has ended: what is nearly there is still answered, then the plugin leaves. */
  async end() {
    if (this.#endedAt !== Infinity) return;
    this.#endedAt = performance.now();
    this.#splitter.finish();
    this.#takeAll();
    this.#wire.hostIsGone();
    await this.#pending.isAtMost(0, LAST_WORDS);
    this.#wire.leave();
  }

  /** Leaves if the input ended a while ago, and a handler keeps the event loop from it. */
  leaveIfOver() {
    if (performance.now() - this.#endedAt > LAST_WORDS) this.#wire.leave();
  }

  /**
   * Logs a line, for the call that the running code belongs to.
   * @param {import('./wire.js').Level} level
   * @param {string} message
   */
  log(level, message) {
    const context = this.#calls.currentContext;
    if (context) context.log(level, message);
    else this.#wire.log(level, message);
  }

  /**
   * Fails the call, if any, whose code has thrown where nobody could catch it.
   * @param {unknown} thrown
   */
  failCurrent(thrown) {
    this.#calls.failCurrent(thrown);
  }

  #takeAll() {
    if (this.#taking) return;
    this.#taking = true;
    // A handler that looks ahead puts another inbox in place.
    while (this.#inbox.length > 0) this.#take(/** @type {string} */ (this.#inbox.shift()));
    this.#taking = false;
  }

  /** @param {string} text */
  #take(text) {
    let message;
    try {
      message = Object(parse(text));
    } catch (error) {
      if (text.trim() !== '') remark(`skipped a line from the host: ${error}`);
      return;
    }
    const { id, method, params } = message;
    if (id === undefined) {
      if (method === 'cancel') this.#calls.cancel(params?.call_id);
    } else if (method === undefined) {
      this.#wire.answered(message);
    } else {
      try {
        this.#request(id, method, params);
      } catch (error) {
        this.#wire.refuse(id, hookFailure(error, String(method), this.#tell));
      }
    }
  }

  /**
   * Whether a line cancels a call that is there, which then is cancelled.
   * @param {string} text
   */
  #cancelled(text) {
    try {
      const { id, method, params } = Object(parse(text));
      return id === undefined && method === 'cancel' && this.#calls.cancel(params?.call_id);
    } catch {
      return false;
    }
  }

  /**
   * @param {unknown} id
   * @param {string} method
   * @param {any} params
   */
  #request(id, method, params) {
    switch (method) {
      case 'call':
        return this.#calls.take(id, params);
      case 'ping':
        return this.#wire.answer(id, '{}');
      case 'describe':
        return this.#describe(id, Object(params));
      case 'init':
        return void this.#work(id, method, () => this.#init(Object(params))).then(() => this.#calls.runWaiting());
      case 'reload':
        if (!this.#plugin.manifest.features.reload) return this.#refuseMethod(id, method);
        return void this.#work(id, method, () => this.#reload(Object(params)));
      case 'shutdown':
        return void this.#work(id, method, () => this.#shutdown(Object(params))).then(() => this.#wire.leave());
      default:
        return this.#refuseMethod(id, method);
    }
  }

  /**
   * @param {unknown} id
   * @param {string} method
   */
  #refuseMethod(id, method) {
    const message = `${this.#plugin.manifest.name} does not know the method "${method}"`;
    this.#wire.refuse(id, { code: CODE.methodNotFound, message });
  }

  /**
   * @param {unknown} id
   * @param {any} params
   */
  #describe(id, params) {
    const { manifest } = this.#plugin;
    this.#wire.setOffers(params.protocol?.features);
    const versions = params.protocol?.versions;
    // Someone who asks by hand may offer nothing; the manifest says what is spoken here.
    if (!Array.isArray(versions) || versions.includes(manifest.protocol)) {
      this.#wire.answer(id, stringify(manifest, 'the manifest'));
      return;
    }
    const isOlder = versions.every((version) => version < manifest.protocol);
    const advice = isOlder ? 'upgrade plugd' : 'upgrade the plugin';
    const spoken = `the plugin speaks protocol version ${manifest.protocol} and the host speaks ${versions.join(', ')}`;
    this.#wire.refuse(id, { code: CODE.invalidParams, message: `${spoken}: ${advice}` });
  }

  /** @param {any} params */
  async #init(params) {
    const life = this.#life;
    this.#wire.setLogLevel(params.log_level);
    this.#about = { dataDir: params.data_dir, locale: params.locale };
    life.stage = 'opening';
    try {
      life.config = await this.#plugin.readConfig(params.config ?? {});
      life.state = await this.#plugin.hooks.init?.(life.config, this.#hookContext());
      life.stage = 'open';
    } catch (error) {
      life.stage = 'unopened';
      throw error;
    }
  }

  /** @param {any} params */
  async #reload(params) {
    const config = await this.#plugin.readConfig(params.config ?? {});
    const state = await this.#plugin.hooks.reload?.(config, this.#hookContext());
    this.#life.config = config;
    if (state !== undefined) this.#life.state = state;
  }

  /** @param {any} params */
  async #shutdown(params) {
    const grace = Number(params.grace_ms ?? LAST_WORDS);
    // Half of it for the calls, half for the release; this request is the one at work.
    await this.#pending.isAtMost(1, grace / 2);
    const wasOpen = this.#life.stage === 'open';
    this.#life.stage = 'closed';
    if (wasOpen) await this.#plugin.hooks.shutdown?.(this.#hookContext());
  }

  /**
   * Works on a request that has no data for an answer.
   * @param {unknown} id
   * @param {string} method
   * @param {() => Promise<void>} work
   */
  async #work(id, method, work) {
    this.#pending.begin();
    try {
      await work();
      this.#wire.answer(id, '{}');
    } catch (error) {
      this.#wire.refuse(id, hookFailure(error, method, this.#tell));
    }
    this.#pending.end();
  }

  #hookContext() {
    return new InitContext(this.#wire, { ...this.#about, state: this.#life.state, config: this.#life.config });
  }

  /** @param {string} head */
  #refuseTooLong(head) {
    const message = `a message of more than ${FRAME_LIMIT} bytes cannot be read`;
    remark(message);
    const id = ID_IN_HEAD.exec(head)?.[1];
    if (id !== undefined) this.#wire.refuse(parse(id), { code: CODE.invalidParams, message });
  }
}
